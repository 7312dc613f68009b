//! The keys of URIs: the one list for parsing, printing, messages and documentation.

use core::fmt;
use std::borrow::Cow;
use std::path::PathBuf;

use comity_congestion::table::{self, Domain, Row, Value};
use comity_units::{Bytes, Rate, Span};

use super::address::Local;
use super::error::UriError;
use super::secret::Secret;
use crate::options::{LEAST_CONNECT_TIMEOUT, LEAST_DATAGRAM, MOST_DATAGRAM, SEALING};
use crate::session::{Passphrase, PublicKey};

/// What a URI begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `comity://`: sections with deadlines, protected and friendly to TCP.
    Comity,
    /// `file://`: a file of this host.
    File,
    /// `rtp://`: media in RTP packets.
    Rtp,
    /// `udp://`: media in bare UDP datagrams.
    Udp,
}

impl Scheme {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Comity, Self::File, Self::Rtp, Self::Udp];

    /// What stands before `://`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Comity => "comity",
            Self::File => "file",
            Self::Rtp => "rtp",
            Self::Udp => "udp",
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// This end: it has the other's host and port.
    Caller,
    /// The other end: this one waits on a port.
    Listener,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Caller => "caller",
            Self::Listener => "listener",
        })
    }
}

/// A key that a URI can have.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Other names for it: those of SRT where they differ.
    pub aliases: &'static [&'static str],
    /// What its value can be.
    pub kind: Kind,
    /// Other words for values, with what they stand for.
    pub words: &'static [(&'static str, &'static str)],
    /// The value of a URI without it; empty where that is none, or depends on another key.
    pub default: &'static str,
    /// What it does, in one or two sentences.
    pub summary: &'static str,
    /// The schemes that have it.
    pub schemes: &'static [Scheme],
    /// Who has it, where only one of the two does.
    pub only: Option<Mode>,
}

/// What the value of a key can be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// The name of a congestion controller.
    Controller,
    /// A value with a range. Without a unit, times are in milliseconds, rates in bit/s and amounts in bytes.
    Domain(Domain),
    /// A local address, a port, or both.
    Local,
    /// The path of a file.
    Path,
    /// A passphrase.
    Passphrase,
    /// A public key.
    PublicKey,
    /// Some text of at most this many bytes.
    Text(usize),
    /// The upper six bits of the IP header's type of service, as the whole byte.
    TypeOfService,
}

/// A value that has been read.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Given {
    Controller(&'static str),
    Value(Value),
    Local(Local),
    Path(PathBuf),
    Passphrase(Secret),
    PublicKey(PublicKey),
    Text(String),
}

impl Key {
    /// The key called `name`, among those of the scheme.
    pub fn find(scheme: Scheme, name: &str) -> Option<&'static Self> {
        KEYS.iter()
            .find(|key| key.schemes.contains(&scheme) && key.is_called(name))
    }

    /// Whether this is its name or another name for it.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// What a value has to be, as in "expected ..".
    pub fn expected(&self) -> String {
        match self.kind {
            Kind::Controller => "the name of a controller, such as \"reno\"".into(),
            Kind::Domain(Domain::Flag) => "true or false".into(),
            Kind::Domain(domain @ Domain::Span { .. }) => {
                format!("{domain}, such as \"120ms\"; a bare number is in milliseconds")
            }
            Kind::Domain(domain @ Domain::Rate { .. }) => {
                format!("{domain}, such as \"20Mbps\"; a bare number is in bit/s")
            }
            Kind::Domain(domain @ Domain::Bytes { .. }) => {
                format!("{domain}, such as \"1400B\" or \"8MiB\"; a bare number is in bytes")
            }
            Kind::Domain(domain) => domain.to_string(),
            Kind::Local => "an address, a port or both, as in \"192.0.2.1\", \":5000\" or \"[2001:db8::1]:5000\"".into(),
            Kind::Path => "the path of a file".into(),
            Kind::Passphrase => format!("{} to {} bytes", Passphrase::LEAST, Passphrase::MOST),
            Kind::PublicKey => "comity-public- and 64 hexadecimal digits".into(),
            Kind::Text(most) => format!("1 to {most} bytes of text"),
            Kind::TypeOfService => {
                "a multiple of 4 from 0 to 252, such as 0xb8: the lowest two bits belong to ECN".into()
            }
        }
    }

    /// Reads a value that has been percent-decoded.
    pub(super) fn read(&self, text: &str) -> Result<Given, UriError> {
        let key = self.name;
        if text.is_empty() {
            return Err(UriError::ValueMissing {
                key,
                expected: self.expected(),
            });
        }
        let words = self.words.iter().find(|(word, _)| *word == text);
        let text = words.map_or(text, |&(_, meant)| meant);
        let credential = |error| UriError::Credential { key, error };
        let given = match self.kind {
            Kind::Controller => Some(Given::Controller(table::find(text)?.name)),
            Kind::Domain(domain) => value(&domain, text).map(Given::Value),
            Kind::Local => Local::read(text).map(Given::Local),
            Kind::Path => Some(Given::Path(text.into())),
            Kind::Passphrase => Some(Given::Passphrase(Secret::new(text).map_err(credential)?)),
            Kind::PublicKey => Some(Given::PublicKey(text.parse().map_err(credential)?)),
            Kind::Text(most) => (text.len() <= most).then(|| Given::Text(text.into())),
            Kind::TypeOfService => {
                type_of_service(text).map(|octet| Given::Value(Value::Number(f64::from(octet))))
            }
        };
        given.ok_or_else(|| UriError::Value {
            key,
            found: text.into(),
            expected: self.expected(),
        })
    }
}

fn value(domain: &Domain, text: &str) -> Option<Value> {
    let bare = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b'_');
    let with_unit = |unit: &str| match bare {
        true => Cow::Owned(format!("{text}{unit}")),
        false => Cow::Borrowed(text),
    };
    let unlimited = text == "unlimited";
    let value = match *domain {
        Domain::Span { max: Span::MAX, .. } if unlimited => Value::Span(Span::MAX),
        Domain::Rate { max: Rate::MAX, .. } if unlimited => Value::Rate(Rate::MAX),
        Domain::Span { .. } => Value::Span(with_unit("ms").parse().ok()?),
        Domain::Rate { .. } => Value::Rate(with_unit("bps").parse().ok()?),
        Domain::Bytes { .. } => Value::Bytes(with_unit("B").parse().ok()?),
        Domain::Number { .. } | Domain::Whole { .. } => Value::Number(text.parse().ok()?),
        Domain::Flag => Value::Flag(match text {
            "1" | "true" | "yes" | "on" => true,
            "0" | "false" | "no" | "off" => false,
            _ => return None,
        }),
        Domain::Choice(choices) => {
            let choice = choices.iter().find(|choice| **choice == text)?;
            Value::Text(Cow::Borrowed(choice))
        }
    };
    domain.admits(&value).then_some(value)
}

fn type_of_service(text: &str) -> Option<u8> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let octet = u8::from_str_radix(digits, radix).ok();
    octet.filter(|octet| octet % 4 == 0 && !digits.starts_with('+'))
}

/// The controller of a URI that names none.
pub(super) fn default_controller() -> &'static Row {
    let default = |row: &&Row| row.name == table::DEFAULT_FOR_SECTIONS;
    // The default is one of the table; its first row only stands for the impossible.
    table::TABLE
        .iter()
        .find(default)
        .unwrap_or(&table::TABLE[0])
}

const COMITY: &[Scheme] = &[Scheme::Comity];
const BARE: &[Scheme] = &[Scheme::Udp, Scheme::Rtp];
const SOCKETS: &[Scheme] = &[Scheme::Comity, Scheme::Udp, Scheme::Rtp];

const fn span(min: Span, max: Span) -> Kind {
    Kind::Domain(Domain::Span { min, max })
}

const fn bytes(min: u64, max: u64) -> Kind {
    Kind::Domain(Domain::Bytes {
        min: Bytes::new(min),
        max: Bytes::new(max),
    })
}

const fn choice(choices: &'static [&'static str]) -> Kind {
    Kind::Domain(Domain::Choice(choices))
}

const fn key(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    schemes: &'static [Scheme],
    summary: &'static str,
) -> Key {
    Key {
        name,
        aliases: &[],
        kind,
        words: &[],
        default,
        summary,
        schemes,
        only: None,
    }
}

impl Key {
    const fn or(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    const fn also(mut self, words: &'static [(&'static str, &'static str)]) -> Self {
        self.words = words;
        self
    }

    const fn only(mut self, mode: Mode) -> Self {
        self.only = Some(mode);
        self
    }
}

/// Every key, in the order of the documentation and of a printed URI.
pub const KEYS: &[Key] = &[
    key("mode", choice(&["caller", "listener"]), "", COMITY,
        "Who opens the connection. Without it, a URI with a host calls that host, and one without a host (or with `0.0.0.0` or `[::]`) listens."),
    key("bind", Kind::Local, "", SOCKETS,
        "The local address, port or both that packets leave from; for a listener without a host, the address it listens on; for multicast, the address of the interface.")
        .or(&["adapter"]),
    key("latency", span(Span::from_millis(1), Span::from_secs(3_600)), "120ms", COMITY,
        "From when a section is given to when it is due at the other end, the time on the path included: SRT counts that extra. The larger one of both ends is that of the connection. Three to four round trips leave room for repeating what is lost."),
    key("cc", Kind::Controller, table::DEFAULT_FOR_SECTIONS, COMITY,
        "The congestion controller, a name of [controllers.md](controllers.md); its parameters are keys too, as in `cc.beta=0.8`."),
    key("maxbw", Kind::Domain(Domain::Rate { min: Rate::from_kbps(1), max: Rate::MAX }), "unlimited", COMITY,
        "The most that is ever sent, headers included, whatever the controller allows. Acknowledgements do not wait for it, but count."),
    key("reliability", choice(&["timeline", "none", "full"]), "", COMITY,
        "How long lost bytes are sent again: until the deadline, never, or for ever. Without it `timeline`, but `none` with the controllers `iftp` and `psp`, whose papers send nothing again."),
    key("drop", choice(&["expired", "infeasible", "never"]), "infeasible", COMITY,
        "When the sender gives a section up: after its deadline, as soon as it cannot be met, or never. `1` and `0`, as SRT's `tlpktdrop` has them, are `infeasible` and `never`.")
        .or(&["tlpktdrop"])
        .also(&[("1", "infeasible"), ("true", "infeasible"), ("yes", "infeasible"), ("on", "infeasible"),
            ("0", "never"), ("false", "never"), ("no", "never"), ("off", "never")]),
    key("deliver", choice(&["early", "paced"]), "paced", COMITY,
        "When the receiver hands a section over: as soon as it is complete, or at its deadline."),
    key("passphrase", Kind::Passphrase, "", COMITY,
        "The secret that both ends share. Other users of a host can read command lines. Never printed."),
    key("key", Kind::Path, "", COMITY,
        "The file of this end's own static key, from `comity keygen`."),
    key("peerkey", Kind::PublicKey, "", COMITY,
        "The listener's public key.").only(Mode::Caller),
    key("allow", Kind::Path, "", COMITY,
        "The file of the public keys that are let in, one on a line. Without it everybody is who knows the listener's key.")
        .only(Mode::Listener),
    key("insecure", Kind::Domain(Domain::Flag), "false", COMITY,
        "No protection whatsoever: everybody on the way can read, change and forge packets."),
    key("streamid", Kind::Text(512), "", COMITY,
        "What the caller says to the listener about the stream that it wants or brings."),
    key("payload", bytes((LEAST_DATAGRAM - SEALING) as u64, MOST_PAYLOAD), "1423B", COMITY,
        "The most protected bytes of a packet, where the path carries them; 57 more with IPv4 and 77 with IPv6 make the packet on the wire.")
        .or(&["payloadsize"]),
    key("payload", bytes(188, 65_507), "1316B", BARE,
        "The most bytes of media in a datagram: 1316 are seven packets of an MPEG transport stream.")
        .or(&["payloadsize", "pkt_size"]),
    key("mtu", bytes(1_280, MOST_PAYLOAD + OVERHEAD), "", COMITY,
        "The largest IP packet, where the path carries it; sets payload to 77 bytes less.")
        .or(&["mss"]),
    key("ecn", Kind::Domain(Domain::Flag), "true", COMITY,
        "Whether packets ask the network to mark rather than to drop."),
    key("conntimeo", span(Span::from_millis(LEAST_CONNECT_TIMEOUT.as_millis() as u64), Span::from_secs(3_600)), "3s", COMITY,
        "How long one attempt to connect may take."),
    key("peeridletimeo", span(Span::from_millis(100), Span::from_secs(86_400)), "5s", COMITY,
        "The connection is given up when nothing has arrived for so long."),
    key("keepalive", span(Span::from_millis(10), Span::from_secs(86_400)), "1s", COMITY,
        "After how long without anything to send a packet is sent all the same, so that the peer and what is on the way know of the connection; at the latest after a third of the peer's `peeridletimeo`."),
    key("linger", span(Span::ZERO, Span::from_secs(3_600)), "1s", COMITY,
        "How long a connection that is being closed waits for what is still under way. A bare number is in milliseconds here too, where SRT has seconds."),
    key("reconnect", Kind::Domain(Domain::Flag), "true", COMITY,
        "Whether the caller calls again when the connection is lost.").only(Mode::Caller),
    key("iptos", Kind::TypeOfService, "0", SOCKETS,
        "The type of service in the IP header, as a whole byte whose lowest two bits, those of ECN, are zero."),
    key("ttl", Kind::Domain(Domain::Whole { min: 1, max: 255, unit: "hops" }), "", SOCKETS,
        "How many routers packets pass at most; without it, as the system has it: 64, and 1 for multicast on most.")
        .or(&["ipttl"]),
    key("sndbuf", bytes(65_536, 1 << 32), "16MiB", COMITY,
        "The most bytes of sections that wait to be sent."),
    key("rcvbuf", bytes(65_536, 1 << 32), "16MiB", COMITY,
        "The most bytes of sections that are collected or wait to be handed over."),
    key("sndbuf", bytes(4_096, 1 << 30), "2MiB", BARE,
        "What the socket is asked to hold that the network has not taken yet."),
    key("rcvbuf", bytes(4_096, 1 << 30), "8MiB", BARE,
        "What the socket is asked to hold that has not been read yet.")
        .or(&["buffer_size"]),
];

/// The most protected bytes of a packet.
const MOST_PAYLOAD: u64 = (MOST_DATAGRAM - SEALING) as u64;

/// What an IPv6 packet has besides its protected payload: IPv6 (40), UDP (8), header and tag (29).
pub(super) const OVERHEAD: u64 = 77;
