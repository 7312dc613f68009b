//! TCP-Real: the receiver sets the window, by how fast whole windows arrive.
//!
//! The sender sends in *waves*: as many segments as its window has, numbered, so that the receiver
//! knows which arrival is the first of a wave, which the last, and how many there should be. The
//! receiver ([`WaveMeter`]) measures the rate of each wave and answers with the *level* of the next
//! one; the sender ([`TcpReal`]) makes a window of two segments per level out of it. A segment that
//! is lost inside of a wave changes no rate, so losses of a wireless link cost a repair and no
//! window.
//!
//! Source: Zhang and Tsaoussidis, TCP-Real: Improving Real-time Capabilities of TCP over
//! Heterogeneous Networks, NOSSDAV 2001, sections 2 and 3 and figure 1.
//!
//! Read `meter` first: it has figure 1 and the wave-decision timer. `sender` has the window and the
//! timeout. `decisions` has what the paper leaves open, with a setting for each second reading.
//!
//! Differs from the paper in: 1. the thirteen decisions; 2. a segment says its place in its
//! wave, without which the receiver could not tell that the last one arrived where one before it
//! was lost; 3. where the text and figure 1 contradict each other (the text wants small windows to
//! grow faster and large ones to shrink faster, the figure's weights do the opposite), the figure
//! is taken, and where section 2.1 and footnote 3 have every timeout reduce the window and section
//! 2.2 only one without the bit, section 2.2, unless [`TimeoutReduction::Always`] is chosen; 4. on
//! the datagram transport there are no duplicate acknowledgements, so that the bit is never set,
//! and no retransmission timer: what goes for a timeout is persistent congestion, losses over three
//! probe timeouts, so that a window is reduced later than on TCP, every time, and there is no
//! repair to choose; waves are of packets, which need not be full.

mod decisions;
mod meter;
mod sender;

pub use decisions::{LevelRounding, Opening, TcpRealConfig, TimeoutReduction};
pub use meter::WaveMeter;
pub use sender::TcpReal;

/// How far the waves of a sender on a new path are ahead of those on the path before: a quarter of
/// all numbers, so that neither losses look like it nor what is still on the old path.
const NEW_BEGINNING: u16 = 1 << 14;
