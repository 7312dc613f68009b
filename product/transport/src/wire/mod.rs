//! Packets of the datagram transport as bytes. `docs/protocol/core.md` is the specification.
//!
//! [`header`] has the unprotected part of a packet, [`frame`] the protected frames, [`parameters`]
//! the transport parameters of the handshake, and [`number`] the recovery of a packet number from
//! 32 bits. All integers of fixed size are big-endian; a [`varint`] takes 1 to 8 bytes.
//!
//! Reading never panics, never allocates (except for texts among the transport parameters) and
//! never copies: frames borrow from the payload. Readers accept only values within [`limits`], and
//! writers refuse values that a reader would refuse. Decoding encoded data therefore returns the
//! same values. The codec checks form alone; the state machine checks meaning, for example that a
//! section never changes its length.
//!
//! Identifiers are plain numbers here, and times are rounded down to the microsecond.

mod cursor;
mod error;
pub mod frame;
pub mod header;
mod kinds;
pub mod limits;
pub mod number;
pub mod parameters;
mod stamp;
pub mod varint;

pub use error::{CloseCode, DecodeError, EncodeError, Part, Problem};
pub use stamp::Stamp;
