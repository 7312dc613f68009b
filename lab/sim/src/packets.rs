//! Every packet at every link, and every section, as data.

use comity_frames::FrameType;
use comity_units::Time;

/// The packets of a run, in the order in which links were offered them, and its sections.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PacketLog {
    /// The packets, each at a link.
    pub records: Vec<PacketRecord>,
    /// The sections whose fate was known by the end, with their flows.
    pub sections: Vec<SectionRecord>,
}

/// One section of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionRecord {
    /// The flow, as an index into those of the network.
    pub flow: u32,
    /// When the receiver knew its fate.
    pub settled: Time,
    /// The type of its frame.
    pub frame_type: FrameType,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its deadline; [`Time::MAX`] without one.
    pub deadline: Time,
    /// When it was complete; `None` if bytes of it never arrive.
    pub completed: Option<Time>,
}

/// One packet at one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRecord {
    /// When the link was offered the packet.
    pub offered: Time,
    /// The end of its transmission, unless the link dropped it.
    pub departure: Option<Time>,
    /// When it arrives at the far end, if it does.
    pub arrival: Option<Time>,
    /// What the link did with it.
    pub fate: &'static str,
    /// The link, as an index into those of the network.
    pub link: u32,
    /// The flow, likewise.
    pub flow: u32,
    /// Whether it goes to the source of the flow.
    pub is_return: bool,
    /// Its size on the wire.
    pub wire_bytes: u32,
    /// For TCP the stream offset of its payload, otherwise its packet number.
    pub sequence: u64,
    /// The payload of a TCP segment.
    pub payload_bytes: Option<u32>,
    /// The stream offset that a TCP segment acknowledges.
    pub acknowledgement: Option<u64>,
    /// Whether it carries payload that its sender had sent before; TCP only.
    pub is_retransmission: Option<bool>,
}
