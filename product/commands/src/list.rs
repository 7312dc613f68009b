//! Named items, each with its description, its source and its parameters: the entries of
//! `comity list`.

mod controller;
mod listed;
mod overview;

pub use controller::{controllers, first_sentence};
pub use listed::{Entry, Listed};
pub use overview::{line_length, overview};
