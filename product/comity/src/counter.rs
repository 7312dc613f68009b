//! The values of [`Statistics`](crate::Statistics) with their keys, units and descriptions, for
//! programs that export them.
//!
//! ```
//! use comity::counter::Value;
//!
//! fn print(name: &str, value: &Value<'_>) {
//!     match value {
//!         Value::Counters(counters) => {
//!             for counter in counters {
//!                 print(&format!("{name}.{}", counter.key), &counter.value);
//!             }
//!         }
//!         value => println!("{name}: {value:?}"),
//!     }
//! }
//!
//! print("connection", &Value::Counters(comity::Statistics::default().counters()));
//! ```

pub use comity_transport::counter::{Counter, Counters, Kind, Unit, Value, Valued};
pub use comity_transport::counters;
use serde::{Serialize, Serializer};

/// Implements serde's `Serialize` for structs of [`counters!`](crate::counter::counters!), by
/// [`serialize`](crate::counter::serialize).
#[macro_export]
macro_rules! serialize_counters {
    ($($type:ident)+) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::counter::serialize(self, serializer)
            }
        }
    )+};
}

/// Serialises counters as an object with their keys. An unknown value is null.
///
/// # Errors
///
/// Those of the serializer.
pub fn serialize<S: Serializer>(counters: &impl Valued, serializer: S) -> Result<S::Ok, S::Error> {
    Json(&counters.value()).serialize(serializer)
}

struct Json<'a>(&'a Value<'a>);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Unknown => serializer.serialize_none(),
            Value::Whole(number) => serializer.serialize_u64(*number),
            Value::Signed(number) => serializer.serialize_i64(*number),
            Value::Real(number) => serializer.serialize_f64(*number),
            Value::List(list) => list.serialize(serializer),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Counters(counters) => {
                let entries = counters.iter();
                serializer.collect_map(entries.map(|entry| (entry.key, Json(&entry.value))))
            }
        }
    }
}
