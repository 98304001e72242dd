//! Windows.
fn main() {}
