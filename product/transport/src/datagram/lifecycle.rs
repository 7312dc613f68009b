//! The life of a connection: open, closing, draining, closed, with the reason.

use alloc::string::String;

use comity_units::{Span, Time};

use super::events::{CloseReason, Violation};
use crate::wire::CloseCode;
use crate::wire::frame::Close;
use crate::wire::limits::MAX_REASON;

/// The states from `Open` to `Closed`, and the reason for leaving `Open`.
///
/// The end that closes answers further packets with its reason. It answers the 1st, 2nd, 4th, 8th,
/// and so on, so that two closed ends do not answer each other for ever. It also retransmits the
/// reason every half probe timeout, because a peer without data to send would not reveal the loss
/// of the packet.
#[derive(Debug)]
pub(super) struct Lifecycle {
    state: State,
    /// Why the connection is over, and whether the reason was polled.
    ended: Option<(CloseReason, bool)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// This end has closed the connection.
    Closing {
        until: Time,
        repeat_at: Time,
        code: CloseCode,
        reason: String,
        /// Whether a packet with the reason is due.
        owes_close: bool,
        /// Packets that arrived since.
        received: u32,
    },
    /// The peer has closed the connection: this end sends nothing.
    Draining {
        until: Time,
    },
    Closed,
}

impl Lifecycle {
    pub(super) const fn new() -> Self {
        Self {
            state: State::Open,
            ended: None,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Whether the connection is over and has nothing more to send.
    pub(super) fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Why the connection is over; `None` while it is open.
    pub(super) fn reason(&self) -> Option<&CloseReason> {
        self.ended.as_ref().map(|(reason, _)| reason)
    }

    /// Returns the reason once.
    pub(super) fn poll_reason(&mut self) -> Option<CloseReason> {
        match &mut self.ended {
            Some((reason, is_polled @ false)) => {
                *is_polled = true;
                Some(reason.clone())
            }
            _ => None,
        }
    }

    /// This end closes an open connection. `timeout` is the probe timeout.
    pub(super) fn close(&mut self, now: Time, timeout: Span, code: CloseCode, reason: &str) {
        let mut reason = String::from(reason);
        while reason.len() > MAX_REASON {
            reason.pop();
        }
        self.end(CloseReason::Local {
            code,
            reason: reason.clone(),
        });
        self.begin_closing(now, timeout, code, reason);
    }

    /// The peer of an open connection violated the protocol: this end closes.
    pub(super) fn on_violation(&mut self, now: Time, timeout: Span, violation: Violation) {
        self.end(CloseReason::Violation(violation));
        self.begin_closing(now, timeout, violation.code(), String::new());
    }

    /// The peer closed an open connection.
    pub(super) fn on_close(&mut self, now: Time, timeout: Span, close: &Close<'_>) {
        self.end(CloseReason::Peer {
            code: close.code,
            reason: close.reason.into(),
        });
        self.state = State::Draining {
            until: now + linger(timeout),
        };
    }

    /// The peer of an open connection is silent or unreachable.
    pub(super) fn on_idle(&mut self) {
        self.end(CloseReason::Idle);
        self.state = State::Closed;
    }

    fn end(&mut self, reason: CloseReason) {
        self.ended.get_or_insert((reason, false));
    }

    fn begin_closing(&mut self, now: Time, timeout: Span, code: CloseCode, reason: String) {
        self.state = State::Closing {
            until: now + linger(timeout),
            repeat_at: now + timeout / 2,
            code,
            reason,
            owes_close: true,
            received: 0,
        };
    }

    /// A packet arrived. Returns whether to read it.
    pub(super) const fn on_packet(&mut self) -> bool {
        if let State::Closing {
            owes_close,
            received,
            ..
        } = &mut self.state
        {
            *received += 1;
            *owes_close |= received.is_power_of_two();
        }
        matches!(self.state, State::Open)
    }

    /// Returns the close if it is due, once.
    pub(super) fn take_close(&mut self) -> Option<Close<'_>> {
        match &mut self.state {
            State::Closing {
                code,
                reason,
                owes_close: owes_close @ true,
                ..
            } => {
                *owes_close = false;
                Some(Close {
                    code: *code,
                    reason: reason.as_str(),
                })
            }
            _ => None,
        }
    }

    /// When [`Lifecycle::on_timer`] is next due; `None` while the connection is open.
    pub(super) fn next_timer(&self) -> Option<Time> {
        match &self.state {
            State::Open => None,
            State::Closing {
                until, repeat_at, ..
            } => Some(*until.min(repeat_at)),
            State::Draining { until } => Some(*until),
            State::Closed => Some(Time::MAX),
        }
    }

    /// Handles the expiry of the timer. `timeout` is the probe timeout.
    pub(super) fn on_timer(&mut self, now: Time, timeout: Span) {
        match &mut self.state {
            State::Closing { until, .. } | State::Draining { until } if *until <= now => {
                self.state = State::Closed;
            }
            State::Closing {
                repeat_at,
                owes_close,
                ..
            } if *repeat_at <= now => {
                *owes_close = true;
                *repeat_at = now + timeout / 2;
            }
            State::Open | State::Closing { .. } | State::Draining { .. } | State::Closed => {}
        }
    }
}

/// How long a closed connection answers or drops further packets: three probe timeouts (RFC 9000,
/// section 10.2), up to a maximum. The maximum is necessary because the peer's acknowledgements
/// determine the probe timeout.
fn linger(timeout: Span) -> Span {
    const MAX: Span = Span::from_secs(3);
    (timeout * 3).min(MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_secs(1);
    const TIMEOUT: Span = Span::from_millis(100);

    fn closed() -> Lifecycle {
        let mut lifecycle = Lifecycle::new();
        lifecycle.close(NOW, TIMEOUT, CloseCode::DONE, "done");
        lifecycle
    }

    #[test]
    fn a_closed_end_answers_each_doubling_of_packets() {
        let mut lifecycle = closed();
        assert_eq!(
            lifecycle.take_close().map(|close| close.reason),
            Some("done")
        );
        assert_eq!(lifecycle.take_close(), None);
        let mut answers = 0;
        for _ in 0..100 {
            assert!(!lifecycle.on_packet());
            answers += u32::from(lifecycle.take_close().is_some());
        }
        assert_eq!(answers, 7, "after 1, 2, 4, 8, 16, 32 and 64 packets");
    }

    #[test]
    fn the_close_is_repeated_until_three_timeouts_have_passed() {
        let mut lifecycle = closed();
        lifecycle.take_close();
        let mut now = NOW;
        let mut repetitions = 0;
        while !lifecycle.is_closed() {
            now = lifecycle.next_timer().expect("it is not open");
            lifecycle.on_timer(now, TIMEOUT);
            repetitions += u32::from(lifecycle.take_close().is_some());
        }
        assert_eq!(now, NOW + TIMEOUT * 3);
        assert_eq!(repetitions, 5, "every 50 ms, and the end after 300 ms");
        assert_eq!(lifecycle.next_timer(), Some(Time::MAX));
    }

    #[test]
    fn the_end_that_did_not_close_is_silent() {
        let mut lifecycle = Lifecycle::new();
        assert!(lifecycle.on_packet());
        assert_eq!((lifecycle.next_timer(), lifecycle.reason()), (None, None));
        let close = Close {
            code: CloseCode::DONE,
            reason: "bye",
        };
        lifecycle.on_close(NOW, TIMEOUT, &close);
        assert!(!lifecycle.on_packet());
        assert_eq!(lifecycle.take_close(), None);
        lifecycle.on_timer(NOW + Span::from_millis(299), TIMEOUT);
        assert!(!lifecycle.is_closed());
        lifecycle.on_timer(NOW + Span::from_millis(300), TIMEOUT);
        assert!(lifecycle.is_closed());
    }

    #[test]
    fn the_reason_is_polled_once_and_stays() {
        let mut lifecycle = Lifecycle::new();
        assert_eq!(lifecycle.poll_reason(), None);
        lifecycle.on_idle();
        assert!(lifecycle.is_closed());
        assert_eq!(lifecycle.poll_reason(), Some(CloseReason::Idle));
        assert_eq!(lifecycle.poll_reason(), None);
        assert_eq!(lifecycle.reason(), Some(&CloseReason::Idle));
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let mut lifecycle = Lifecycle::new();
        let long = "é".repeat(MAX_REASON);
        lifecycle.close(NOW, TIMEOUT, CloseCode::DONE, &long);
        let close = lifecycle.take_close().expect("the close is due");
        assert_eq!(close.reason, &long[..MAX_REASON / 2 * 2]);
    }
}
