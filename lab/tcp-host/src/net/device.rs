//! TUN devices: where a host's packets come from and go to.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use tun_rs::{DeviceBuilder, IDEAL_BATCH_SIZE, SyncDevice, VIRTIO_NET_HDR_LEN};

use super::train::Train;

/// The most segments of a large packet: the kernel's smallest segments have 48 bytes.
const MAX_SEGMENTS: usize = 2_048;
/// The largest IP packet.
const LARGEST: usize = 65_535;

/// A source and a destination of IP packets that never blocks.
pub trait Device: AsFd + Send + 'static {
    /// Receives one packet.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if none has arrived; the descriptor then becomes readable with
    /// the next one.
    fn receive(&mut self) -> io::Result<&[u8]>;

    /// Sends one packet, at the latest with the next [`Device::flush`].
    ///
    /// # Errors
    /// Any error: the packet, or one before it, is lost.
    fn send(&mut self, packet: &[u8]) -> io::Result<()>;

    /// Sends what [`Device::send`] kept.
    ///
    /// # Errors
    /// Any error: a packet is lost.
    fn flush(&mut self) -> io::Result<()>;
}

/// A TUN device of the kernel: an interface without a network behind it but this program.
///
/// The device routes IP packets. The kernel has an address of its own on it, and reaches the host's
/// addresses through it, as those of a neighbour.
///
/// Segments of one connection cross the border to the kernel as one large packet, in both
/// directions, and are divided behind it.
pub struct Tun {
    device: SyncDevice,
    departing: Train,
    /// A large packet as the kernel gave it.
    large: Vec<u8>,
    /// Its segments, their lengths, and which of them come next.
    segments: Vec<Vec<u8>>,
    lengths: Vec<usize>,
    arriving: Range<usize>,
}

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
            .offload(true)
            .build_sync()?;
        if device.mtu()? != mtu {
            device.set_mtu(mtu)?;
        }
        device.set_nonblocking(true)?;
        Ok(Self {
            device,
            departing: Train::new(),
            large: vec![0; VIRTIO_NET_HDR_LEN + LARGEST],
            segments: vec![vec![0; mtu.into()]; IDEAL_BATCH_SIZE],
            lengths: vec![0; IDEAL_BATCH_SIZE],
            arriving: 0..0,
        })
    }
}

impl Tun {
    /// Makes room for packets of more segments.
    fn grow(&mut self) {
        let count = (self.lengths.len() * 2).min(MAX_SEGMENTS);
        let length = self.segments.first().map_or(0, Vec::len);
        self.segments.resize_with(count, || vec![0; length]);
        self.lengths.resize(count, 0);
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl Device for Tun {
    fn receive(&mut self) -> io::Result<&[u8]> {
        while self.arriving.is_empty() {
            let received = self.device.recv_multiple(
                &mut self.large,
                &mut self.segments,
                &mut self.lengths,
                0,
            );
            match received {
                Ok(count) => self.arriving = 0..count,
                // More segments than there is room for, of a peer with a small segment size, or not
                // a packet. The former come again.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::InvalidInput | io::ErrorKind::Other
                    ) =>
                {
                    self.grow();
                }
                Err(error) => return Err(error),
            }
        }
        let index = self.arriving.next().unwrap_or_default();
        let (Some(segment), Some(length)) = (self.segments.get(index), self.lengths.get(index))
        else {
            return Ok(&[]);
        };
        Ok(segment.get(..*length).unwrap_or_default())
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        if self.departing.append(packet) {
            return Ok(());
        }
        let left = self.flush();
        self.departing.append(packet);
        left
    }

    fn flush(&mut self) -> io::Result<()> {
        self.departing
            .leave(|train| self.device.send(train).map(drop))
    }
}
