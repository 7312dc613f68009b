//! What became of every byte that came in.

/// The receiver's account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accounts {}

/// Deadline minus completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slack {}
