//! Explicit congestion notification.

/// The two ECN bits of an IP header (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ecn {
    /// The sender does not support ECN, or the host does not report the bits.
    #[default]
    NotCapable,
    /// ECT(0): the sender supports ECN.
    Capable0,
    /// ECT(1): the sender supports L4S (RFC 9331).
    Capable1,
    /// The network marked the packet instead of dropping it.
    CongestionExperienced,
}
