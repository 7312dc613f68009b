//! Filled in below.
pub struct Recovery;
