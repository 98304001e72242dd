//! Which parts of a record are read.

use super::Text;
use crate::path::Path;

/// What a decoder keeps of a record, and what of it is looked at. The compiler of a workflow tells it from the steps.
///
/// ```
/// use mailer_workflow::{JsonDecoder, Projection};
/// let mut read = Projection::nothing();
/// read.add(&"customer.id".parse()?);
/// let mut decoder = JsonDecoder::new(read);
/// let record = decoder.decode(br#"{"customer": {"id": "a", "name": "b"}, "items": [1, 2]}"#)?;
/// assert_eq!(record.to_string(), r#"{"customer":{"id":"a"}}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Projection {
    /// What is not named is kept, as it came.
    pub(super) rest: bool,
    pub(super) named: Vec<(Text, Projection)>,
}

impl Projection {
    /// Everything is kept, and looked at when it is first read.
    pub fn everything() -> Self {
        Self { rest: true, named: Vec::new() }
    }

    /// Nothing is kept, unless it is added.
    pub fn nothing() -> Self {
        Self { rest: false, named: Vec::new() }
    }

    /// Keeps what is not named, too: the record goes on as a whole.
    pub fn keep_rest(&mut self) {
        self.rest = true;
    }

    /// `path` is read, with everything below it.
    pub fn add(&mut self, path: &Path) {
        let mut place = self;
        for segment in path.names() {
            let known = place.named.iter().position(|(name, _)| name == segment).unwrap_or_else(|| {
                place.named.push((segment.clone(), Projection::nothing()));
                place.named.len() - 1
            });
            place = &mut place.named[known].1;
        }
        place.rest = true;
    }

    /// Reads what `other` reads, too.
    pub fn merge(&mut self, other: &Projection) {
        self.rest |= other.rest;
        for (name, inner) in &other.named {
            match self.named.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => known.merge(inner),
                None => self.named.push((name.clone(), inner.clone())),
            }
        }
    }

    /// Whether everything is kept.
    pub fn is_everything(&self) -> bool {
        self.rest
    }

    pub(crate) fn of(&self, name: &str) -> Option<&Projection> {
        self.named.iter().find(|(known, _)| known.as_str() == name).map(|(_, projection)| projection)
    }
}
