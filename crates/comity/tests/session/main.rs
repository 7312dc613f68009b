//! Sessions over a network in virtual time.

mod handshake;
mod hostile;
mod network;
