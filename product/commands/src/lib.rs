//! The commands that send, receive, forward and check media, and what all commands of the program
//! share: exit codes, messages, progress, tables and the readers of options.
//!
//! The program `comity` parses the command line, and calls one function of this crate for each of
//! its commands.

pub mod args;
mod check;
pub mod clock;
mod console;
mod core_dumps;
mod doctor;
pub mod files;
pub mod interrupt;
mod keygen;
pub mod list;
mod mtu;
pub mod numbers;
pub mod status_line;
mod stream;
pub mod tables;
pub mod values;

pub use check::check;
pub use console::{Failure, complain, has_colours, print, say};
pub use doctor::doctor;
pub use keygen::keygen;
pub use stream::{Stop, recv, relay, send};
