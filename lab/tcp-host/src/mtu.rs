//! Searches the path MTU of one connection without reports of routers (RFC 4821).

use comity_congestion::{SEARCH_INTERVAL, SizeSearch};
use comity_units::{SeqNo, Span, Time};

/// The number of consecutive retransmission timeouts after which the path is suspected to drop
/// large packets without a report: R1 of RFC 9293, section 3.8.3, as in RFC 4821, section 7.7.
const TIMEOUTS: u32 = 3;
/// The first fallback: the initial size of RFC 4821, section 7.2. IPv6 paths carry more by
/// definition.
const BASE_V4: u32 = 1_024;
/// The minimum duration of a fallback, and the time that the answer to a probe may take in addition
/// to two round trips (RFC 8899, section 5.1.1).
const PROBE_AFTER: Span = Span::from_secs(1);

/// The path MTU of a connection, and the search for a larger one.
///
/// A probe is a large segment with data that is already in flight. If the path carries it, the peer
/// reports it as a duplicate (RFC 2883). If not, nothing has to be repaired.
///
/// Differs from RFC 4821 in two points: 1. a probe repeats data instead of carrying new data, which
/// its loss would delay; so a peer without duplicate SACKs confirms no probe; 2. a search tries the
/// largest size first ([`SizeSearch`]).
#[derive(Debug)]
pub(crate) struct PathMtu {
    /// The sizes of the search. Only probes are larger than the current one.
    sizes: SizeSearch,
    /// The minimum MTU of any path.
    floor: u32,
    probe: Option<Probe>,
    /// When the next probe may be sent; [`Time::MAX`] at the largest size.
    next_at: Time,
}

/// A probe that has not been answered.
#[derive(Clone, Copy, Debug)]
struct Probe {
    start: SeqNo,
    end: SeqNo,
    mtu: u32,
}

/// The next step of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// Send a probe of this many bytes.
    Probe(u32),
    /// The search has ended, and the present size also holds for other connections.
    Settled,
}

impl PathMtu {
    /// Begins with packets of `mtu` bytes, over an interface with the MTU `interface`.
    pub(crate) fn new(now: Time, mtu: u32, interface: u32, floor: u32) -> Self {
        Self {
            sizes: SizeSearch::new(mtu, interface),
            floor,
            probe: None,
            next_at: if mtu < interface {
                now + SEARCH_INTERVAL
            } else {
                Time::MAX
            },
        }
    }

    pub(crate) const fn current(&self) -> u32 {
        self.sizes.current()
    }

    /// Limits packets to `mtu` bytes, which the peer accepts.
    pub(crate) fn limit_largest(&mut self, mtu: u32) {
        let max = self.sizes.max().min(mtu);
        self.sizes = SizeSearch::new(self.current().min(max), max);
        if self.sizes.is_at_max() {
            self.next_at = Time::MAX;
        }
    }

    /// Handles a router's report that the path carries `mtu` bytes. Returns whether packets become
    /// smaller.
    pub(crate) fn on_report(&mut self, now: Time, mtu: u32) -> bool {
        let is_smaller = mtu < self.current();
        if is_smaller {
            self.sizes.restart_at(mtu);
            self.settle(now);
        }
        is_smaller
    }

    /// Handles the `consecutive`-th retransmission timeout in a row, with `in_flight` bytes
    /// outstanding. Returns whether packets become smaller.
    pub(crate) fn on_timeout(&mut self, now: Time, consecutive: u32, in_flight: u64) -> bool {
        let base = self.floor.max(BASE_V4);
        let next = if self.current() > base {
            base
        } else {
            self.floor
        };
        let may_be_size = in_flight > u64::from(next) && next < self.current();
        if consecutive < TIMEOUTS || !may_be_size {
            return false;
        }
        self.sizes.restart_at(next);
        self.probe = None;
        self.next_at = now + PROBE_AFTER;
        true
    }

    /// The step that is due now.
    pub(crate) fn due(&mut self, now: Time) -> Due {
        if now < self.next_at {
            return Due::Nothing;
        }
        if let Some(probe) = self.probe.take() {
            // The probe was not answered.
            self.sizes.on_failure(probe.mtu);
        }
        if self.sizes.is_over() {
            self.settle(now);
            return Due::Settled;
        }
        Due::Probe(self.sizes.probe())
    }

    /// Records that a probe of `mtu` bytes is sent. The round-trip time is `round_trip`.
    pub(crate) fn on_probe(
        &mut self,
        now: Time,
        start: SeqNo,
        payload: u32,
        mtu: u32,
        round_trip: Span,
    ) {
        let end = start + payload;
        self.probe = Some(Probe { start, end, mtu });
        self.next_at = now + PROBE_AFTER + round_trip * 2;
    }

    /// Handles the peer's report that it received a range twice. Returns whether this confirms the
    /// probe.
    pub(crate) fn on_duplicate(&mut self, now: Time, start: SeqNo, end: SeqNo) -> bool {
        let answered = self
            .probe
            .take_if(|probe| (probe.start, probe.end) == (start, end));
        let Some(probe) = answered else {
            return false;
        };
        self.sizes.on_success(probe.mtu);
        self.next_at = if self.sizes.is_at_max() {
            Time::MAX
        } else {
            now
        };
        true
    }

    /// Ends a search. The next one starts again.
    fn settle(&mut self, now: Time) {
        self.sizes.restart();
        self.probe = None;
        self.next_at = now + SEARCH_INTERVAL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Span = Span::from_millis(50);

    /// Searches on a path that carries `carried` bytes until the search ends. Returns when it
    /// ended, and the number of probes.
    fn search(path: &mut PathMtu, mut now: Time, carried: u32) -> (Time, u32) {
        let mut probes = 0;
        loop {
            match path.due(now) {
                Due::Settled => return (now, probes),
                Due::Nothing if path.next_at.is_never() => return (now, probes),
                Due::Nothing => now = path.next_at,
                Due::Probe(mtu) => {
                    probes += 1;
                    assert!(probes < 100 && mtu > path.current());
                    let start = SeqNo::new(u32::MAX - 100);
                    path.on_probe(now, start, mtu, mtu, ROUND_TRIP);
                    assert_eq!(path.due(now), Due::Nothing, "one probe at a time");
                    assert!(
                        !path.on_duplicate(now, start, start + (mtu - 1)),
                        "another range"
                    );
                    if mtu <= carried {
                        assert!(path.on_duplicate(now + ROUND_TRIP, start, start + mtu));
                        now += ROUND_TRIP;
                    }
                }
            }
        }
    }

    #[test]
    fn a_search_ends_at_the_size_that_the_path_carries() {
        for interface in [1_500, 9_000] {
            for carried in (1_024..=interface).step_by(37).chain([interface]) {
                let mut path = PathMtu::new(Time::ZERO, interface, interface, 552);
                assert!(
                    !path.on_timeout(Time::ZERO, 2, 10_000),
                    "twice is no black hole"
                );
                assert!(path.on_timeout(Time::ZERO, 3, 10_000));
                assert_eq!(path.current(), 1_024);
                assert_eq!(
                    path.due(Time::ZERO),
                    Due::Nothing,
                    "a fallback lasts a second"
                );
                let (at, probes) = search(&mut path, Time::ZERO, carried);
                let found = path.current();
                assert!(
                    found <= carried && carried - found < 16,
                    "{found} of {carried}"
                );
                assert!(at < Time::from_secs(60) && probes <= 40, "{at} {probes}");
            }
        }
    }

    #[test]
    fn an_outage_costs_one_probe() {
        let mut path = PathMtu::new(Time::ZERO, 1_500, 1_500, 552);
        assert!(path.on_timeout(Time::ZERO, 3, 10_000));
        assert!(path.on_timeout(Time::ZERO, 4, 10_000));
        assert_eq!(path.current(), 552);
        assert!(
            !path.on_timeout(Time::ZERO, 5, 10_000),
            "no smaller size is left"
        );
        let (at, probes) = search(&mut path, Time::ZERO, 1_500);
        assert_eq!((path.current(), probes), (1_500, 1));
        assert_eq!(at, Time::ZERO + PROBE_AFTER + ROUND_TRIP);
    }

    #[test]
    fn little_in_flight_shows_no_black_hole() {
        let mut path = PathMtu::new(Time::ZERO, 1_500, 1_500, 552);
        assert!(!path.on_timeout(Time::ZERO, 9, 1_024));
        assert!(path.on_timeout(Time::ZERO, 9, 1_025));
        let mut narrow = PathMtu::new(Time::ZERO, 1_280, 1_500, 1_280);
        assert!(
            !narrow.on_timeout(Time::ZERO, 9, 10_000),
            "IPv6 has no smaller paths"
        );
    }

    #[test]
    fn a_reported_size_is_tried_again_after_ten_minutes() {
        let mut path = PathMtu::new(Time::ZERO, 1_500, 1_500, 552);
        let now = Time::from_secs(5);
        assert!(path.on_report(now, 1_400) && !path.on_report(now, 1_450));
        assert_eq!(
            path.due((now + SEARCH_INTERVAL).saturating_sub(Span::from_nanos(1))),
            Due::Nothing
        );
        assert_eq!(path.due(now + SEARCH_INTERVAL), Due::Probe(1_500));
        let (_, probes) = search(&mut path, now + SEARCH_INTERVAL, 1_500);
        assert_eq!((path.current(), probes), (1_500, 1));
    }

    #[test]
    fn nothing_larger_is_tried_than_the_peer_accepts() {
        let mut path = PathMtu::new(Time::ZERO, 9_000, 9_000, 552);
        path.limit_largest(1_500);
        assert_eq!(path.current(), 1_500);
        assert!(path.on_timeout(Time::ZERO, 3, 10_000));
        search(&mut path, Time::ZERO, 9_000);
        assert_eq!(path.current(), 1_500);
    }
}
