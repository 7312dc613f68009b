//! The frame policy of a video sender: frame types, importance, dependencies, decodability, and
//! shedding.
//!
//! The media reader, the simulator, the lab and the demo share this policy, so a simulated video is
//! treated as `comity send` treats a real one. The crate is `no_std` and independent of transports
//! and containers.
//!
//! ```
//! use comity_frames::{Arrival, DeadlineRule, FrameType, Group, Importance};
//! use comity_units::{Span, Time};
//!
//! let mut group = Group::new(DeadlineRule::Each);
//! let types = [FrameType::Key, FrameType::Predicted { referenced: true }];
//! let members = [0, 1].map(|number: u64| {
//!     group.push(Arrival {
//!         number,
//!         frame_type: types[number as usize],
//!         presentation: None,
//!         source_time: Time::from_millis(40 * number),
//!         reordering: Span::ZERO,
//!         begins_refresh: false,
//!     })
//! });
//! assert_eq!((members[0].needs, members[1].needs), (None, Some(0)));
//! assert_eq!(Importance::of(types[1], members[1].position), Importance(189));
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod decodability;
mod frame;
mod group;
mod reason;
mod selection;
mod shedder;
pub mod stamp;
mod submitter;

pub use decodability::Decodability;
pub use frame::{Frame, FrameType, Importance};
pub use group::{Arrival, DeadlineRule, Group, Member};
pub use reason::Reason;
pub use selection::{Schedule, Selection};
pub use shedder::{Count, ShedCounters, Shedder, ShedderConfig};
pub use submitter::{Offered, Step, Submitter};
