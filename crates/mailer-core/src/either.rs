//! One of two: what a connected stream carries.

use serde::{Deserialize, Serialize};

/// A value of the left input or of the right one.
///
/// ```
/// use mailer_core::Either;
/// let sides: Vec<Either<u32, &str>> = vec![Either::Left(1), Either::Right("one")];
/// assert!(matches!(sides[1], Either::Right("one")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Either<L, R> {
    /// From the left input.
    Left(L),
    /// From the right input.
    Right(R),
}
