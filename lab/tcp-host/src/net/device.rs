//! TUN devices: the source and the destination of a host's packets.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use tun_rs::{DeviceBuilder, IDEAL_BATCH_SIZE, SyncDevice, VIRTIO_NET_HDR_LEN};

use super::train::Train;

/// The maximum number of segments in a large packet: the kernel's smallest segments have 48 bytes.
const MAX_SEGMENTS: usize = 2_048;
/// The maximum length of an IP packet.
const LARGEST: usize = 65_535;

/// A source and a destination of IP packets that never blocks.
pub trait Device: AsFd + Send + 'static {
    /// Receives one packet.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if none has arrived; the descriptor then becomes readable with
    /// the next one.
    fn receive(&mut self) -> io::Result<&[u8]>;

    /// Sends one packet, at the next [`Device::flush`] at the latest.
    ///
    /// # Errors
    /// Any error: this packet, or an earlier one, is lost.
    fn send(&mut self, packet: &[u8]) -> io::Result<()>;

    /// Sends the packets that [`Device::send`] kept.
    ///
    /// # Errors
    /// Any error: a packet is lost.
    fn flush(&mut self) -> io::Result<()>;
}

/// A TUN device of the kernel: a network interface whose packets this program handles.
///
/// The device routes IP packets. The kernel has its own address on it, and reaches the host's
/// addresses through it, like those of a neighbour.
///
/// Segments of one connection are passed to and from the kernel as one large packet, and divided
/// afterwards.
pub struct Tun {
    device: SyncDevice,
    departing: Train,
    /// A large packet from the kernel.
    large: Vec<u8>,
    /// Its segments, their lengths, and the range of those that come next.
    segments: Vec<Vec<u8>>,
    lengths: Vec<usize>,
    arriving: Range<usize>,
}

impl Tun {
    /// Opens the TUN device `name`, or creates it, and sets its MTU. A device that was created for
    /// this user (`ip tuntap add dev NAME mode tun user USER`) needs no privilege if its MTU is
    /// right. In all other cases, `CAP_NET_ADMIN` is needed.
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
    /// Makes room for packets with more segments.
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
                // The packet has more segments than there is room for, because the peer's segment
                // size is small; or it is not a packet. The peer retransmits such segments.
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
