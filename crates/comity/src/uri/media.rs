//! `udp://` and `rtp://`.

use core::fmt;
use std::net::IpAddr;

use comity_units::Bytes;

use super::address::{Host, Local};
use super::error::UriError;
use super::keys::{Given, Scheme};
use super::settings::Settings;
use super::{read_address, write_settings};

/// Media in bare datagrams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaUri {
    /// Which way they go.
    pub direction: Direction,
    /// The local address they leave from, or that of the interface where a group is joined; a port for those
    /// that are sent.
    pub bind: Option<Local>,
    /// The most bytes of media in a datagram, 188 to 65,507.
    pub payload: u32,
    /// The type of service in the IP header; the lowest two bits are zero.
    pub type_of_service: u8,
    /// How many routers they pass at most; `None` for what the system has.
    pub time_to_live: Option<u8>,
    /// What the socket is asked to hold that the network has not taken yet.
    pub send_buffer: Bytes,
    /// What the socket is asked to hold that has not been read yet.
    pub receive_buffer: Bytes,
}

/// Which way datagrams go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From anybody who sends to this port.
    From {
        /// The multicast group to join, or the local address to listen on; `None` for all local addresses.
        address: Option<IpAddr>,
        /// The port; 0 for any.
        port: u16,
    },
    /// To this host.
    To {
        /// The host, or the multicast group.
        host: Host,
        /// The port, not 0.
        port: u16,
    },
}

impl MediaUri {
    pub(super) fn read(
        scheme: Scheme,
        address: &str,
        settings: &Settings,
    ) -> Result<Self, UriError> {
        let wrong = |expected| UriError::Address {
            found: address.into(),
            expected,
        };
        let direction = match (address.strip_prefix('@'), address) {
            (Some(local), _) => {
                let (host, port) = read_address(local, scheme)?;
                let address = match host {
                    None => None,
                    Some(Host::Ip(ip)) => Some(ip).filter(|ip| !ip.is_unspecified()),
                    Some(Host::Name(_)) => {
                        return Err(wrong("an address behind \"@\", of a group or of this host"));
                    }
                };
                Direction::From { address, port }
            }
            (None, _) => match read_address(address, scheme)? {
                (None, port) => Direction::From {
                    address: None,
                    port,
                },
                (Some(host), port) if host.is_unspecified() => Direction::From {
                    address: None,
                    port,
                },
                (Some(_), 0) => return Err(wrong("a port from 1 to 65535 to send to")),
                (Some(host), port) => Direction::To { host, port },
            },
        };
        let bind = match settings.get("bind") {
            Some(Given::Local(local)) => Some(local),
            _ => None,
        };
        if let (Direction::From { address, .. }, Some(local)) = (&direction, bind) {
            let has_address = address.is_some_and(|ip| !ip.is_multicast());
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
            // The table keeps it below 2^16.
            payload: settings.bytes("payload").get() as u32,
            type_of_service: settings.octet("iptos").unwrap_or(0),
            time_to_live: settings.octet("ttl"),
            send_buffer: settings.bytes("sndbuf"),
            receive_buffer: settings.bytes("rcvbuf"),
        })
    }

    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, scheme: Scheme) -> fmt::Result {
        match &self.direction {
            Direction::From {
                address: None,
                port,
            } => write!(f, "{scheme}://:{port}")?,
            Direction::From {
                address: Some(ip),
                port,
            } => write!(f, "{scheme}://@{}:{port}", Host::Ip(*ip))?,
            Direction::To { host, port } => write!(f, "{scheme}://{host}:{port}")?,
        }
        let pairs = [
            ("bind", self.bind.map(|local| local.to_string())),
            ("payload", Some(self.payload.to_string())),
            ("iptos", Some(self.type_of_service.to_string())),
            ("ttl", self.time_to_live.map(|hops| hops.to_string())),
            ("sndbuf", Some(self.send_buffer.to_string())),
            ("rcvbuf", Some(self.receive_buffer.to_string())),
        ];
        write_settings(f, scheme, &pairs)
    }
}
