//! The settings of a host.

use std::net::IpAddr;

use comity_congestion::table::{self, ParameterError, Parameters, Row, Setup, UnknownController};
use comity_congestion::{Controller, Meter};
use comity_tcp as tcp;
use comity_units::{DataSize, Seed, Span};

use crate::section::Framing;

/// The minimum MTU of a host: every IPv4 host accepts packets of this size (RFC 791).
pub const MIN_MTU: u32 = 576;
/// The minimum MTU of a host with an IPv6 address (RFC 8200, section 5).
pub const MIN_MTU_V6: u32 = 1_280;

/// What each connection may hold in each of its buffers, regardless of the others.
pub(crate) const MIN_SHARE: usize = 16 << 10;

/// The settings of a [`Host`](crate::Host).
#[derive(Clone, Debug)]
pub struct Config {
    /// The host's own addresses. Packets to other addresses are dropped.
    pub addresses: Vec<IpAddr>,
    /// The maximum IP packet size of its interface, in bytes.
    pub mtu: u32,
    /// The settings of every connection. The host sets `mss`, `initial_sequence` and `metered`, and
    /// the seed of `skip_segments` unless that is `None`. With `timeline`, every connection offers
    /// to be time-lined, and is time-lined if its peer offers it too.
    pub tcp: tcp::Config,
    /// How sections are marked in the stream.
    pub framing: Framing,
    /// The Unix time of [`Time::ZERO`](comity_units::Time::ZERO) in microseconds, for the headers
    /// of sections.
    pub epoch_us: u64,
    /// The congestion controller, by its name in [`comity_congestion::table`].
    pub controller: String,
    /// The controller's parameters.
    pub parameters: Parameters,
    /// The send buffer of each connection in bytes. The receive buffer is at most
    /// [`tcp::Config::receive_buffer`].
    pub send_buffer: usize,
    /// The maximum number of connections, including those in TIME-WAIT. At the limit, a new
    /// connection replaces the oldest one in TIME-WAIT; if there is none, it is refused.
    pub max_connections: usize,
    /// The maximum number of bytes in the send buffers of all connections. When half of it is used,
    /// each connection gets an equal share of the other half, but at least 16 KiB, even beyond the
    /// limit. Sections that were submitted with deadlines count, but only `send_buffer` limits
    /// them.
    pub max_send_memory: usize,
    /// The maximum number of bytes in the receive buffers of all connections, as far as windows let
    /// peers fill them. When half of it is promised, each new connection gets an equal share of the
    /// other half, but at least 16 KiB, even beyond the limit.
    pub max_receive_memory: usize,
    /// How long a peer may keep its window closed, or acknowledge less than a segment, while data
    /// waits for it (RFC 6429).
    pub zero_window_timeout: Span,
    /// How long [`Host::connect`](crate::Host::connect) tries.
    pub connect_timeout: Span,
    /// How long the handshake of a connection that a peer opened may take.
    pub handshake_timeout: Span,
    /// How long a closed connection that no application holds waits for the peer's FIN, or for the
    /// acknowledgement of an eighth of its data.
    pub orphan_timeout: Span,
    /// The probing of idle connections; `None` for no probes, which is the default (RFC 9293,
    /// section 3.8.4).
    pub keep_alive: Option<KeepAlive>,
    /// The maximum number of resets per second that answer segments of unknown connections.
    pub resets_per_second: u32,
}

/// When an idle connection is probed (RFC 9293, section 3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// The idle time before the first probe.
    pub idle: Span,
    /// The time between probes.
    pub interval: Span,
    /// The number of unanswered probes after which the connection ends.
    pub probes: u32,
}

impl Config {
    /// The settings of a modern host with these addresses: CUBIC over [`tcp::Config::MODERN`],
    /// buffers of 1 MiB, packets of 1,500 bytes.
    pub fn new(addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        Self {
            addresses: addresses.into_iter().collect(),
            mtu: 1_500,
            tcp: tcp::Config {
                receive_buffer: DataSize::new(1 << 20),
                give_up_after: std::num::NonZeroU32::new(15),
                skip_segments: Some(Seed::new(0)),
                ..tcp::Config::MODERN
            },
            framing: Framing::None,
            epoch_us: 0,
            controller: "cubic".into(),
            parameters: Parameters::new(),
            send_buffer: 1 << 20,
            max_connections: 4_096,
            max_send_memory: 256 << 20,
            max_receive_memory: 256 << 20,
            zero_window_timeout: Span::from_secs(120),
            connect_timeout: Span::from_secs(60),
            handshake_timeout: Span::from_secs(30),
            orphan_timeout: Span::from_secs(60),
            keep_alive: None,
            resets_per_second: 1_000,
        }
    }

    /// Checks the settings, and returns the row of the controller in the table.
    ///
    /// # Errors
    /// [`ConfigError`] if a setting is invalid.
    pub fn check(&self) -> Result<&'static Row, ConfigError> {
        if self.addresses.is_empty() {
            return Err(ConfigError::NoAddress);
        }
        let has_v6 = self.addresses.iter().any(IpAddr::is_ipv6);
        let minimum = if has_v6 { MIN_MTU_V6 } else { MIN_MTU };
        if self.mtu < minimum || self.mtu > u32::from(u16::MAX) {
            return Err(ConfigError::Mtu {
                mtu: self.mtu,
                minimum,
            });
        }
        if self.tcp.receive_buffer.get() < u64::from(self.mtu) {
            return Err(ConfigError::Buffer {
                name: "tcp.receive_buffer",
                bytes: self.tcp.receive_buffer.get(),
                mtu: self.mtu,
            });
        }
        if self.send_buffer < self.mtu as usize {
            return Err(ConfigError::Buffer {
                name: "send_buffer",
                bytes: self.send_buffer as u64,
                mtu: self.mtu,
            });
        }
        if !self.tcp.handshake {
            return Err(ConfigError::Simulated);
        }
        let row = table::find(&self.controller).map_err(ConfigError::Controller)?;
        if !row.drives_tcp {
            return Err(ConfigError::NotForTcp { name: row.name });
        }
        self.control(row, self.mtu, Seed::new(0))?;
        Ok(row)
    }

    /// A controller for segments of `mss` bytes, and its half at the receiver, if it has one.
    pub(crate) fn control(&self, row: &Row, mss: u32, seed: Seed) -> Result<Control, ConfigError> {
        let setup = Setup {
            seed,
            // The length of a wave follows the window, so the window needs a limit.
            max_window: if row.has_meter() {
                self.tcp.receive_buffer
            } else {
                DataSize::MAX
            },
            ..Setup::new(DataSize::new(u64::from(mss)))
        };
        let controller = row
            .build(&setup, &self.parameters)
            .map_err(ConfigError::Parameter)?;
        let meter = row.build_meter(&setup, &self.parameters).transpose();
        let meter = meter.map_err(ConfigError::Parameter)?;
        Ok(Control { controller, meter })
    }
}

/// The two halves of a controller.
pub(crate) struct Control {
    pub(crate) controller: Box<dyn Controller>,
    pub(crate) meter: Option<Box<dyn Meter>>,
}

/// Why the settings of a host are invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// A buffer is too small.
    #[error("{name}: {bytes} bytes, expected at least one packet of {mtu}")]
    Buffer {
        /// The setting.
        name: &'static str,
        /// Its value.
        bytes: u64,
        /// The MTU.
        mtu: u32,
    },
    /// No controller has this name.
    #[error("controller: {0}")]
    Controller(UnknownController),
    /// The MTU is out of range.
    #[error("mtu: {mtu} bytes, expected {minimum} to 65535")]
    Mtu {
        /// The value.
        mtu: u32,
        /// The minimum for these addresses.
        minimum: u32,
    },
    /// The host has no address.
    #[error("addresses: none, expected at least one")]
    NoAddress,
    /// The controller needs a feature that TCP does not have.
    #[error("controller: `{name}` cannot drive TCP, expected one that can, such as `cubic`")]
    NotForTcp {
        /// Its name.
        name: &'static str,
    },
    /// A parameter of the controller is invalid.
    #[error("controller: {0}")]
    Parameter(ParameterError),
    /// The settings are only for the simulator.
    #[error("tcp: real networks need `handshake`")]
    Simulated,
}
