//! Packets of the datagram transport as bytes. `docs/protocol/core.md` is the specification.
//!
//! [`header`] has what stands outside of the protection, [`frame`] what stands inside,
//! [`parameters`] what two peers tell each other during the handshake, and [`number`] how 32 bits
//! of a packet number become whole again. All integers of fixed size are big-endian; a [`varint`]
//! takes 1 to 8 bytes.
//!
//! Reading never panics, never allocates (except for the texts among the transport parameters) and
//! never copies: frames borrow from the payload. Everything that a reader accepts lies within
//! [`limits`], and the writers refuse what a reader would refuse, so what was written is read back
//! as it was. The codec judges form alone; that a section may not change its length, for example,
//! is for the state machine to know.
//!
//! Identifiers are plain numbers here, and times are rounded down to the microsecond.

mod cursor;
mod error;
pub mod frame;
pub mod header;
pub mod limits;
pub mod number;
pub mod parameters;
mod stamp;
pub mod varint;

pub use error::{CloseCode, DecodeError, EncodeError, Part, Problem};
pub use stamp::Stamp;
