//! TUN devices: where a host's packets come from and go to.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use tun_rs::{DeviceBuilder, SyncDevice};

/// A source and a destination of IP packets, one at a time, that never blocks.
pub trait Device: AsFd + Send + Sync + 'static {
    /// Receives one packet into `buffer`; returns its length.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if none has arrived; the descriptor then becomes readable with
    /// the next one.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Sends one packet.
    ///
    /// # Errors
    /// Any error: the packet is lost.
    fn send(&self, packet: &[u8]) -> io::Result<()>;
}

/// A TUN device of the kernel: an interface without a network behind it but this program.
///
/// The device routes IP packets. The kernel has an address of its own on it, and reaches the host's
/// addresses through it, as those of a neighbour.
pub struct Tun(SyncDevice);

impl Tun {
    /// Opens the TUN device `name`, or creates it, and sets its MTU. A device that exists for this
    /// user (`ip tuntap add dev NAME mode tun user USER`) needs no privilege if its MTU is right;
    /// everything else needs `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// If the kernel refuses it, or `/dev/net/tun` cannot be opened.
    pub fn open(name: &str, mtu: u16) -> io::Result<Self> {
        let device = DeviceBuilder::new()
            .name(name)
            .inherit_enable_state()
            .build_sync()?;
        if device.mtu()? != mtu {
            device.set_mtu(mtu)?;
        }
        device.set_nonblocking(true)?;
        Ok(Self(device))
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Device for Tun {
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.recv(buffer)
    }

    fn send(&self, packet: &[u8]) -> io::Result<()> {
        self.0.send(packet).map(drop)
    }
}
