//! `udp://` and `rtp://`.

use core::fmt;

use comity::uri::parts::{
    BIND, Query, check_secrets, read_address, split, without_user, write_settings,
};
use comity::uri::{Host, Key, Kind, Local, UriError};
use comity_congestion::table::{Domain, Value};
use comity_media::rtp::TRANSPORT_STREAM;
use comity_units::DataSize;

use super::foreign;

/// Media in bare datagrams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MediaUri {
    /// The direction of the datagrams.
    pub(crate) direction: Direction,
    /// The local address for sending, or the interface on which to join a group. It has a port only
    /// for sending.
    pub(crate) bind: Option<Local>,
    /// The maximum number of media bytes in a datagram, 188 to 65,507.
    pub(crate) payload: u32,
    /// The RTP payload type of a transport stream.
    pub(crate) payload_type: u8,
    /// The type of service in the IP header; the lowest two bits are zero.
    pub(crate) type_of_service: u8,
    /// The maximum number of routers on the path; `None` for the system's default.
    pub(crate) time_to_live: Option<u8>,
    /// The requested size of the socket's send buffer.
    pub(crate) send_buffer: DataSize,
    /// The requested size of the socket's receive buffer.
    pub(crate) receive_buffer: DataSize,
}

/// The direction of datagrams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From any sender to this port.
    From {
        /// The multicast group to join, or the local address to listen on; `None` for all local
        /// addresses.
        address: Option<Host>,
        /// The port; 0 for any.
        port: u16,
    },
    /// To this host.
    To {
        /// The host, or the multicast group.
        host: Host,
        /// The port, at least 1.
        port: u16,
    },
}

const fn bytes(min: u64, max: u64) -> Kind {
    Kind::Domain(Domain::Bytes {
        min: DataSize::new(min),
        max: DataSize::new(max),
    })
}

/// The keys of `udp://` and `rtp://`, in the order of the documentation and of a printed URI.
pub(crate) static KEYS: [Key; 7] = [
    BIND,
    Key::new(
        "payload",
        bytes(188, 65_507),
        "1316B",
        "The most bytes of media in a datagram. 1316 bytes are seven packets of an MPEG transport \
         stream.",
    )
    .or(&["payloadsize", "pkt_size"]),
    Key::new(
        "iptos",
        Kind::TypeOfService,
        "0",
        "The type of service in the IP header, as a whole byte. Its lowest two bits belong to ECN \
         and must be zero.",
    ),
    Key::new(
        "ttl",
        Kind::Domain(Domain::Whole {
            min: 1,
            max: 255,
            unit: "hops",
        }),
        "",
        "The maximum number of routers on the path. The default is that of the system: 64, and 1 \
         for multicast on most systems.",
    )
    .or(&["ipttl"]),
    Key::new(
        "sndbuf",
        bytes(4_096, 1 << 30),
        "2MiB",
        "The size of the send buffer that Comity requests for the socket.",
    ),
    Key::new(
        "rcvbuf",
        bytes(4_096, 1 << 30),
        "8MiB",
        "The size of the receive buffer that Comity requests for the socket.",
    )
    .or(&["buffer_size"]),
    Key::new(
        "pt",
        Kind::Domain(Domain::Whole {
            min: 33,
            max: 127,
            unit: "",
        }),
        "33",
        "The RTP payload type of a transport stream. An input also accepts the types 33 and 32 \
         (MPEG video). Only for rtp.",
    )
    .or(&["payload_type"]),
];

/// The keys of a scheme: all but the last are common.
fn keys_of(scheme: &str) -> &'static [Key] {
    match scheme {
        "rtp" => &KEYS,
        _ => KEYS.split_last().map_or(&[], |(_, common)| common),
    }
}

/// The default of [`KEYS`].
pub(crate) const PAYLOAD: u32 = 1_316;
const SEND_BUFFER: DataSize = DataSize::new(2 << 20);
const RECEIVE_BUFFER: DataSize = DataSize::new(8 << 20);

impl MediaUri {
    /// Reads the text after `scheme://`.
    pub(super) fn read(scheme: &'static str, rest: &str) -> Result<Self, UriError> {
        check_secrets(rest)?;
        let (address, query) = split(rest)?;
        let query = Query::read(keys_of(scheme), scheme, query, foreign::hint)?;
        let bytes = |name| match query.value(name) {
            Some(Value::Bytes(bytes)) => Some(*bytes),
            _ => None,
        };
        // The table limits the range, so the conversion loses nothing.
        let octet = |name| match query.value(name) {
            Some(Value::Number(number)) => Some(*number as u8),
            _ => None,
        };
        let direction = read_direction(scheme, address)?;
        let bind = query.local("bind");
        if let (Direction::From { address, .. }, Some(local)) = (&direction, bind) {
            let ip = address.as_ref().and_then(Host::ip);
            let has_address = ip.is_some_and(|ip| !ip.is_multicast());
            if local.port != 0 || has_address {
                return Err(UriError::Contradiction {
                    first: "bind",
                    second: "the address to listen on",
                });
            }
        }
        Ok(Self {
            direction,
            bind,
            payload: bytes("payload").map_or(PAYLOAD, |bytes| bytes.get() as u32),
            payload_type: octet("pt").unwrap_or(TRANSPORT_STREAM),
            type_of_service: octet("iptos").unwrap_or(0),
            time_to_live: octet("ttl"),
            send_buffer: bytes("sndbuf").unwrap_or(SEND_BUFFER),
            receive_buffer: bytes("rcvbuf").unwrap_or(RECEIVE_BUFFER),
        })
    }

    /// The address that ffmpeg would listen on for this input URI. ffmpeg reads
    /// `udp://127.0.0.1:5000` from port 5000 of this host, and `udp://239.1.2.3:5000` from a group.
    /// `None` for a host name, and for a URI with a source port or address.
    pub(crate) fn source(&self) -> Option<(Option<Host>, u16)> {
        match &self.direction {
            Direction::From { address, port } => Some((address.clone(), *port)),
            Direction::To { host, port } => {
                let ip = host.ip()?;
                let is_free = self
                    .bind
                    .is_none_or(|bind| ip.is_multicast() && bind.port == 0);
                is_free.then_some((Some(host.clone()), *port))
            }
        }
    }

    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, scheme: &str) -> fmt::Result {
        match &self.direction {
            Direction::From {
                address: None,
                port,
            } => write!(f, "{scheme}://:{port}")?,
            Direction::From {
                address: Some(host),
                port,
            } => write!(f, "{scheme}://@{host}:{port}")?,
            Direction::To { host, port } => write!(f, "{scheme}://{host}:{port}")?,
        }
        let mut pairs = Vec::new();
        let mut add = |name: &str, text: Option<String>| {
            pairs.extend(text.map(|text| (name.to_owned(), text)));
        };
        let other = |bytes: DataSize, usual| (bytes != usual).then(|| bytes.to_string());
        add("bind", self.bind.map(|local| local.to_string()));
        let payload = self.payload;
        add("payload", (payload != PAYLOAD).then(|| payload.to_string()));
        let octet = self.type_of_service;
        add("iptos", (octet != 0).then(|| octet.to_string()));
        add("ttl", self.time_to_live.map(|hops| hops.to_string()));
        add("sndbuf", other(self.send_buffer, SEND_BUFFER));
        add("rcvbuf", other(self.receive_buffer, RECEIVE_BUFFER));
        let kind = self.payload_type;
        add("pt", (kind != TRANSPORT_STREAM).then(|| kind.to_string()));
        write_settings(f, &pairs)
    }
}

fn read_direction(scheme: &str, address: &str) -> Result<Direction, UriError> {
    let example = format!("{scheme}://host:5000");
    let wrong = |expected: &str| UriError::Address {
        found: without_user(address),
        expected: expected.into(),
    };
    if let Some(local) = address.strip_prefix('@') {
        let (host, port) = read_address(local, &example)?;
        let address = match host {
            Some(Host::Name(_)) => {
                return Err(wrong("an address behind \"@\", of a group or of this host"));
            }
            host => host.filter(|host| !host.is_unspecified()),
        };
        return Ok(Direction::From { address, port });
    }
    match read_address(address, &example)? {
        (Some(host), port) if !host.is_unspecified() => match port {
            0 => Err(wrong("a port from 1 to 65535 to send to")),
            port => Ok(Direction::To { host, port }),
        },
        (_, port) => Ok(Direction::From {
            address: None,
            port,
        }),
    }
}
