//! Structs of counters whose values describe themselves.
//!
//! [`counters!`](crate::counters!) declares a field, its key, its unit and its description
//! together. It is a macro, so that typed fields, JSON, Prometheus and the reference have one
//! source.

use alloc::string::String;
use alloc::vec::Vec;

/// A value with its description.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter<'a> {
    /// The key in JSON.
    pub key: &'static str,
    /// The name of the Prometheus metric, without its prefix, unit and `_total`.
    pub metric: Option<&'static str>,
    /// Whether the value counts events or is a state.
    pub kind: Kind,
    /// The unit.
    pub unit: Unit,
    /// What the value is, in one or more sentences.
    pub help: &'static str,
    /// The value.
    pub value: Value<'a>,
}

/// The counters of a struct, in the order of their declaration.
pub type Counters<'a> = Vec<Counter<'a>>;

/// Whether a value counts events or is a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number of events. It does not fall while the connection is open.
    Counter,
    /// A state, which can fall, or a word, or an object.
    Gauge,
}

/// The unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of things that the description names, a word, or an object.
    Count,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Bits per second.
    Bps,
    /// Megabits per second.
    Mbps,
    /// Parts per million.
    Ppm,
    /// Parts per billion.
    Ppb,
}

impl Unit {
    /// The symbol of the unit; empty for a number of things.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Count => "",
            Self::Bytes => "bytes",
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Microseconds => "µs",
            Self::Bps => "bit/s",
            Self::Mbps => "Mb/s",
            Self::Ppm => "ppm",
            Self::Ppb => "ppb",
        }
    }
}

/// The value of a counter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Not known, or not applicable.
    Unknown,
    /// A whole number.
    Whole(u64),
    /// A whole number that may be negative.
    Signed(i64),
    /// A real number.
    Real(f64),
    /// Several real numbers.
    List(&'a [f64]),
    /// A word or an address.
    Text(&'a str),
    /// The counters of a struct.
    Counters(Counters<'a>),
}

/// A type of fields in [`counters!`](crate::counters!).
pub trait Valued {
    /// The value.
    fn value(&self) -> Value<'_>;
}

macro_rules! valued {
    ($($type:ty: |$field:ident| $value:expr;)+) => {$(
        impl Valued for $type {
            fn value(&self) -> Value<'_> {
                let $field = self;
                $value
            }
        }
    )+};
}

valued! {
    u32: |number| Value::Whole(u64::from(*number));
    u64: |number| Value::Whole(*number);
    i64: |number| Value::Signed(*number);
    f64: |number| Value::Real(*number);
    [f64; 3]: |list| Value::List(list);
    String: |text| Value::Text(text);
}

impl<T: Valued> Valued for Option<T> {
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Unknown, T::value)
    }
}

/// Declares a struct of counters, and its method `counters`.
///
/// ```
/// use comity_transport::counter::{Unit, Value};
///
/// fn add(sum: &mut u64, value: u64) {
///     *sum += value;
/// }
///
/// comity_transport::counters! {
///     /// What came in.
///     #[derive(Default)]
///     pub struct Incoming add from [u64] {
///         /// Packets.
///         pub packets: u64 = "pktRecv" / "packets_in", Counter, Count
///             => |sizes| sizes.len() as u64;
///         /// Their bytes.
///         pub bytes: u64 = "byteRecv", Counter, Bytes => |sizes| sizes.iter().sum();
///     }
/// }
///
/// let mut incoming = Incoming::default();
/// incoming.update(&[100, 200]);
/// let counters = incoming.counters();
/// assert_eq!((counters[0].metric, &counters[0].value), (Some("packets_in"), &Value::Whole(2)));
/// assert_eq!((counters[1].key, counters[1].unit), ("byteRecv", Unit::Bytes));
/// assert_eq!((counters[1].help, incoming.bytes), ("Their bytes.", 300));
/// ```
///
/// - The key of a field in JSON follows its type. A field without a key is in no output. If the key
///   is empty, the counters in the field belong to the outer object.
/// - The name of its metric, its [`Kind`](crate::counter::Kind) and its
///   [`Unit`](crate::counter::Unit) follow, all optional.
/// - With `FUNCTION from SOURCE`, the struct has a private method `update`. It calls the function
///   with each field and the field's value, which it reads from the source.
#[macro_export]
macro_rules! counters {
    ($(#[$attribute:meta])* pub struct $type:ident {$(
        $(#[doc = $doc:literal])+
        pub $name:ident: $field:ty
            $(= $key:literal $(/ $metric:literal)? $(, $kind:ident, $unit:ident)?)?;
    )+}) => {
        $(#[$attribute])*
        pub struct $type {$(
            $(#[doc = $doc])+
            pub $name: $field,
        )+}

        impl $type {
            /// The values with their descriptions, in the order of JSON.
            pub fn counters(&self) -> $crate::counter::Counters<'_> {
                let mut all = $crate::counter::Counters::new();
                $(
                    let _help = concat!($($doc),+);
                    $($crate::counter::Counter {
                        $(metric: Some($metric),)?
                        $(kind: $crate::counter::Kind::$kind, unit: $crate::counter::Unit::$unit,)?
                        ..$crate::counter::Counter::new($key, _help, &self.$name)
                    }.add_to(&mut all);)?
                )+
                all
            }
        }

        impl $crate::counter::Valued for $type {
            fn value(&self) -> $crate::counter::Value<'_> {
                $crate::counter::Value::Counters(self.counters())
            }
        }
    };

    ($(#[$attribute:meta])* pub struct $type:ident $set:ident from $source:ty {$(
        $(#[doc = $doc:literal])+
        pub $name:ident: $field:ty
            $(= $key:literal $(/ $metric:literal)? $(, $kind:ident, $unit:ident)?)? => $read:expr;
    )+}) => {
        $crate::counters! {
            $(#[$attribute])*
            pub struct $type {$(
                $(#[doc = $doc])+
                pub $name: $field $(= $key $(/ $metric)? $(, $kind, $unit)?)?;
            )+}
        }

        impl $type {
            fn update(&mut self, source: &$source) {$(
                let read: fn(&$source) -> $field = $read;
                $set(&mut self.$name, read(source));
            )+}
        }
    };
}

#[doc(hidden)]
impl<'a> Counter<'a> {
    pub fn new(key: &'static str, help: &'static str, value: &'a impl Valued) -> Self {
        Self {
            key,
            metric: None,
            kind: Kind::Gauge,
            unit: Unit::Count,
            help: help.trim_ascii_start(),
            value: value.value(),
        }
    }

    pub fn add_to(self, counters: &mut Counters<'a>) {
        match self.value {
            Value::Counters(inner) if self.key.is_empty() => counters.extend(inner),
            _ => counters.push(self),
        }
    }
}
