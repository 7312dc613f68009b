//! The configuration of an emulator, and its errors.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use comity_link::{ConfigError, LinkConfig, RateProfile};
use comity_units::{DataSize, Rate, Seed, Span};

/// The configuration of an emulator.
///
/// ```
/// use comity_emulator::Config;
/// use comity_link::{Limit, LinkConfig, Queue};
/// use comity_units::{Rate, Span};
///
/// let link = LinkConfig {
///     queue: Queue::DropTail(Limit::Packets(60)),
///     ..LinkConfig::new(Rate::from_mbps(8), Span::from_millis(20))
/// };
/// let config = Config {
///     forward: link.clone(),
///     backward: link,
///     ..Config::new("127.0.0.1:0".parse()?, "127.0.0.1:9000".parse()?)
/// };
/// assert_eq!(config.wire_overhead().get(), 28);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    /// The address for callers; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The destination of callers' packets.
    pub target: SocketAddr,
    /// Callers whose packets go to other targets, as (caller, target).
    pub routes: Vec<(SocketAddr, SocketAddr)>,
    /// The link from the callers to the target.
    pub forward: LinkConfig,
    /// The link from the target to the callers.
    pub backward: LinkConfig,
    /// The seed of both links' random streams.
    pub seed: Seed,
    /// The bytes of a packet on the wire in addition to its payload; `None` for the headers of IP
    /// and UDP.
    pub overhead: Option<DataSize>,
    /// How long before a release the processor spins, to avoid the delay of waking up.
    pub spin: Span,
    /// The limits under any load.
    pub limits: Limits,
    /// The number of offers of each direction to keep for the report, with their outcomes.
    pub record: usize,
}

/// The limits of an emulator under any load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of callers at a time. Packets of further callers are dropped.
    pub callers: usize,
    /// The idle time after which a caller is forgotten.
    pub idle: Span,
    /// The maximum memory for the packets of one direction. Duplicates on a link with CoDel may
    /// need the same again.
    pub memory: DataSize,
    /// The timing error above which a release counts as late. If more than 1 % of the releases are
    /// late, the emulator is overloaded.
    pub late: Span,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            callers: 512,
            idle: Span::from_secs(60),
            memory: DataSize::new(256 << 20),
            late: Span::from_millis(1),
        }
    }
}

impl Config {
    /// An emulator with ideal links.
    pub fn new(listen: SocketAddr, target: SocketAddr) -> Self {
        Self {
            listen,
            target,
            routes: Vec::new(),
            forward: LinkConfig::default(),
            backward: LinkConfig::default(),
            seed: Seed::new(1),
            overhead: None,
            spin: Span::from_micros(60),
            limits: Limits::default(),
            record: 0,
        }
    }

    /// The destination of a caller's packets.
    pub(crate) fn target_of(&self, caller: SocketAddr) -> SocketAddr {
        let mut routes = self.routes.iter();
        let own = routes.find(|(from, _)| *from == caller);
        own.map_or(self.target, |(_, target)| *target)
    }

    /// The headers of each packet in bytes: 20 of IPv4 or 40 of IPv6, plus 8 of UDP, unless
    /// `overhead` is set.
    pub fn wire_overhead(&self) -> DataSize {
        let headers = if self.target.is_ipv4() { 28 } else { 48 };
        self.overhead.unwrap_or(DataSize::new(headers))
    }
}

/// A direction through an emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the callers to the target.
    Forward,
    /// From the target to the callers.
    Backward,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Forward => "to the target",
            Self::Backward => "back to the callers",
        })
    }
}

/// Why an emulator cannot start, or has ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The address to listen on is not available.
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        reason: io::Error,
    },
    /// The configuration of a link is invalid.
    Link {
        /// The direction of the link.
        direction: Direction,
        /// The reason.
        reason: ConfigError,
    },
    /// The rate of a link is zero, so it would never pass a packet.
    NoRate {
        /// The direction of the link.
        direction: Direction,
    },
    /// The overhead is larger than a packet can be.
    Overhead {
        /// The configured overhead.
        given: DataSize,
    },
    /// A limit is too small.
    Limit {
        /// The limit.
        name: &'static str,
    },
    /// The target is the address that the emulator listens on.
    TargetIsSelf {
        /// The address.
        address: SocketAddr,
    },
    /// A name has no address.
    Unresolvable {
        /// The name.
        name: String,
        /// The system's error.
        reason: io::Error,
    },
    /// The target is unreachable.
    Unreachable {
        /// The target.
        target: SocketAddr,
        /// The system's error.
        reason: io::Error,
    },
    /// The system refused something essential.
    System {
        /// Its purpose.
        purpose: &'static str,
        /// The system's error.
        reason: io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen { address, reason } => write!(f, "cannot listen on {address}: {reason}"),
            Self::Link { direction, reason } => write!(f, "the link {direction}: {reason}"),
            Self::NoRate { direction } => write!(
                f,
                "the link {direction} has the rate 0bps, at which nothing ever arrives; expected a rate above zero, or `unlimited`"
            ),
            Self::Overhead { given } => write!(
                f,
                "{given} of overhead for each packet; expected at most {MAX_OVERHEAD}"
            ),
            Self::Limit { name } => write!(f, "the limit of {name} is 0; expected more"),
            Self::TargetIsSelf { address } => write!(
                f,
                "the target {address} is the address to listen on: every packet would come back for ever"
            ),
            Self::Unresolvable { name, reason } => write!(
                f,
                "cannot resolve {name:?}: {reason}; expected host:port such as 127.0.0.1:9000"
            ),
            Self::Unreachable { target, reason } => write!(f, "cannot reach {target}: {reason}"),
            Self::System { purpose, reason } => write!(f, "{purpose}: {reason}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Listen { reason, .. }
            | Self::Unresolvable { reason, .. }
            | Self::Unreachable { reason, .. }
            | Self::System { reason, .. } => Some(reason),
            _ => None,
        }
    }
}

/// The maximum overhead, larger than any stack of headers.
const MAX_OVERHEAD: DataSize = DataSize::new(65_535);

impl Config {
    /// Refuses an impossible configuration before any socket is opened.
    pub(crate) fn validate(&self) -> Result<(), Error> {
        for (direction, link) in [
            (Direction::Forward, &self.forward),
            (Direction::Backward, &self.backward),
        ] {
            let is_dead = match &link.rate {
                RateProfile::Constant(rate) => *rate == Rate::ZERO,
                RateProfile::Steps(steps) => {
                    !steps.is_empty() && steps.iter().all(|(_, rate)| *rate == Rate::ZERO)
                }
                RateProfile::Unlimited | RateProfile::Deliveries(_) => false,
            };
            if is_dead {
                return Err(Error::NoRate { direction });
            }
        }
        if self.wire_overhead() > MAX_OVERHEAD {
            let given = self.wire_overhead();
            return Err(Error::Overhead { given });
        }
        let limits = [
            ("callers", self.limits.callers == 0),
            ("idle time", self.limits.idle.is_zero()),
            ("memory", self.limits.memory == DataSize::ZERO),
        ];
        match limits.into_iter().find(|(_, is_zero)| *is_zero) {
            Some((name, _)) => Err(Error::Limit { name }),
            None => Ok(()),
        }
    }
}

/// The address of `host:port`. If there are several, the first of the same family as `like`.
///
/// # Errors
/// If it has no address.
pub fn resolve(name: &str, like: Option<SocketAddr>) -> Result<SocketAddr, Error> {
    let unresolvable = |reason| Error::Unresolvable {
        name: name.into(),
        reason,
    };
    let found: Vec<SocketAddr> = name.to_socket_addrs().map_err(unresolvable)?.collect();
    let of_kind = like.and_then(|like| {
        found
            .iter()
            .find(|address| address.is_ipv4() == like.is_ipv4())
    });
    of_kind.or(found.first()).copied().ok_or_else(|| {
        unresolvable(io::Error::new(
            io::ErrorKind::NotFound,
            "the name has no address",
        ))
    })
}
