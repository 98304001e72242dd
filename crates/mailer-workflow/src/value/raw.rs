//! JSON that nobody has looked at yet.

use super::{Text, Value};
use std::sync::OnceLock;

/// A piece of JSON whose syntax was checked and whose content was not looked at. It is written out as it came, digit by
/// digit.
///
/// A number beyond the range of floating point, or half a surrogate pair in a string, is fine as long as it is only passed on;
/// who reads it finds null.
#[derive(Debug)]
pub struct Raw {
    text: Text,
    seen: OnceLock<Value>,
}

impl Raw {
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.into(), seen: OnceLock::new() }
    }

    /// The JSON.
    pub fn as_json(&self) -> &str {
        &self.text
    }

    /// What it says.
    pub fn value(&self) -> &Value {
        self.seen.get_or_init(|| Value::from_json(self.text.as_bytes()).unwrap_or_default())
    }
}
