//! The interface of the transport that a session carries.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

pub use comity_transport::datagram::PathFrame;
use comity_units::{PacketNumber, Span, Time};
use thiserror::Error;

use super::locking::{lock, lock_or_fail};
use super::{Ecn, PublicKey, Role};

/// A packet with the payload of a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Its number: higher than that of every earlier packet of any kind.
    pub number: PacketNumber,
    /// The ECN mark of the datagram.
    pub ecn: Ecn,
    /// The time after which it must not be sent; `Time::MAX` for never.
    pub leave_by: Time,
}

/// The transport of one connection, as its session uses it: plain payloads with their packet
/// numbers.
///
/// A payload that violates the protocol makes the transport close itself. It sends a last packet if
/// it has to, and then [`Protocol::is_closed`] returns true.
pub trait Protocol {
    /// Handles the identity of the peer when the session begins: the key that it has proved to own,
    /// if static keys are used, and its address.
    fn on_peer(&mut self, _key: Option<PublicKey>, _address: SocketAddr) {}

    /// Handles the end of the handshake, which measured this round-trip time or none. The caller
    /// must send something that elicits an answer, and retransmit it until the answer comes: only
    /// that opens the connection at the listener.
    fn on_established(&mut self, now: Time, round_trip: Option<Span>);

    /// Handles an authentic packet that arrived for the first time. Numbers may come in any order.
    fn on_packet(&mut self, now: Time, number: PacketNumber, ecn: Ecn, payload: &[u8]);

    /// Handles a packet with an already received number. It may be forged, since it was not opened.
    fn on_duplicate(&mut self);

    /// Appends the payload of the next packet that may leave now.
    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit>;

    /// Appends a payload of this frame and padding: `length` bytes in all, or more if the frame
    /// needs more. It leaves at once, outside congestion control, possibly for another address than
    /// other packets.
    fn write_path_frame(
        &mut self,
        now: Time,
        frame: PathFrame,
        length: usize,
        out: &mut Vec<u8>,
    ) -> Option<Transmit>;

    /// The next path frame of the last packet passed in.
    fn poll_path_frame(&mut self) -> Option<PathFrame>;

    /// Handles a move of the peer, which has proved that it has the address `to`. Measurements of
    /// the path to `from` may be invalid (RFC 9000, section 9.4).
    fn on_path_changed(&mut self, now: Time, from: SocketAddr, to: SocketAddr);

    /// The time to wait for an answer before repeating a request.
    fn probe_timeout(&self) -> Span;

    /// Whether it no longer sends or accepts anything.
    fn is_closed(&self) -> bool;

    /// Whether it sends and reads no more packets. It may still have something to deliver before it
    /// is closed.
    fn is_silent(&self) -> bool {
        self.is_closed()
    }

    /// Whether its end has begun. It may still have something to deliver before it is closed.
    fn has_ended(&self) -> bool {
        self.is_closed()
    }

    /// When [`Protocol::on_timer`] is due; `Time::MAX` for never.
    fn next_timer(&self) -> Time;

    /// Handles the expiry of the timer.
    fn on_timer(&mut self, now: Time);

    /// Handles a panic in a call, which leaves the state broken. The session makes no further call.
    /// A shared transport replaces its state here by a closed one. Repeated calls have no effect.
    fn fail(&mut self, _now: Time) {}

    /// Whether it is closed because a call panicked.
    fn has_failed(&self) -> bool {
        false
    }
}

/// Why this end cannot open a connection with a peer with these transport parameters.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadParameters {
    /// They are invalid, or incompatible with this end.
    #[error("the peer's transport parameters are invalid or not acceptable")]
    Unfit,
    /// The caller requests another stream than that of the listener.
    #[error("{}", other_stream(.requested, .own))]
    Stream {
        /// The stream that the caller requests.
        requested: String,
        /// The stream of the listener; empty if it has no name.
        own: String,
    },
}

/// The error of a listener that refuses a caller for its stream.
pub(super) fn other_stream(requested: &str, own: &str) -> String {
    match own {
        "" => {
            format!(
                "the caller asks for the stream {requested:?}, and this listener has no streamid"
            )
        }
        own => format!(
            "the caller asks for the stream {requested:?}, and the streamid of this listener is {own:?}"
        ),
    }
}

/// Makes the transport of a new connection from this end's role, the bytes that sealing adds to
/// each payload, and the peer's parameters.
pub type Opener<C> = Box<dyn FnMut(Time, Role, usize, &[u8]) -> Result<C, BadParameters> + Send>;

/// Locks a transport. If a holder panicked, fails it first: a broken state sends and accepts
/// nothing.
pub(crate) fn whole<P: Protocol>(shared: &Mutex<P>, now: Time) -> MutexGuard<'_, P> {
    lock_or_fail(shared, |broken| broken.fail(now))
}

/// A transport that other threads share: each call locks it.
impl<P: Protocol> Protocol for Arc<Mutex<P>> {
    fn on_peer(&mut self, key: Option<PublicKey>, address: SocketAddr) {
        lock(self).on_peer(key, address);
    }

    fn on_established(&mut self, now: Time, round_trip: Option<Span>) {
        whole(self, now).on_established(now, round_trip);
    }

    fn on_packet(&mut self, now: Time, number: PacketNumber, ecn: Ecn, payload: &[u8]) {
        whole(self, now).on_packet(now, number, ecn, payload);
    }

    fn on_duplicate(&mut self) {
        lock(self).on_duplicate();
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        whole(self, now).poll_transmit(now, out)
    }

    fn write_path_frame(
        &mut self,
        now: Time,
        frame: PathFrame,
        length: usize,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        whole(self, now).write_path_frame(now, frame, length, out)
    }

    fn poll_path_frame(&mut self) -> Option<PathFrame> {
        lock(self).poll_path_frame()
    }

    fn on_path_changed(&mut self, now: Time, from: SocketAddr, to: SocketAddr) {
        whole(self, now).on_path_changed(now, from, to);
    }

    fn probe_timeout(&self) -> Span {
        lock(self).probe_timeout()
    }

    fn is_closed(&self) -> bool {
        lock(self).is_closed()
    }

    fn is_silent(&self) -> bool {
        lock(self).is_silent()
    }

    fn has_ended(&self) -> bool {
        lock(self).has_ended()
    }

    fn next_timer(&self) -> Time {
        lock(self).next_timer()
    }

    fn on_timer(&mut self, now: Time) {
        whole(self, now).on_timer(now);
    }

    fn fail(&mut self, now: Time) {
        lock(self).fail(now);
    }

    fn has_failed(&self) -> bool {
        lock(self).has_failed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records the calls, and returns values that nothing else returns.
    #[derive(Default)]
    struct Calls(Mutex<Vec<&'static str>>);

    const TRANSMIT: Transmit = Transmit {
        number: PacketNumber::new(7),
        ecn: Ecn::Capable0,
        leave_by: Time::from_secs(8),
    };

    impl Calls {
        fn note(&self, call: &'static str) {
            lock(&self.0).push(call);
        }
    }

    impl Protocol for Calls {
        fn on_peer(&mut self, _: Option<PublicKey>, _: SocketAddr) {
            self.note("on_peer");
        }

        fn on_established(&mut self, _: Time, _: Option<Span>) {
            self.note("on_established");
        }

        fn on_packet(&mut self, _: Time, _: PacketNumber, _: Ecn, _: &[u8]) {
            self.note("on_packet");
        }

        fn on_duplicate(&mut self) {
            self.note("on_duplicate");
        }

        fn poll_transmit(&mut self, _: Time, _: &mut Vec<u8>) -> Option<Transmit> {
            Some(TRANSMIT)
        }

        fn write_path_frame(
            &mut self,
            _: Time,
            _: PathFrame,
            _: usize,
            _: &mut Vec<u8>,
        ) -> Option<Transmit> {
            Some(TRANSMIT)
        }

        fn poll_path_frame(&mut self) -> Option<PathFrame> {
            Some(PathFrame::Response([9; 8]))
        }

        fn on_path_changed(&mut self, _: Time, _: SocketAddr, _: SocketAddr) {
            self.note("on_path_changed");
        }

        fn probe_timeout(&self) -> Span {
            Span::from_millis(10)
        }

        fn is_closed(&self) -> bool {
            !lock(&self.0).is_empty()
        }

        fn next_timer(&self) -> Time {
            Time::from_secs(11)
        }

        fn on_timer(&mut self, _: Time) {
            self.note("on_timer");
        }

        fn fail(&mut self, _: Time) {
            self.note("fail");
        }
    }

    #[test]
    fn a_shared_transport_gets_every_call() {
        let mut shared = Arc::new(Mutex::new(Calls::default()));
        let (now, mut out) = (Time::ZERO, Vec::new());
        assert!(!shared.is_closed());
        let [from, to] = [1, 2].map(|port| SocketAddr::from(([192, 0, 2, 1], port)));
        shared.on_peer(None, from);
        shared.on_established(now, None);
        shared.on_packet(now, PacketNumber::new(0), Ecn::NotCapable, &[]);
        shared.on_duplicate();
        shared.on_path_changed(now, from, to);
        shared.on_timer(now);
        shared.fail(now);
        assert!(shared.is_closed());
        assert_eq!(shared.poll_transmit(now, &mut out), Some(TRANSMIT));
        let frame = PathFrame::Challenge([1; 8]);
        let written = shared.write_path_frame(now, frame, 0, &mut out);
        assert_eq!(written, Some(TRANSMIT));
        let polled = shared.poll_path_frame();
        assert!(matches!(polled, Some(PathFrame::Response([9, ..]))));
        assert_eq!(shared.probe_timeout(), Span::from_millis(10));
        assert_eq!(shared.next_timer(), Time::from_secs(11));
        let calls = lock(&lock(&shared).0).clone();
        let expected = [
            "on_peer",
            "on_established",
            "on_packet",
            "on_duplicate",
            "on_path_changed",
            "on_timer",
            "fail",
        ];
        assert_eq!(calls, expected);
    }
}
