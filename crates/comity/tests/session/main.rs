//! Sessions over a network in virtual time.

mod bounds;
mod handshake;
mod hostile;
mod moving;
mod network;
