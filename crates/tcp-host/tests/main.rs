//! The host, in virtual time against a second one.

mod hostile;
mod pair;
mod path;
mod rules;
mod world;
