//! A host in real time: connections with the interface of [`tokio::net`], over a [`Device`].

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

mod alarm;
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

/// Waits for a descriptor to become readable.
fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor is open, and stays the same, until it is dropped with the
    // `AsyncFd`.
    #[expect(
        unsafe_code,
        reason = "the runtime has no safe way to wait for a descriptor"
    )]
    let watched = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
    Ok(watched?)
}
