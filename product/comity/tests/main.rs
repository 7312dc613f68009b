//! The tests of the crate's public interface, in one program: it links once, and its tests run
//! beside one another.

mod common;
#[path = "endpoint/main.rs"]
mod endpoint;
mod hostile_network;
mod many;
mod marking;
mod moving;
mod peer;
#[path = "session/main.rs"]
mod session;
#[path = "common/side.rs"]
mod side;
mod trace;
mod transport;
mod uri;
