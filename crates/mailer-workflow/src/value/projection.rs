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
        self.hand_down();
    }

    /// `path` is read, with everything below it.
    pub fn add(&mut self, path: &Path) {
        let mut place = &mut *self;
        for segment in path.names() {
            let known = place.named.iter().position(|(name, _)| name == segment).unwrap_or_else(|| {
                place.named.push((segment.clone(), Projection::nothing()));
                place.named.len() - 1
            });
            place = &mut place.named[known].1;
        }
        place.rest = true;
        self.hand_down();
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
        self.hand_down();
    }

    /// What is kept whole is kept with all that is in it, also where only a part of that is looked at.
    fn hand_down(&mut self) {
        for (_, inner) in &mut self.named {
            inner.rest |= self.rest;
            inner.hand_down();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JsonDecoder;

    const RECORD: &str = r#"{"customer":{"id":"a","name":"N","at":{"street":"S","no":1}},"n":1}"#;

    fn read(projection: Projection) -> String {
        JsonDecoder::new(projection).decode(RECORD.as_bytes()).unwrap().to_string()
    }

    fn of(paths: &[&str]) -> Projection {
        let mut projection = Projection::nothing();
        paths.iter().for_each(|path| projection.add(&path.parse().unwrap()));
        projection
    }

    /// Who looks at a part of an object takes nothing from it, in whatever order it is said.
    #[test]
    fn what_is_kept_whole_is_kept_with_all_that_is_in_it() {
        assert_eq!(read(of(&["customer.at.no", "n"])), r#"{"customer":{"at":{"no":1}},"n":1}"#);
        let mut after = of(&["customer.id", "customer.at.no"]);
        after.keep_rest();
        let mut before = Projection::everything();
        before.add(&"customer.at.no".parse().unwrap());
        let mut merged = of(&["customer.id"]);
        merged.merge(&Projection::everything());
        let mut merged_into = Projection::everything();
        merged_into.merge(&of(&["customer.at.no"]));
        for projection in [after, before, merged, merged_into] {
            assert_eq!(read(projection), RECORD);
        }
        let part = r#"{"customer":{"id":"a","name":"N","at":{"street":"S","no":1}}}"#;
        assert_eq!(read(of(&["customer", "customer.at.no"])), part);
        assert_eq!(read(of(&["customer.at.no", "customer"])), part);
    }
}
