//! Loss recovery for byte-sequence transports.
//!
//! A controller sets the size of the window. A recovery decides when a segment counts as lost, what
//! is retransmitted, and how the window is inflated meanwhile. The recoveries are Tahoe, Reno,
//! NewReno, SACK and RACK; any controller works with any of them.
//!
//! The transport reports duplicate acknowledgements and advances of the cumulative one, and carries
//! out the [`Reaction`]. Positions are byte offsets in the stream, unwrapped to 64 bits.
//!
//! ```text
//!              duplicate × threshold                    advance (Reno)
//!   Open ───────────────────────────────▶ Recovering ───────────────────▶ Open
//!    ▲  (Tahoe: back to Open at once)      │   ▲        advance ≥ recover (NewReno, SACK)
//!    │                                     └───┘
//!    └──────────── timeout ───────────── partial advance: resend the next hole
//! ```
//!
//! RACK counts no duplicates: the transport reports one when [`RackClock`] shows that a segment is
//! lost.

mod any;
mod config;
mod guard;
mod interface;
mod new_reno;
mod prr;
mod rack;
mod reno;
mod sack;
mod tahoe;

pub use any::AnyRecovery;
pub use config::{RecoveryConfig, RecoveryKind};
pub use interface::{Advance, Duplicate, PipeRule, Reaction, Recovery, Reduce, Resend};
pub use new_reno::NewReno;
pub use prr::Prr;
pub use rack::{Delivered, Rack, RackClock, Verdict};
pub use reno::Reno;
pub use sack::Sack;
pub use tahoe::Tahoe;
