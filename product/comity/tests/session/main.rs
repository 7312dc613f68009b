//! Sessions over a network in virtual time.

mod bounds;
mod calling;
mod diverted;
mod erasure;
mod handshake;
mod hostile;
mod injected;
mod moving;
mod neighbours;
mod network;
mod restarts;
mod serving;
