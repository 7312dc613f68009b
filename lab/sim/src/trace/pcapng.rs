//! Captures of simulated links, as pcapng files.
//!
//! Each capture point is an interface of the file; its packets are raw IP packets (`LINKTYPE_RAW`)
//! with TCP or UDP headers built from the simulated packets. Times are nanoseconds since the start
//! of the run, which readers show as times in 1970. Numbers are little-endian on every machine, so
//! the same run gives the same bytes.
//!
//! # Sizes
//! A simulated packet has a size on the wire and, independently, an amount of payload:
//! configurations of ns-2's time count every header as 40 bytes, whatever its options.
//!
//! ```text
//! IP length = IP header + TCP or UDP header, options included + payload
//! original length = max(wire size, IP length)
//! captured length = headers, or IP length with `Capture::Whole`
//! ```
//!
//! The IP length follows the payload, not the wire size, because Wireshark computes sequence
//! numbers from it: if it were a few bytes off, every segment would look like a gap or a
//! retransmission. If the simulated size is larger, the rest appears as a trailer of the packet,
//! like link-layer padding. If it is smaller than the real headers and payload, a capture cannot
//! show that, and the frame has the real size.
//!
//! # Checksums
//! All checksums are correct for a payload of zeros. With [`Capture::Headers`] a reader cannot
//! verify those of packets with payload, and says so. With [`Capture::Whole`] it can.
//!
//! Source: draft-ietf-opsawg-pcapng, sections 4.1 to 4.3.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::net::IpAddr;
use std::time::Duration;

use comity_tcp::Segment;
use comity_tcp::checksum::{Checksum, PROTOCOL_TCP, PROTOCOL_UDP, PseudoHeader};
use comity_tcp::codec::{self, EncodeError, MAX_HEADER, Ports};
use comity_units::{Rate, Time};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};

use super::ip::{UDP_HEADER, ip_header_length, push_ip, push_udp};

/// The exponent of `if_tsresol`: units of 10⁻⁹ s.
const NANOSECONDS: u8 = 9;
/// The longest text of an option, whose length field has 16 bits.
const MAX_TEXT: usize = 65_535;

/// A capture point on a link, as an interface of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceDescription<'a> {
    /// Its name, as in `bottleneck:after`.
    pub name: &'a str,
    /// Its description; not written if empty.
    pub description: &'a str,
    /// Its rate, if that is constant.
    pub rate: Option<Rate>,
}

/// A packet on a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketRecord<'a> {
    /// Its source address.
    pub source: IpAddr,
    /// Its destination address, of the same family.
    pub destination: IpAddr,
    /// Its ports, in its own direction.
    pub ports: Ports,
    /// Its protocol above IP.
    pub kind: PacketKind<'a>,
    /// Its simulated size in bytes, headers included.
    pub wire_bytes: u32,
    /// A comment, such as `dropped: queue full`.
    pub comment: Option<&'a str>,
    /// How many packets were dropped since the last packet of the interface (`epb_dropcount`).
    pub dropped_before: u64,
}

/// What a packet carries above IP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PacketKind<'a> {
    /// A TCP segment.
    Tcp(&'a Segment),
    /// A UDP datagram.
    Udp {
        /// Its payload in bytes.
        payload: u32,
    },
}

/// The captured part of each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Capture {
    /// The headers.
    #[default]
    Headers,
    /// The headers, and the payload as zeros. Files are many times as large, and all checksums
    /// verify.
    Whole,
}

/// Writes a pcapng file.
///
/// Each packet needs several small writes, so use a [`BufWriter`](io::BufWriter).
pub struct PcapngWriter<W: Write> {
    out: PcapNgWriter<W>,
    interfaces: u32,
    capture: Capture,
    frame: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Begins a file with these capture points.
    ///
    /// # Errors
    /// [`PcapngError::Io`] and [`PcapngError::TextTooLong`].
    pub fn new(out: W, interfaces: &[InterfaceDescription<'_>]) -> Result<Self, PcapngError> {
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            options: vec![SectionHeaderOption::UserApplication(Cow::Borrowed(
                "comity",
            ))],
            ..Default::default()
        };
        let mut writer = Self {
            out: PcapNgWriter::with_section_header(out, section)?,
            interfaces: 0,
            capture: Capture::default(),
            frame: Vec::with_capacity(128),
        };
        for interface in interfaces {
            writer.describe(interface)?;
        }
        Ok(writer)
    }

    /// Sets the captured part of each packet.
    #[must_use]
    pub fn keeping(mut self, capture: Capture) -> Self {
        self.capture = capture;
        self
    }

    fn describe(&mut self, interface: &InterfaceDescription<'_>) -> Result<(), PcapngError> {
        let mut options = vec![InterfaceDescriptionOption::IfName(text(interface.name)?)];
        if !interface.description.is_empty() {
            options.push(InterfaceDescriptionOption::IfDescription(text(
                interface.description,
            )?));
        }
        if let Some(rate) = interface.rate {
            options.push(InterfaceDescriptionOption::IfSpeed(rate.as_bps()));
        }
        options.push(InterfaceDescriptionOption::IfTsResol(NANOSECONDS));
        let block = InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: 0,
            options,
        };
        self.out.write_pcapng_block(block)?;
        self.interfaces += 1;
        Ok(())
    }

    /// Writes a packet.
    ///
    /// * `interface`: the capture point, as an index into the list given at the beginning.
    /// * `now`: when the packet was there.
    ///
    /// # Errors
    /// [`PcapngError`]. Unless it is [`PcapngError::Io`], the file has not changed.
    pub fn packet(
        &mut self,
        interface: u32,
        now: Time,
        packet: &PacketRecord<'_>,
    ) -> Result<(), PcapngError> {
        if interface >= self.interfaces {
            return Err(PcapngError::Interface {
                interface,
                count: self.interfaces,
            });
        }
        let total = self.build(packet)?;
        let mut options = Vec::new();
        if let Some(comment) = packet.comment {
            options.push(EnhancedPacketOption::Comment(text(comment)?));
        }
        if packet.dropped_before > 0 {
            options.push(EnhancedPacketOption::DropCount(packet.dropped_before));
        }
        self.out.write_pcapng_block(EnhancedPacketBlock {
            interface_id: interface,
            timestamp: Duration::from_nanos(now.as_nanos()),
            original_len: packet.wire_bytes.max(u32::from(total)),
            data: Cow::Borrowed(&self.frame),
            options,
        })?;
        Ok(())
    }

    /// Puts the captured bytes of a packet in `frame` and returns its IP length.
    fn build(&mut self, packet: &PacketRecord<'_>) -> Result<u16, PcapngError> {
        let PacketRecord {
            source,
            destination,
            ports,
            kind,
            ..
        } = *packet;
        let addresses = PseudoHeader::new(source, destination).ok_or(PcapngError::Families {
            source,
            destination,
        })?;
        let ip_header = ip_header_length(&addresses);
        let (protocol, header, payload) = match kind {
            PacketKind::Tcp(segment) => (
                PROTOCOL_TCP,
                codec::encoded_length(segment),
                segment.payload,
            ),
            PacketKind::Udp { payload } => (PROTOCOL_UDP, UDP_HEADER, payload),
        };
        let bytes = (ip_header + header) as u64 + u64::from(payload);
        let total = u16::try_from(bytes).map_err(|_| PcapngError::TooLong { bytes })?;

        let frame = &mut self.frame;
        frame.clear();
        push_ip(&addresses, protocol, total, frame);
        match kind {
            PacketKind::Tcp(segment) => {
                frame.resize(ip_header + MAX_HEADER, 0);
                let space = &mut frame[ip_header..];
                let written = codec::encode(segment, ports, &addresses, Checksum::new(), space)?;
                frame.truncate(ip_header + written);
            }
            PacketKind::Udp { .. } => {
                push_udp(&addresses, ports, total - ip_header as u16, frame);
            }
        }
        if self.capture == Capture::Whole {
            frame.resize(usize::from(total), 0);
        }
        Ok(total)
    }

    /// Flushes and returns the file.
    ///
    /// # Errors
    /// If it cannot be flushed.
    pub fn finish(self) -> Result<W, PcapngError> {
        let mut out = self.out.into_inner();
        out.flush()?;
        Ok(out)
    }
}

/// The text of an option.
fn text(text: &str) -> Result<Cow<'_, str>, PcapngError> {
    match text.len() {
        length if length > MAX_TEXT => Err(PcapngError::TextTooLong { length }),
        _ => Ok(Cow::Borrowed(text)),
    }
}

/// Why something could not be written to a capture.
#[derive(Debug)]
pub enum PcapngError {
    /// The addresses of a packet are of different families.
    Families {
        /// The source address.
        source: IpAddr,
        /// The destination address.
        destination: IpAddr,
    },
    /// The segment has no header.
    Header(EncodeError),
    /// There is no such interface.
    Interface {
        /// The number of the interface.
        interface: u32,
        /// How many there are.
        count: u32,
    },
    /// The file cannot be written.
    Io(io::Error),
    /// A name, description or comment does not fit an option.
    TextTooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// A packet is longer than the maximum of an IP header.
    TooLong {
        /// Its length in bytes.
        bytes: u64,
    },
}

impl Error for PcapngError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Header(error) => Some(error),
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for PcapngError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Families {
                source,
                destination,
            } => write!(
                f,
                "packet from {source} to {destination}: expected addresses of one family"
            ),
            Self::Header(_) => f.write_str("packet with a TCP segment that has no header"),
            Self::Interface { interface, count } => {
                write!(
                    f,
                    "packet on interface {interface}: expected one of {count}, from 0"
                )
            }
            Self::Io(_) => f.write_str("the capture cannot be written"),
            Self::TextTooLong { length } => {
                write!(f, "text of {length} bytes: expected at most {MAX_TEXT}")
            }
            Self::TooLong { bytes } => {
                write!(f, "packet of {bytes} bytes: expected at most 65535")
            }
        }
    }
}

impl From<EncodeError> for PcapngError {
    fn from(error: EncodeError) -> Self {
        Self::Header(error)
    }
}

impl From<io::Error> for PcapngError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<PcapError> for PcapngError {
    fn from(error: PcapError) -> Self {
        match error {
            PcapError::IoError(error) => Self::Io(error),
            other => Self::Io(io::Error::other(other)),
        }
    }
}
