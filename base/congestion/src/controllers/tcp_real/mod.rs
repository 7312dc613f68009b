//! TCP-Real: the receiver sets the window, from the rate at which whole windows arrive.
//!
//! The sender sends in *waves*: numbered groups of as many segments as its window has. The numbers
//! show the receiver which arrival is the first of a wave, which is the last, and how many there
//! should be. The receiver ([`WaveMeter`]) measures the rate of each wave and reports the *level*
//! of the next one. The sender ([`TcpReal`]) sets a window of two segments per level. A segment
//! lost inside a wave does not change the rate, so losses of a wireless link cost a retransmission
//! and no window.
//!
//! Source: Zhang and Tsaoussidis, TCP-Real: Improving Real-time Capabilities of TCP over
//! Heterogeneous Networks, NOSSDAV 2001, sections 2 and 3 and figure 1.
//!
//! Read `meter` first: it has figure 1 and the wave-decision timer. `sender` has the window and the
//! timeout. `decisions` lists what the paper leaves open, with a setting for each other reading.
//!
//! Differs from the paper in: 1. the thirteen decisions; 2. a segment carries its position in its
//! wave, so the receiver recognises the last segment after losses; 3. text and figure 1 contradict
//! each other: the text wants small windows to grow faster and large ones to shrink faster, and the
//! figure's weights do the opposite. This code follows the figure, unless [`Weights::Text`] is
//! configured. Section 2.1 and footnote 3 reduce the window at every timeout, and section 2.2 only
//! without the bit. This code follows section 2.2, unless [`TimeoutReduction::Always`] is
//! configured; 4. the datagram transport has no duplicate acknowledgements, so the bit is never
//! set. It has no retransmission timer either: persistent congestion (losses over three probe
//! timeouts) counts as the timeout, so the window falls later than on TCP, each time, and
//! [`TcpRealConfig::timeout_repair`] has no effect. Its waves consist of packets, which need not be
//! full.

mod decisions;
mod meter;
mod sender;

pub use decisions::{LevelRounding, Opening, TcpRealConfig, TimeoutReduction, Weights};
pub use meter::WaveMeter;
pub use sender::TcpReal;

/// How far a sender advances its wave numbers on a new path: a quarter of all numbers, more than
/// losses or packets of the old path explain.
const NEW_BEGINNING: u16 = 1 << 14;
