//! One of two kinds of value in one stream: how an operator has two inputs.

use serde::{Deserialize, Serialize};

/// A value of the left or of the right input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Either<L, R> {
    /// Of the first input.
    Left(L),
    /// Of the second.
    Right(R),
}
