//! How a state is named: by two small numbers in every key, by text and schema version in the manifest.

use std::fmt;

/// Which state of which operator; part of every key. Names stand beside it in the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId {
    /// The operator.
    pub operator: u16,
    /// The state within the operator.
    pub state: u16,
}

impl fmt::Display for StateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "state {} of operator {}", self.state, self.operator)
    }
}

/// What a manifest remembers of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDescriptor {
    /// The author's name for it, unique within the operator.
    pub name: String,
    /// The id its keys carry.
    pub id: StateId,
    /// The author's version of the value type. A restore with another version is refused by name.
    pub schema_version: u32,
}

impl StateDescriptor {
    /// Version 1 of a state.
    pub fn new(name: impl Into<String>, id: StateId) -> Self {
        Self { name: name.into(), id, schema_version: 1 }
    }

    /// The same state with another version of its value type.
    #[must_use]
    pub fn schema_version(self, schema_version: u32) -> Self {
        Self { schema_version, ..self }
    }
}
