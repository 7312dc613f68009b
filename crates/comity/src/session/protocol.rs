//! What a session carries.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use comity_transport::datagram::PathFrame;
use comity_units::{PacketNumber, Span, Time};
use thiserror::Error;

use super::{Ecn, Role};

/// A packet whose payload a transport has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Its number: higher than that of every packet before, of any kind.
    pub number: PacketNumber,
    /// How the datagram is to be marked.
    pub ecn: Ecn,
    /// From when on it is not to be sent any more; `Time::MAX` for never.
    pub leave_by: Time,
}

/// The transport of one connection, as its session sees it: plain payloads with their packet
/// numbers.
///
/// A payload that breaks the rules of the transport makes it close itself, which it shows by
/// sending what it has to and then answering [`Protocol::is_closed`].
pub trait Protocol {
    /// The handshake is done. The caller must send something that the peer answers, and
    /// repeat it until it is answered: only that opens the connection at the listener.
    fn on_established(&mut self, now: Time);

    /// A genuine packet that was not seen before. Numbers may come in any order.
    fn on_packet(&mut self, now: Time, number: PacketNumber, ecn: Ecn, payload: &[u8]);

    /// A packet has come with a number that was seen before. It is not opened, so anybody may have
    /// sent it.
    fn on_duplicate(&mut self);

    /// Appends the payload of the next packet that may leave now.
    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit>;

    /// Appends a payload of this frame and padding, `length` bytes in all or as few as the frame
    /// takes. It leaves at once and for another address than all others: no congestion control
    /// holds it.
    fn write_path_frame(
        &mut self,
        now: Time,
        frame: PathFrame,
        length: usize,
        out: &mut Vec<u8>,
    ) -> Option<Transmit>;

    /// The next path frame of the packet that was handed in last.
    fn poll_path_frame(&mut self) -> Option<PathFrame>;

    /// Packets take another way from now on: what was learnt of the path does not hold.
    fn on_path_changed(&mut self, now: Time);

    /// How long an answer may take before it is worth asking again.
    fn probe_timeout(&self) -> Span;

    /// Whether nothing will be sent or taken any more.
    fn is_closed(&self) -> bool;

    /// When [`Protocol::on_timer`] is due; `Time::MAX` for never.
    fn next_timer(&self) -> Time;

    /// Time has come.
    fn on_timer(&mut self, now: Time);
}

/// The peer's transport parameters are none that this end can work with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the peer's transport parameters are invalid or not acceptable")]
pub struct BadParameters;

/// Makes the transport of a new connection from the role of this end, the bytes that sealing adds
/// to each payload, and the peer's parameters.
pub type Opener<C> = Box<dyn FnMut(Time, Role, usize, &[u8]) -> Result<C, BadParameters> + Send>;

/// One that other threads use as well: each call locks it.
impl<P: Protocol> Protocol for Arc<Mutex<P>> {
    fn on_established(&mut self, now: Time) {
        lock(self).on_established(now);
    }

    fn on_packet(&mut self, now: Time, number: PacketNumber, ecn: Ecn, payload: &[u8]) {
        lock(self).on_packet(now, number, ecn, payload);
    }

    fn on_duplicate(&mut self) {
        lock(self).on_duplicate();
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        lock(self).poll_transmit(now, out)
    }

    fn write_path_frame(
        &mut self,
        now: Time,
        frame: PathFrame,
        length: usize,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        lock(self).write_path_frame(now, frame, length, out)
    }

    fn poll_path_frame(&mut self) -> Option<PathFrame> {
        lock(self).poll_path_frame()
    }

    fn on_path_changed(&mut self, now: Time) {
        lock(self).on_path_changed(now);
    }

    fn probe_timeout(&self) -> Span {
        lock(self).probe_timeout()
    }

    fn is_closed(&self) -> bool {
        lock(self).is_closed()
    }

    fn next_timer(&self) -> Time {
        lock(self).next_timer()
    }

    fn on_timer(&mut self, now: Time) {
        lock(self).on_timer(now);
    }
}

/// A lock whose holders do not panic; if one did, what it left is still consistent enough to end
/// with.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
