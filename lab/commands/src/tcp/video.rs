//! Video over time-lined TCP: the MPEG-1 sender and player of TLTCP, section 4.

mod message;
mod receive;
mod stream;

pub(super) use receive::receive;
pub(super) use stream::stream;

/// The longest picture, and with it the longest section, in bytes.
const LONGEST: u32 = 1 << 24;
