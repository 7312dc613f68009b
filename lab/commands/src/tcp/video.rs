//! Video over time-lined TCP: the MPEG-1 sender and player of TLTCP, section 4.

mod message;
mod receive;
mod stream;

pub(super) use receive::receive;
pub(super) use stream::stream;

/// The maximum length of a picture, and thus of a section, in bytes.
const LONGEST: u32 = 1 << 24;
