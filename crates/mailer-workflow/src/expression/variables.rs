//! What an expression sees, made when it is asked for.
//!
//! The interpreter asks for `record.status` as a whole first. Where that is a single value of the record it is handed over as
//! it is; for all else it asks for `record`, which is then made once, with all that the expression reads of it.

use super::convert::{single, to_cel};
use super::{RECORD, TIMESTAMP};
use crate::value::Projection;
use crate::{Path, Value};
use cel::common::types::CelInt;
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use std::sync::OnceLock;

/// A field that an expression names, as the interpreter asks for it: `record.customer.id`.
#[derive(Clone, Debug)]
pub(super) struct Field {
    name: String,
    path: Path,
}

impl Field {
    pub(super) fn new(path: &[&str]) -> Self {
        Self { name: format!("{RECORD}.{}", path.join(".")), path: Path::of_names(path.iter().copied()) }
    }
}

/// `record` and `timestamp`.
pub(super) struct Variables<'r> {
    record: &'r Value,
    timestamp: i64,
    fields: &'r [Field],
    reads: &'r Projection,
    /// `record`, once somebody has asked for it.
    whole: OnceLock<Box<dyn Val + 'r>>,
}

impl<'r> Variables<'r> {
    pub(super) fn new(record: &'r Value, timestamp: i64, fields: &'r [Field], reads: &'r Projection) -> Self {
        Self { record, timestamp, fields, reads, whole: OnceLock::new() }
    }
}

impl VariableResolver for Variables<'_> {
    fn resolve<'b>(&'b self, name: &str) -> Option<CowVal<'b, 'b>> {
        match name {
            RECORD => {
                let whole = self.whole.get_or_init(|| to_cel(self.record, self.reads));
                Some(CowVal::Borrowed(whole.as_ref()))
            }
            TIMESTAMP => Some(CowVal::owned(CelInt::from(self.timestamp))),
            _ => {
                let field = self.fields.iter().find(|field| field.name == name)?;
                let value = field.path.get(self.record)?;
                // A list or an object is made once, as part of `record`.
                single(value).map(CowVal::Owned)
            }
        }
    }
}
