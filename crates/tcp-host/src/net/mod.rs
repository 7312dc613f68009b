//! A host on the real clock: connections with the interface of [`tokio::net`], over a [`Device`].

mod device;
mod listener;
mod sections;
mod stack;
mod stream;
mod train;

pub use device::{Device, Tun};
pub use listener::TcpListener;
pub use stack::{Stack, StartError};
pub use stream::TcpStream;
