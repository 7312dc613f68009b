//! The host, in virtual time against a second one, and on the real clock against the kernel.

mod honest;
mod hostile;
mod kernel;
mod pair;
mod path;
mod rules;
mod script;
mod sections;
mod world;
