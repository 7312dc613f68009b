//! The table of all settings: each with its type, default, bounds, URI key and documentation.

use std::ops::RangeInclusive;
use std::time::Duration;

use comity_congestion::table::{self, Domain, Parameters as ControllerParameters, Value};
use comity_transport::datagram::{Config as Transport, MIN_PAYLOAD, bounds};
use comity_transport::timeline::{Deliver, DropPolicy, Reliability};
use comity_transport::wire::limits::{MAX_STREAM_NAME, SEALING};
use comity_units::{DataSize, Rate, Span};

use super::kind::{Kind, Mode, shown};
use crate::session::{CALL_TIMEOUT, USUAL_CONNECTIONS};

/// A setting: a row of [`SETTINGS`].
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name in [`Settings`] and [`ConfigBuilder`](super::ConfigBuilder).
    pub name: &'static str,
    /// Its possible values.
    pub kind: Kind,
    summary: &'static str,
    /// Its key in a URI.
    pub(crate) spelling: Option<Spelling>,
}

/// The key of a setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spelling {
    pub(crate) key: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) words: &'static [(&'static str, &'static str)],
    pub(crate) only: Option<Mode>,
}

impl Setting {
    /// A sentence about its effect.
    pub fn summary(&self) -> &'static str {
        self.summary.trim_start()
    }

    /// Its key in a URI; `None` if only programs can set it.
    pub fn key(&self) -> Option<&'static str> {
        self.spelling.map(|spelling| spelling.key)
    }

    /// Its default in the form of a URI. Empty if it has none, or depends on another setting.
    pub fn default_text(&self) -> String {
        let value = Settings::default().get(self.name);
        value.as_ref().map_or_else(String::new, shown)
    }
}

/// The type of a setting.
trait Stored: Sized {
    /// Returns `None` for a value that means "not set".
    fn value(&self, kind: &Kind) -> Option<Value>;
    /// Returns `None` for a value of another kind.
    fn stored(value: Value) -> Option<Self>;
}

macro_rules! stored {
    ($($type:ty: $variant:ident),+) => {$(
        impl Stored for $type {
            fn value(&self, _: &Kind) -> Option<Value> {
                Some(Value::$variant((*self).into()))
            }

            fn stored(value: Value) -> Option<Self> {
                match value {
                    Value::$variant(value) => Some(value.into()),
                    _ => None,
                }
            }
        }
    )+};
}

stored!(Duration: Span, Rate: Rate, bool: Flag);

impl Stored for String {
    fn value(&self, _: &Kind) -> Option<Value> {
        (!self.is_empty()).then(|| Value::Text(self.clone().into()))
    }

    fn stored(value: Value) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text.into_owned()),
            _ => None,
        }
    }
}

impl<T: Stored> Stored for Option<T> {
    fn value(&self, kind: &Kind) -> Option<Value> {
        self.as_ref()?.value(kind)
    }

    fn stored(value: Value) -> Option<Self> {
        T::stored(value).map(Some)
    }
}

macro_rules! whole_numbers {
    ($($type:ty)+) => {$(
        impl Stored for $type {
            fn value(&self, kind: &Kind) -> Option<Value> {
                Some(match kind {
                    Kind::Domain(Domain::Bytes { .. }) => Value::Bytes(DataSize::new(*self as u64)),
                    // `f64` rounds only numbers that are out of every range.
                    _ => Value::Number(*self as f64),
                })
            }

            fn stored(value: Value) -> Option<Self> {
                match value {
                    Value::Bytes(bytes) => Self::try_from(bytes.get()).ok(),
                    Value::Number(number) => Some(number as Self),
                    _ => None,
                }
            }
        }
    )+};
}

whole_numbers!(u8 u32 u64 usize);

/// The words of an enumeration, as in URIs.
macro_rules! words {
    ($type:ident, $words:ident, $($word:literal = $variant:ident),+) => {
        const $words: &[&str] = &[$($word),+];

        impl Stored for $type {
            fn value(&self, _: &Kind) -> Option<Value> {
                Some(Value::Text(match self {
                    $(Self::$variant => $word.into(),)+
                }))
            }

            fn stored(value: Value) -> Option<Self> {
                match value {
                    Value::Text(text) => match &*text {
                        $($word => Some(Self::$variant),)+
                        _ => None,
                    },
                    _ => None,
                }
            }
        }
    };
}

words!(
    Reliability,
    RELIABILITIES,
    "timeline" = Timeline,
    "none" = None,
    "full" = Full
);
words!(
    DropPolicy,
    DROPS,
    "expired" = Expired,
    "infeasible" = Infeasible,
    "never" = Never
);
words!(Deliver, DELIVERIES, "early" = Early, "paced" = Paced);

const HOUR: Span = Span::from_secs(3_600);

const fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

const fn span(range: RangeInclusive<Span>) -> Kind {
    let (min, max) = (*range.start(), *range.end());
    Kind::Domain(Domain::Span { min, max })
}

const fn rate(range: RangeInclusive<Rate>) -> Kind {
    let (min, max) = (*range.start(), *range.end());
    Kind::Domain(Domain::Rate { min, max })
}

const fn bytes(min: u64, max: u64) -> Kind {
    Kind::Domain(Domain::Bytes {
        min: DataSize::new(min),
        max: DataSize::new(max),
    })
}

const fn whole(min: u32, max: u32, unit: &'static str) -> Kind {
    Kind::Domain(Domain::Whole { min, max, unit })
}

const fn choice(words: &'static [&'static str]) -> Kind {
    Kind::Domain(Domain::Choice(words))
}

const FLAG: Kind = Kind::Domain(Domain::Flag);

/// The minimum size of a buffer. A smaller one cannot hold a picture; only simulations use it.
const MIN_BUFFER: u64 = 65_536;

/// The bitrates of encoders.
const ENCODER_RATES: RangeInclusive<Rate> = Rate::from_kbps(1)..=*bounds::MAX_RATE.end();

const fn uri(key: &'static str) -> Option<Spelling> {
    uri_or(key, &[])
}

const fn uri_or(key: &'static str, aliases: &'static [&'static str]) -> Option<Spelling> {
    Some(Spelling {
        key,
        aliases,
        words: &[],
        only: None,
    })
}

/// The type of a setter's argument: for an optional setting, the inner type.
macro_rules! setter {
    ($name:ident, [$($doc:literal)+], String) => {
        setter!(@ $name, [$($doc)+], impl Into<String>, |value| value.into());
    };
    ($name:ident, [$($doc:literal)+], Option<$type:ty>) => {
        setter!(@ $name, [$($doc)+], $type, |value| Some(value));
    };
    ($name:ident, [$($doc:literal)+], $type:ty) => {
        setter!(@ $name, [$($doc)+], $type, |value| value);
    };
    (@ $name:ident, [$($doc:literal)+], $given:ty, |$value:ident| $stored:expr) => {
        $(#[doc = $doc])+
        #[must_use]
        pub fn $name(mut self, $value: $given) -> Self {
            self.settings.$name = $stored;
            self
        }
    };
}

pub(super) use setter;

macro_rules! settings {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident: [$($type:tt)+] = $default:expr, $kind:expr, $spelling:expr;
    )+) => {
        /// All settings of an end except its credentials.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct Settings {
            $($(#[doc = $doc])+ pub $name: $($type)+,)+
            /// The parameters of the controller.
            pub controller_parameters: ControllerParameters,
        }

        impl Default for Settings {
            fn default() -> Self {
                Self {
                    $($name: $default,)+
                    controller_parameters: ControllerParameters::new(),
                }
            }
        }

        /// The table, in the order of the documentation and of a printed URI.
        pub const SETTINGS: &[Setting] = &[$(Setting {
            name: stringify!($name),
            kind: $kind,
            summary: concat!($($doc),+),
            spelling: $spelling,
        }),+];

        impl Settings {
            /// The value of the setting `name`; `None` if it is not set.
            pub(crate) fn get(&self, name: &str) -> Option<Value> {
                match name {
                    $(stringify!($name) => self.$name.value(&$kind),)+
                    _ => None,
                }
            }

            /// Sets `name` to a value that its row admits.
            pub(crate) fn set(&mut self, name: &str, value: Value) {
                match name {
                    $(stringify!($name) => {
                        if let Some(value) = Stored::stored(value) {
                            self.$name = value;
                        }
                    })+
                    _ => {}
                }
            }
        }

        /// Defines the setters of [`ConfigBuilder`](super::ConfigBuilder) in its own module.
        macro_rules! builder_setters {
            () => {
                /// The setters, one for each row of the table of settings.
                /// `docs/reference/settings.md` has the defaults and bounds.
                impl ConfigBuilder {
                    $(setter!($name, [$($doc)+], $($type)+);)+
                }
            };
        }
        pub(super) use builder_setters;
    };
}

settings! {
    /// The time from a section's source time to its deadline at the receiver. It includes the delay
    /// of the path, unlike SRT's latency. The larger value of both endpoints applies. Three to four
    /// round trips leave time for retransmissions.
    latency: [Duration] = Duration::from_millis(120), span(Span::from_millis(1)..=HOUR), uri("latency");

    /// The congestion controller: a name from [controllers.md](controllers.md). The default is
    /// experimental: on paths of 100 ms and more, `steady` takes 2.3 to 3.9 times what a Reno flow
    /// takes. The controller's parameters are keys, too, such as `cc.beta=0.8`.
    controller: [String] = table::DEFAULT_FOR_SECTIONS.into(), Kind::Controller, uri("cc");

    /// The maximum sending rate, headers included, even if the controller allows more.
    /// Acknowledgements count towards it, but never wait for it.
    max_rate: [Rate] = Transport::DEFAULT.max_rate, rate(bounds::MAX_RATE), uri("maxbw");

    /// How long the sender retransmits lost bytes: until the deadline, never, or until they arrive.
    /// The default is `timeline`. With the controllers `iftp` and `psp`, whose papers retransmit
    /// nothing, it is `none`.
    reliability: [Option<Reliability>] = None, choice(RELIABILITIES), uri("reliability");

    /// When the sender drops a section: at its deadline, as soon as the section cannot meet it, or
    /// never. `1` and `0`, as in SRT's `tlpktdrop`, mean `infeasible` and `never`.
    drop_policy: [DropPolicy] = Transport::DEFAULT.drop, choice(DROPS), Some(Spelling {
        key: "drop",
        aliases: &["tlpktdrop"],
        words: &[
            ("1", "infeasible"), ("true", "infeasible"), ("yes", "infeasible"), ("on", "infeasible"),
            ("0", "never"), ("false", "never"), ("no", "never"), ("off", "never"),
        ],
        only: None,
    });

    /// When the receiver delivers a section: as soon as it is complete, or at its deadline.
    deliver: [Deliver] = Transport::DEFAULT.deliver, choice(DELIVERIES), uri("deliver");

    /// The name of the stream: for a caller, the stream that it requests or sends; for a listener,
    /// its own. As listeners, `comity send`, `recv` and `relay` have one stream. They refuse a
    /// caller that names another, and every name if their own URI has none. They accept a caller
    /// that names no stream.
    stream_name: [String] = String::new(), Kind::Text(MAX_STREAM_NAME), uri("streamid");

    /// The largest protected payload of a packet, if the path carries it. The IP packet is 57 bytes
    /// longer with IPv4, and 77 with IPv6.
    payload: [u32] = Transport::DEFAULT.payload,
        bytes(MIN_PAYLOAD as u64, (bounds::MAX_DATAGRAM - SEALING) as u64),
        uri_or("payload", &["payloadsize"]);

    /// Whether packets request ECN, so that the network marks them instead of dropping them.
    ecn: [bool] = Transport::DEFAULT.ecn, FLAG, uri("ecn");

    /// Whether to refuse a peer that cannot prove its acknowledgements. Every peer of this release
    /// can. Without this setting, an older peer is accepted and can conceal losses from the sender.
    require_proofs: [bool] = false, FLAG, uri("requireproofs");

    /// The time limit of one attempt to connect.
    connect_timeout: [Duration] = duration(CALL_TIMEOUT),
        span(Span::from_millis(10)..=HOUR), Some(Spelling {
            key: "conntimeo",
            aliases: &[],
            words: &[],
            only: Some(Mode::Caller),
        });

    /// The time without a received packet after which the connection ends.
    idle_timeout: [Duration] = duration(Transport::DEFAULT.idle_timeout),
        span(bounds::IDLE_TIMEOUT), uri("peeridletimeo");

    /// The interval of keep-alive packets on an idle connection. They preserve the state of the
    /// peer and of middleboxes. The interval is at most a third of the peer's `peeridletimeo`.
    keep_alive: [Duration] = duration(Transport::DEFAULT.keep_alive),
        span(bounds::KEEP_ALIVE), uri("keepalive");

    /// The maximum time from the arrival of a section's first byte to its deadline. This endpoint
    /// and the hops behind a relay move a later deadline to this limit. A larger `latency` of the
    /// other endpoint is reduced to it, too. The limit is never below the `latency` of this
    /// endpoint.
    max_latency: [Duration] = duration(Transport::DEFAULT.max_latency),
        span(bounds::MAX_LATENCY), uri("maxlatency");

    /// A closing connection waits this long for sections in flight. A stopped receiver waits this
    /// long for the deadlines of arrived sections, and `latency` longer if its sender is gone. A
    /// bare number is in milliseconds, unlike in SRT, which counts seconds.
    linger: [Duration] = Duration::from_secs(1), span(Span::ZERO..=HOUR), uri("linger");

    /// Whether the caller reconnects when the connection is lost. `false` is the same as
    /// `--reconnect no` of the commands; with `true`, their option `--reconnect` decides.
    reconnect: [bool] = true, FLAG, Some(Spelling {
        key: "reconnect",
        aliases: &[],
        words: &[],
        only: Some(Mode::Caller),
    });

    /// The type of service in the IP header, as a whole byte. Its lowest two bits belong to ECN and
    /// must be zero.
    type_of_service: [u8] = 0, Kind::TypeOfService, uri("iptos");

    /// The maximum number of routers on the path. The default is that of the system: 64, and 1 for
    /// multicast on most systems.
    time_to_live: [Option<u8>] = None, whole(1, 255, "hops"), uri_or("ttl", &["ipttl"]);

    /// The size of the send buffer, in bytes of sections.
    send_buffer: [u64] = Transport::DEFAULT.send_buffer,
        bytes(MIN_BUFFER, *bounds::BUFFER.end()), uri("sndbuf");

    /// The size of the receive buffer, in bytes of sections. A section counts with its whole length
    /// as soon as its first byte arrives. The free part is the sender's credit.
    receive_buffer: [u64] = Transport::DEFAULT.receive_buffer,
        bytes(MIN_BUFFER, *bounds::BUFFER.end()), uri("rcvbuf");

    /// The lowest bitrate for an encoder that follows the connection, as with `comity send
    /// --on-target-bitrate`.
    encoder_min: [Rate] = Rate::from_kbps(100), rate(ENCODER_RATES), uri("encmin");

    /// The highest bitrate for such an encoder, and its bitrate on a fast path. Without it, the
    /// highest is `maxbw`.
    encoder_max: [Option<Rate>] = None, rate(ENCODER_RATES), uri("encmax");

    /// The part of the target bitrate that such an encoder leaves free, for pictures above the mean
    /// size. Smaller changes of the target do not reach the encoder.
    encoder_headroom: [u8] = 5, whole(0, 50, "percent"), uri("enchead");

    /// The maximum number of updates for such an encoder in any second.
    encoder_updates: [u8] = 2, whole(1, 10, "updates"), uri("encupdates");

    /// Whether this endpoint accepts no sections. It then grants the peer no credit, and stores
    /// nothing about the peer's sections.
    only_sends: [bool] = false, FLAG, None;

    /// The maximum memory that peers can make an endpoint hold, in bytes, over all its connections;
    /// at least twice the larger buffer. Payloads in send buffers count once, however many
    /// connections send them. Each peer has an equal share. If a connection within its share finds
    /// no room, the endpoint closes the one that exceeds its share the most.
    max_memory: [u64] = 512 << 20, bytes(1 << 20, 1 << 40), None;

    /// An acknowledgement leaves after this number of packets, and after 10 ms at the latest.
    ack_frequency: [u32] = Transport::DEFAULT.ack_frequency,
        whole(*bounds::ACK_FREQUENCY.start(), *bounds::ACK_FREQUENCY.end(), "packets"), None;

    /// Whether a listener refuses callers that name another stream than its `streamid`. Otherwise
    /// the application routes accepted connections by their stream names.
    only_own_stream: [bool] = false, FLAG, None;

    /// The maximum number of a listener's connections.
    max_connections: [usize] = USUAL_CONNECTIONS, whole(1, 1 << 20, "connections"), None;

    /// The number of open connections at which a listener refuses further callers as busy. They
    /// retry until their time limit. A listener that serves one caller after the other sets 1.
    max_served: [usize] = 1 << 20, whole(1, 1 << 20, "connections"), None;

    /// The number of open connections that may wait until the application accepts them. Until then,
    /// the listener acknowledges none of their sections. It closes further connections as refused.
    max_waiting: [usize] = 128, whole(1, 1 << 20, "connections"), None;
}
