//! The states of a connection.

/// The state of a connection (RFC 9293, section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Waiting for a peer.
    Listen,
    /// Our SYN is out.
    SynSent,
    /// Both SYNs were sent, and ours is not acknowledged.
    SynReceived,
    /// Data flows.
    Established,
    /// We have closed; our FIN is not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged; the peer may still send.
    FinWait2,
    /// The peer has closed; we may still send.
    CloseWait,
    /// Both have closed; our FIN is not acknowledged.
    Closing,
    /// The peer closed first, then we; our FIN is not acknowledged.
    LastAck,
    /// Everything is acknowledged; late segments still get a response.
    TimeWait,
    /// Over, or reset.
    Closed,
}

impl State {
    /// Whether the peer's first sequence number is known.
    pub(super) const fn is_synchronized(self) -> bool {
        !matches!(self, Self::Listen | Self::SynSent | Self::Closed)
    }
}
