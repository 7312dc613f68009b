//! Sessions over a network in virtual time.

mod handshake;
mod hostile;
mod moving;
mod network;
