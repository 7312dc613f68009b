//! Sessions over a network in virtual time.

mod bounds;
mod calling;
mod erasure;
mod handshake;
mod hostile;
mod moving;
mod network;
mod serving;
