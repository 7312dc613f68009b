//! A packet script: what its lines say.

use comity_units::Span;

/// The two stacks that run scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Linux,
    Comity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

#[derive(Clone, Debug)]
pub(super) struct Script {
    /// The name of its file.
    pub(super) file: String,
    /// What it shows: its first comment.
    pub(super) purpose: String,
    /// Where that is specified: its second comment.
    pub(super) source: String,
    /// The families in which it runs.
    pub(super) families: Vec<Family>,
    /// The settings of `net.ipv4` that it asks `setup.sh` for.
    pub(super) settings: Vec<(String, String)>,
    pub(super) lines: Vec<Line>,
    /// Where Comity differs from Linux.
    pub(super) differences: Vec<Difference>,
}

/// An event that one stack or both show.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) only: Option<Target>,
    pub(super) event: Event,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) line: usize,
    /// The text of Linux's lines and of Comity's; either may be empty.
    pub(super) linux: Vec<String>,
    pub(super) comity: Vec<String>,
    pub(super) reason: String,
}

#[derive(Clone, Debug)]
pub(super) struct Event {
    /// The number of its line.
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) when: When,
    pub(super) action: Action,
}

/// The time of an event, since the beginning of the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    At(Span),
    /// After the event before it.
    After(Span),
    Between(Span, Span),
    BetweenAfter(Span, Span),
    Any,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    Call(Call, Outcome),
    /// A packet that arrives at the stack.
    Inbound(Packet),
    /// A packet that the stack sends.
    Outbound(Segment),
}

/// A system call. A number of a file stands for what an earlier call returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Socket,
    NonBlocking { file: i64 },
    Set { file: i64, option: SocketOption },
    Bind { file: i64 },
    Listen { file: i64, backlog: i32 },
    Accept { file: i64 },
    Connect { file: i64 },
    Write { file: i64, length: usize },
    Read { file: i64, length: usize },
    ShutDownWrite { file: i64 },
    Close { file: i64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketOption {
    ReuseAddress,
    NoDelay,
    ReceiveBuffer(usize),
    SendBuffer(usize),
    /// A close resets the connection.
    LingerZero,
    KeepAlive,
    KeepIdle(u32),
    KeepInterval(u32),
    KeepCount(u32),
}

/// What a call returns: a number, or an error by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Returns(i64),
    Fails(String),
}

#[derive(Clone, Debug)]
pub(super) enum Packet {
    Segment(Segment),
    Icmp(Icmp),
}

/// A segment, in the numbers of the script: those of each side begin at 0 with its SYN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// The bits of ECN in the header of IP; `None` leaves them open.
    pub(super) ecn: Option<u8>,
    pub(super) flags: Flags,
    pub(super) start: u32,
    pub(super) length: u32,
    pub(super) acknowledgement: u32,
    /// `None` leaves it open.
    pub(super) window: Option<u16>,
    /// `None` leaves them open.
    pub(super) options: Option<Vec<TcpOption>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    pub(super) fin: bool,
    pub(super) syn: bool,
    pub(super) rst: bool,
    pub(super) psh: bool,
    pub(super) ack: bool,
    pub(super) ece: bool,
    pub(super) cwr: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TcpOption {
    Nop,
    EndOfList,
    MaxSegmentSize(u16),
    WindowScale(u8),
    SackPermitted,
    Sack(Vec<(u32, u32)>),
    Timestamps { value: u32, echo: u32 },
}

/// An error of the network about a segment that the stack sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Icmp {
    pub(super) problem: Problem,
    /// The number and the length of the segment.
    pub(super) start: u32,
    pub(super) length: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    TooBig { mtu: u32 },
    PortUnreachable,
    HostUnreachable,
}

impl Script {
    /// The events that a stack shows.
    pub(super) fn events(&self, target: Target) -> impl Iterator<Item = &Event> {
        let is_shown = move |line: &&Line| line.only.is_none_or(|only| only == target);
        self.lines.iter().filter(is_shown).map(|line| &line.event)
    }
}

impl std::fmt::Display for Flags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let letters = [
            (self.syn, 'S'),
            (self.fin, 'F'),
            (self.rst, 'R'),
            (self.psh, 'P'),
            (self.ece, 'E'),
            (self.cwr, 'W'),
            (self.ack, '.'),
        ];
        let set = letters.into_iter().filter(|(is_set, _)| *is_set);
        set.map(|(_, letter)| letter)
            .try_for_each(|letter| write!(f, "{letter}"))
    }
}

impl std::fmt::Display for TcpOption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nop => f.write_str("nop"),
            Self::EndOfList => f.write_str("eol"),
            Self::MaxSegmentSize(size) => write!(f, "mss {size}"),
            Self::WindowScale(shift) => write!(f, "wscale {shift}"),
            Self::SackPermitted => f.write_str("sackOK"),
            Self::Sack(blocks) => {
                f.write_str("sack")?;
                blocks
                    .iter()
                    .try_for_each(|(start, end)| write!(f, " {start}:{end}"))
            }
            Self::Timestamps { value, echo } => write!(f, "TS val {value} ecr {echo}"),
        }
    }
}

impl std::fmt::Display for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(ecn) = self.ecn {
            let name = ["noecn", "ect1", "ect0", "ce"];
            write!(f, "[{}] ", name[usize::from(ecn & 3)])?;
        }
        let Self {
            flags,
            start,
            length,
            ..
        } = self;
        write!(
            f,
            "{flags} {start}:{}({length})",
            start.wrapping_add(*length)
        )?;
        if flags.ack {
            write!(f, " ack {}", self.acknowledgement)?;
        }
        if let Some(window) = self.window {
            write!(f, " win {window}")?;
        }
        match self.options.as_deref() {
            None => f.write_str(" <...>"),
            Some([]) => Ok(()),
            Some(options) => {
                let options: Vec<String> = options.iter().map(ToString::to_string).collect();
                write!(f, " <{}>", options.join(","))
            }
        }
    }
}
