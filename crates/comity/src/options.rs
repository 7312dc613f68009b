//! What endpoints and connections are configured with.

use std::time::Duration;

use comity_congestion::table::{self, Parameters as ControllerParameters, Row, Setup};
use comity_transport::datagram::{Config, MIN_RATE};
use comity_transport::timeline::{Deliver, DropPolicy, Reliability};
use comity_transport::wire::limits::{
    DATA_HEADER, MAX_METER_PARAMETERS, MAX_STREAM_NAME, MIN_INITIAL, TAG,
};
use comity_transport::wire::parameters::{self, Parameters};
use comity_units::{Bytes, Rate, Span};

use crate::error::OptionsError;
use crate::session::{
    Allow, CallerCredentials, ListenerCredentials, Passphrase, PresharedKey, PublicKey, StaticKey,
};
use crate::trace::Qlog;

/// What header and tag take of each datagram.
pub(crate) const SEALING: u32 = (DATA_HEADER + TAG) as u32;
/// The UDP payloads that may be asked for, in bytes.
pub(crate) const LEAST_DATAGRAM: u32 = 700;
pub(crate) const MOST_DATAGRAM: u32 = 65_000;
/// The shortest time that an attempt to connect may have.
pub(crate) const LEAST_CONNECT_TIMEOUT: Duration = Duration::from_millis(10);
/// What UDP and the longer IP header take of each packet on the wire.
const UDP_AND_IP: u32 = 8 + 40;
/// What of the type of service belongs to ECN (RFC 3168).
const ECN_BITS: u8 = 0b11;
/// What is left for texts that have no bound of their own in the transport parameters, in bytes.
const MOST_TEXT: usize = 576;

/// Valid options: those of the endpoint and those of each of its connections.
///
/// ```
/// use comity::Options;
/// use std::time::Duration;
///
/// let options = Options::builder()
///     .passphrase("correct horse battery")
///     .latency(Duration::from_millis(400))
///     .controller("cubic")
///     .build()?;
/// assert_eq!(options.latency(), Duration::from_millis(400));
///
/// let mistake = Options::builder().insecure().controller("cubik").build().unwrap_err();
/// assert_eq!(
///     mistake.to_string(),
///     r#"cc: there is no controller "cubik"; did you mean "cubic"? `comity list` tells of each"#
/// );
/// # Ok::<(), comity::OptionsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    credentials: Credentials,
    controller: &'static Row,
    controller_parameters: ControllerParameters,
    latency: Duration,
    connect_timeout: Duration,
    stream_name: Option<String>,
    most_connections: usize,
    most_served: usize,
    most_waiting: usize,
    marking: Marking,
    qlog: Option<Qlog>,
    config: Config,
}

#[derive(Clone, Debug)]
enum Credentials {
    Insecure,
    Shared(PresharedKey),
    Static {
        own: StaticKey,
        listener: Option<PublicKey>,
        allow: Option<Allow>,
    },
}

impl Options {
    /// Options to be chosen; every default is written at its method.
    pub fn builder() -> OptionsBuilder {
        OptionsBuilder::default()
    }

    /// The deadline of sections that name none, counted from their source time. Of a connection, the larger one
    /// of both ends holds.
    pub fn latency(&self) -> Duration {
        self.latency
    }

    /// What the user has to be warned of before anything is sent.
    pub fn warning(&self) -> Option<&'static str> {
        self.listener_credentials().ok()?.warning()
    }

    /// The name of the controller.
    pub fn controller(&self) -> &'static str {
        self.controller.name
    }

    pub(crate) fn row(&self) -> &'static Row {
        self.controller
    }

    pub(crate) fn controller_parameters(&self) -> &ControllerParameters {
        &self.controller_parameters
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn qlog(&self) -> Option<&Qlog> {
        self.qlog.as_ref()
    }

    pub(crate) fn marking(&self) -> Marking {
        self.marking
    }

    pub(crate) fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    pub(crate) fn most_connections(&self) -> usize {
        self.most_connections
    }

    pub(crate) fn most_served(&self) -> usize {
        self.most_served
    }

    pub(crate) fn most_waiting(&self) -> usize {
        self.most_waiting
    }

    pub(crate) fn caller_credentials(&self) -> Result<CallerCredentials, OptionsError> {
        Ok(match &self.credentials {
            Credentials::Insecure => CallerCredentials::Insecure,
            Credentials::Shared(key) => CallerCredentials::Shared(key.clone()),
            Credentials::Static {
                own,
                listener: Some(listener),
                ..
            } => CallerCredentials::Static {
                own: own.clone(),
                listener: *listener,
            },
            Credentials::Static { listener: None, .. } => {
                return Err(OptionsError::StaticKeyIncomplete {
                    missing: "the listener's public key",
                    purpose: "call",
                });
            }
        })
    }

    pub(crate) fn listener_credentials(&self) -> Result<ListenerCredentials, OptionsError> {
        Ok(match &self.credentials {
            Credentials::Insecure => ListenerCredentials::Insecure,
            Credentials::Shared(key) => ListenerCredentials::Shared(key.clone()),
            Credentials::Static {
                own,
                allow: Some(allow),
                ..
            } => ListenerCredentials::Static {
                own: own.clone(),
                allow: allow.clone(),
            },
            Credentials::Static { allow: None, .. } => {
                return Err(OptionsError::StaticKeyIncomplete {
                    missing: "whom to accept",
                    purpose: "listen",
                });
            }
        })
    }

    /// The transport parameters that the peer is told.
    pub fn parameters(&self) -> Parameters {
        let config = &self.config;
        Parameters {
            latency: self.latency.into(),
            // What the peer has to know is whether it may give up at deadlines.
            reliability: match config.reliability {
                _ if !config.enforces_deadlines() => parameters::Reliability::Full,
                Reliability::None => parameters::Reliability::None,
                _ => parameters::Reliability::Timeline,
            },
            deliver: match config.deliver {
                Deliver::Early => parameters::Deliver::Early,
                Deliver::Paced => parameters::Deliver::Paced,
            },
            max_datagram: u16::try_from(config.payload + SEALING)
                .unwrap_or(u16::MAX)
                .max(MIN_INITIAL as u16),
            idle_timeout: Span::from_millis(config.idle_timeout.as_millis()),
            initial_credit: config.receive_buffer,
            max_open_sections: config.receive_sections,
            max_ack_delay: config.ack_delay,
            stream_name: self.stream_name.clone(),
            meter: self
                .controller
                .has_meter()
                .then(|| self.controller.name.to_owned()),
            ecn: config.ecn,
            controller: Some(self.controller.name.to_owned()),
            meter_parameters: Some(self.controller_parameters.to_list())
                .filter(|list| self.controller.has_meter() && !list.is_empty()),
        }
    }
}

/// Options that are being chosen. Whatever is not chosen keeps its default.
#[derive(Clone, Debug)]
pub struct OptionsBuilder {
    passphrase: Option<String>,
    preshared_key: Option<PresharedKey>,
    static_key: Option<StaticKey>,
    listener_key: Option<PublicKey>,
    allow: Option<Allow>,
    is_insecure: bool,
    controller: String,
    controller_parameters: ControllerParameters,
    latency: Duration,
    reliability: Option<Reliability>,
    connect_timeout: Duration,
    idle_timeout: Duration,
    keep_alive: Duration,
    stream_name: Option<String>,
    most_connections: usize,
    most_served: usize,
    most_waiting: usize,
    datagram_size: u32,
    marking: Marking,
    qlog: Option<Qlog>,
    config: Config,
}

/// What the IP headers of an endpoint's packets have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marking {
    /// The type of service without the bits of ECN.
    pub(crate) type_of_service: u8,
    /// `None` for what the system has.
    pub(crate) time_to_live: Option<u8>,
}

impl Default for OptionsBuilder {
    fn default() -> Self {
        Self {
            passphrase: None,
            preshared_key: None,
            static_key: None,
            listener_key: None,
            allow: None,
            is_insecure: false,
            controller: table::DEFAULT_FOR_SECTIONS.to_owned(),
            controller_parameters: ControllerParameters::new(),
            latency: Duration::from_millis(120),
            reliability: None,
            connect_timeout: Duration::from_secs(3),
            idle_timeout: Duration::from_secs(5),
            keep_alive: Duration::from_secs(1),
            stream_name: None,
            most_connections: 4_096,
            most_served: 1 << 20,
            most_waiting: 128,
            datagram_size: 1_452,
            marking: Marking::default(),
            qlog: None,
            config: Config {
                overhead: SEALING + UDP_AND_IP,
                ..Config::default()
            },
        }
    }
}

impl OptionsBuilder {
    /// Both ends know this passphrase, of 10 to 256 bytes. [`build`](Self::build) then takes some 0.2 s and 64 MiB,
    /// on purpose: build once and share the options.
    #[must_use]
    pub fn passphrase(mut self, passphrase: impl Into<String>) -> Self {
        self.passphrase = Some(passphrase.into());
        self
    }

    /// Both ends have these 32 random bytes.
    #[must_use]
    pub fn preshared_key(mut self, key: PresharedKey) -> Self {
        self.preshared_key = Some(key);
        self
    }

    /// This end proves that it has this key. To call, name the [`listener_key`](Self::listener_key); to listen,
    /// say whom to [`allow`](Self::allow).
    #[must_use]
    pub fn static_key(mut self, own: StaticKey) -> Self {
        self.static_key = Some(own);
        self
    }

    /// The listener must prove that it has the secret of this key.
    #[must_use]
    pub fn listener_key(mut self, key: PublicKey) -> Self {
        self.listener_key = Some(key);
        self
    }

    /// Whose static keys a listener accepts.
    #[must_use]
    pub fn allow(mut self, allow: Allow) -> Self {
        self.allow = Some(allow);
        self
    }

    /// No protection whatsoever: everybody on the way can read, change and forge packets.
    #[must_use]
    pub fn insecure(mut self) -> Self {
        self.is_insecure = true;
        self
    }

    /// The congestion controller by its name in [`comity_congestion::table`]; "steady".
    #[must_use]
    pub fn controller(mut self, name: impl Into<String>) -> Self {
        self.controller = name.into();
        self
    }

    /// Parameters of the controller; none.
    #[must_use]
    pub fn controller_parameters(mut self, parameters: ControllerParameters) -> Self {
        self.controller_parameters = parameters;
        self
    }

    /// The deadline of sections that name none; 120 ms, at most an hour.
    #[must_use]
    pub fn latency(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    /// How long lost bytes are sent again; until the deadline, but never with "iftp" and "psp", whose papers send
    /// nothing again.
    #[must_use]
    pub fn reliability(mut self, reliability: Reliability) -> Self {
        self.reliability = Some(reliability);
        self
    }

    /// When this end gives sections up by itself; when they cannot arrive in time.
    #[must_use]
    pub fn drop_policy(mut self, drop: DropPolicy) -> Self {
        self.config.drop = drop;
        self
    }

    /// When this end hands sections to its application; at their deadline.
    #[must_use]
    pub fn deliver(mut self, deliver: Deliver) -> Self {
        self.config.deliver = deliver;
        self
    }

    /// The largest UDP payload that is sent, in bytes; 1,452, which fits Ethernet under IPv6. 700 to 9,000 for most networks. The
    /// peer is asked for no larger ones either, but those of a handshake have up to 1,200 bytes, and so may all of the peer's.
    #[must_use]
    pub fn datagram_size(mut self, bytes: u32) -> Self {
        self.datagram_size = bytes;
        self
    }

    /// The most that a connection ever sends, headers included, whatever the controller allows; no limit. At least
    /// 1 kb/s. What the sections may have is told by [`target_bitrate`](crate::Connection::target_bitrate) as always.
    #[must_use]
    pub fn max_rate(mut self, rate: Rate) -> Self {
        self.config.max_rate = rate;
        self
    }

    /// The type of service of the endpoint's packets, as the whole byte of the IP header; 0. Its upper six bits are
    /// the DSCP; the lowest two belong to [`ecn`](Self::ecn) and have to be zero here.
    #[must_use]
    pub fn type_of_service(mut self, octet: u8) -> Self {
        self.marking.type_of_service = octet;
        self
    }

    /// How many routers the endpoint's packets pass at most, from 1; as the system has it.
    #[must_use]
    pub fn time_to_live(mut self, hops: u8) -> Self {
        self.marking.time_to_live = Some(hops);
        self
    }

    /// Where connections write what they see and decide; nowhere.
    #[must_use]
    pub fn qlog(mut self, qlog: Qlog) -> Self {
        self.qlog = Some(qlog);
        self
    }

    /// How long a call may take; 3 s.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// After how long without a packet the peer is taken for gone; 5 s.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// After how long without anything to send a packet is sent all the same; 1 s, or a third of the peer's idle
    /// timeout where that is less.
    #[must_use]
    pub fn keep_alive(mut self, interval: Duration) -> Self {
        self.keep_alive = interval;
        self
    }

    /// What a connection may have waiting to be sent, in bytes; 16 MiB.
    #[must_use]
    pub fn send_buffer(mut self, bytes: u64) -> Self {
        self.config.send_buffer = bytes;
        self
    }

    /// What a connection may hold until the application receives it, in bytes; 16 MiB. When half of it is taken the
    /// peer is told to hold back.
    #[must_use]
    pub fn receive_buffer(mut self, bytes: u64) -> Self {
        self.config.receive_buffer = bytes;
        self
    }

    /// How many packets may arrive before an acknowledgement leaves; 4. After 10 ms it leaves in any case.
    #[must_use]
    pub fn ack_frequency(mut self, packets: u32) -> Self {
        self.config.ack_frequency = packets;
        self
    }

    /// Whether the network is asked to mark packets instead of dropping them; yes.
    #[must_use]
    pub fn ecn(mut self, ecn: bool) -> Self {
        self.config.ecn = ecn;
        self
    }

    /// What the connection is about, in words for the peer's application: SRT's `streamid`.
    #[must_use]
    pub fn stream_name(mut self, name: impl Into<String>) -> Self {
        self.stream_name = Some(name.into());
        self
    }

    /// How many connections a listener takes; 4,096.
    #[must_use]
    pub fn most_connections(mut self, connections: usize) -> Self {
        self.most_connections = connections;
        self
    }

    /// How many open connections a listener has until it refuses further callers with
    /// [`CallError::Busy`](crate::session::CallError::Busy), which keep asking until their time is over; as many as there
    /// may be. For who serves one caller after the other.
    #[must_use]
    pub fn most_served(mut self, connections: usize) -> Self {
        self.most_served = connections;
        self
    }

    /// How many open connections may wait to be accepted; 128. Nothing that they send is acknowledged meanwhile. Those beyond are closed with
    /// [`CloseCode::REFUSED`](crate::CloseCode::REFUSED).
    #[must_use]
    pub fn most_waiting(mut self, connections: usize) -> Self {
        self.most_waiting = connections;
        self
    }

    /// Checks everything.
    ///
    /// # Errors
    ///
    /// [`OptionsError`] with the option, its value and what was expected.
    pub fn build(self) -> Result<Options, OptionsError> {
        const HOUR: Duration = Duration::from_secs(3_600);
        const DAY: Duration = Duration::from_secs(86_400);
        let ms = |duration: Duration| duration.as_millis();
        let mut config = self.config;
        let ranges = [
            ("latency (ms)", ms(self.latency), 1, ms(HOUR)),
            (
                "connect timeout (ms)",
                ms(self.connect_timeout),
                ms(LEAST_CONNECT_TIMEOUT),
                ms(HOUR),
            ),
            ("idle timeout (ms)", ms(self.idle_timeout), 100, ms(DAY)),
            ("keep alive (ms)", ms(self.keep_alive), 10, ms(DAY)),
            (
                "max rate (bit/s)",
                config.max_rate.as_bps().into(),
                MIN_RATE.as_bps().into(),
                Rate::MAX.as_bps().into(),
            ),
            (
                "time to live (hops)",
                self.marking.time_to_live.unwrap_or(1).into(),
                1,
                255,
            ),
            (
                "datagram size (bytes)",
                self.datagram_size.into(),
                LEAST_DATAGRAM.into(),
                MOST_DATAGRAM.into(),
            ),
            (
                "send buffer (bytes)",
                config.send_buffer.into(),
                65_536,
                1 << 40,
            ),
            (
                "receive buffer (bytes)",
                config.receive_buffer.into(),
                65_536,
                1 << 40,
            ),
            (
                "ack frequency (packets)",
                config.ack_frequency.into(),
                1,
                1_000,
            ),
            (
                "most connections",
                self.most_connections as u128,
                1,
                1 << 20,
            ),
            ("most served", self.most_served as u128, 1, 1 << 20),
            (
                "most waiting connections",
                self.most_waiting as u128,
                1,
                1 << 20,
            ),
        ];
        for (name, value, least, most) in ranges {
            if !(least..=most).contains(&value) {
                return Err(OptionsError::OutOfRange {
                    name,
                    value,
                    least,
                    most,
                });
            }
        }
        if self.marking.type_of_service & ECN_BITS != 0 {
            return Err(OptionsError::TypeOfService {
                octet: self.marking.type_of_service,
            });
        }
        if let Some(name) = &self.stream_name
            && !(1..=MAX_STREAM_NAME).contains(&name.len())
        {
            return Err(OptionsError::Length {
                name: "stream name",
                length: name.len(),
                most: MAX_STREAM_NAME,
            });
        }
        config.payload = self.datagram_size - SEALING;
        config.idle_timeout = self.idle_timeout.into();
        config.keep_alive = self.keep_alive.into();
        let controller = table::find(&self.controller)?;
        config.reliability = self
            .reliability
            .unwrap_or_else(|| Reliability::usual(controller));
        controller
            .build(
                &Setup::new(Bytes::new(config.payload.into())),
                &self.controller_parameters,
            )
            .map_err(|reason| OptionsError::Controller {
                controller: controller.name,
                reason,
            })?;
        let options = Options {
            credentials: self.credentials()?,
            controller,
            controller_parameters: self.controller_parameters,
            latency: self.latency,
            connect_timeout: self.connect_timeout,
            stream_name: self.stream_name,
            most_connections: self.most_connections,
            most_served: self.most_served,
            most_waiting: self.most_waiting,
            marking: self.marking,
            qlog: self.qlog,
            config,
        };
        let list = options.parameters().meter_parameters.unwrap_or_default();
        let name = options.stream_name.as_deref().unwrap_or_default();
        // The peer is told both in one packet, with what is told besides.
        for (what, length, most) in [
            ("controller parameters", list.len(), MAX_METER_PARAMETERS),
            (
                "stream name and controller parameters",
                list.len() + name.len(),
                MOST_TEXT,
            ),
        ] {
            if length > most {
                return Err(OptionsError::Length {
                    name: what,
                    length,
                    most,
                });
            }
        }
        Ok(options)
    }

    fn credentials(&self) -> Result<Credentials, OptionsError> {
        let given = [
            ("a passphrase", self.passphrase.is_some()),
            ("a pre-shared key", self.preshared_key.is_some()),
            ("a static key", self.static_key.is_some()),
            ("insecure", self.is_insecure),
        ];
        let mut given = given.iter().filter(|(_, is_given)| *is_given);
        if let (Some((first, _)), Some((second, _))) = (given.next(), given.next()) {
            return Err(OptionsError::TwoCredentials { first, second });
        }
        if let Some(passphrase) = &self.passphrase {
            return Ok(Credentials::Shared(Passphrase::stretch(passphrase)?));
        }
        if let Some(key) = &self.preshared_key {
            return Ok(Credentials::Shared(key.clone()));
        }
        if let Some(own) = &self.static_key {
            return Ok(Credentials::Static {
                own: own.clone(),
                listener: self.listener_key,
                allow: self.allow.clone(),
            });
        }
        if self.is_insecure {
            return Ok(Credentials::Insecure);
        }
        Err(OptionsError::NoCredentials)
    }
}
