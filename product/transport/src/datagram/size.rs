//! The packet size, and the search for the largest size that the path carries (path MTU discovery).

use comity_units::{PacketNumber, Span, Time};

use comity_congestion::{SEARCH_INTERVAL, SizeSearch};

/// The size of full packets, as protected payload in bytes (RFC 8899: packetization layer path MTU
/// discovery).
///
/// ```text
///             a packet of the size tried arrives: current = size
///           ┌──┐                                     current = max, or limit − current ≤ 16
///        ┌──▼──┴─────┐ ─────────────────────────────────────────────► ┌──────────┐
///  ────► │ Searching │                                                │ Complete │
///        └─▲──┬────▲─┘ ◄───────────────────────────────────────────── └────┬─────┘
///          └──┘    │           current < max, and 600 s have passed        │
///   three tries of │                                                       │
///   a size failed, └───────────────────────────────────────────────────────┘
///   or the system         three packets larger than the base are lost and no later one of them arrives,
///   refused it:           or the system refuses the current size: current = base
///   limit = size
/// ```
///
/// The search first tries the largest size, which most paths carry. It then tries the middle
/// between the largest size that arrived and the smallest size that did not. A try is a packet of
/// padding: neither window nor pacer holds it back, and its loss is no sign of congestion. At most
/// one try is in flight. A size has failed only if a later packet arrives: in an outage, no packet
/// does.
///
/// Differs from RFC 8899 in: 1. the largest size is tried first ([`SizeSearch`]); 2. a black hole
/// is detected by losses of larger packets while later smaller ones arrive, as in QUIC
/// implementations, because loss detection reports them sooner than the three probe timeouts of
/// section 4.3; 3. sizes below the base are not searched: the handshake requires the base.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathSize {
    /// The size that every path with a successful handshake carries.
    base: u32,
    sizes: SizeSearch,
    /// The packet that tries a size: its number, its size, and its departure time.
    tried: Option<(PacketNumber, u32, Time)>,
    search: Search,
    /// The number of lost packets larger than the base since the last arrival of such a packet.
    lost: u32,
    /// The newest acknowledged packet larger than the base.
    arrived: Option<PacketNumber>,
    /// The last size reported to the owner.
    reported: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Search {
    On,
    Complete { again_at: Time },
}

impl PathSize {
    /// Allows sizes up to `max`. A size above `base` is used only after a successful try. Without a
    /// base, the path is assumed to carry `max`.
    pub(super) fn new(base: Option<u32>, max: u32) -> Self {
        let base = base.unwrap_or(max).min(max);
        Self {
            base,
            sizes: SizeSearch::new(base, max),
            tried: None,
            search: match base < max {
                true => Search::On,
                false => Search::Complete {
                    again_at: Time::MAX,
                },
            },
            lost: 0,
            arrived: None,
            reported: max,
        }
    }

    /// The path has changed.
    pub(super) fn on_new_path(&mut self) {
        *self = Self {
            reported: self.reported,
            ..Self::new(Some(self.base), self.sizes.max())
        };
    }

    /// The payload of a full packet.
    pub(super) const fn current(&self) -> u32 {
        self.sizes.current()
    }

    /// The size that every path with a successful handshake carries.
    pub(super) const fn base(&self) -> u32 {
        self.base
    }

    /// The size to try now.
    pub(super) fn next_try(&mut self, now: Time) -> Option<u32> {
        if let Search::Complete { again_at } = self.search {
            if again_at > now {
                return None;
            }
            self.begin_at(self.current());
        }
        self.tried.is_none().then(|| self.sizes.probe())
    }

    fn begin_at(&mut self, current: u32) {
        self.search = Search::On;
        self.sizes.restart_at(current);
        self.tried = None;
        self.lost = 0;
    }

    /// A packet that tries this size leaves.
    pub(super) fn on_tried(&mut self, now: Time, number: PacketNumber, size: u32) {
        self.tried = Some((number, size, now));
    }

    /// The number of the packet that tries a size.
    pub(super) fn tried(&self) -> Option<PacketNumber> {
        self.tried.map(|(number, ..)| number)
    }

    /// When the packet in flight that tries a size counts as lost: `timeout` after its departure.
    pub(super) fn due_at(&self, timeout: Span) -> Time {
        self.tried.map_or(Time::MAX, |(_, _, at)| at + timeout)
    }

    /// The packet that tried a size arrived.
    pub(super) fn on_success(&mut self, now: Time) {
        let Some((number, size, _)) = self.tried.take() else {
            return;
        };
        self.sizes.on_success(size);
        self.on_arrived(number);
        self.settle(now);
    }

    /// The packet that tries a size did not arrive in time. `newest` is the largest acknowledged
    /// packet.
    pub(super) fn on_failure(&mut self, now: Time, newest: Option<PacketNumber>) {
        let Some((number, size, _)) = self.tried.take() else {
            return;
        };
        // If no later packet arrived either, the path is interrupted.
        if newest > Some(number) {
            self.sizes.on_failure(size);
            self.settle(now);
        }
    }

    /// The system refuses to send packets of this size to the peer.
    pub(super) fn on_refused(&mut self, now: Time, size: u32) {
        if size <= self.base || self.sizes.has_failed(size) {
            return;
        }
        let again = self.tried.filter(|(_, tried, _)| *tried < size);
        self.begin_at(match size <= self.current() {
            true => self.base,
            false => self.current(),
        });
        self.tried = again;
        self.sizes.refuse(size);
        self.settle(now);
    }

    /// A packet larger than the base arrived.
    pub(super) fn on_arrived(&mut self, number: PacketNumber) {
        if self.arrived < Some(number) {
            self.arrived = Some(number);
            self.lost = 0;
        }
    }

    /// These packets, by number and size, were lost although later packets arrived. Returns whether
    /// this proves that the path no longer carries their size.
    pub(super) fn on_lost(&mut self, packets: impl Iterator<Item = (PacketNumber, u32)>) -> bool {
        if self.current() <= self.base {
            return false;
        }
        let (base, arrived) = (self.base, self.arrived);
        let counts = |(number, size): &(PacketNumber, u32)| *size > base && Some(*number) > arrived;
        let lost = packets.filter(counts).count();
        self.lost = self
            .lost
            .saturating_add(u32::try_from(lost).unwrap_or(u32::MAX));
        if self.lost < BLACK_HOLE_LOSSES {
            return false;
        }
        self.begin_at(self.base);
        true
    }

    fn settle(&mut self, now: Time) {
        if self.sizes.is_over() {
            self.tried = None;
            self.search = Search::Complete {
                again_at: match self.sizes.is_at_max() {
                    true => Time::MAX,
                    false => now + SEARCH_INTERVAL,
                },
            };
        }
    }

    /// The new size, if the owner does not know it yet.
    pub(super) fn news(&mut self) -> Option<u32> {
        let is_complete = matches!(self.search, Search::Complete { .. });
        if !is_complete || self.current() == self.reported {
            return None;
        }
        self.reported = self.current();
        Some(self.reported)
    }
}

/// The number of losses of larger packets that prove a black hole. It is the packet threshold of
/// loss detection.
const BLACK_HOLE_LOSSES: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches on a path that carries packets up to `carried`. Returns the number of tries.
    fn search(size: &mut PathSize, now: Time, carried: u32, first: u64) -> u64 {
        let mut number = first;
        while let Some(tried) = size.next_try(now) {
            size.on_tried(now, PacketNumber::new(number), tried);
            match tried <= carried {
                true => size.on_success(now),
                false => size.on_failure(now, Some(PacketNumber::new(number + 1))),
            }
            number += 1;
            assert!(number - first < 40, "the search ends");
        }
        number - first
    }

    #[test]
    fn the_search_by_hand() {
        let mut size = PathSize::new(Some(1_171), 1_423);
        assert_eq!(
            (size.current(), size.next_try(Time::ZERO)),
            (1_171, Some(1_423))
        );
        assert_eq!(search(&mut size, Time::ZERO, 1_423, 0), 1);
        assert_eq!((size.current(), size.news()), (1_423, None));
        // 1,423 fails; 1,297 arrives; 1,360 arrives; 1,391 fails; 1,375 fails, and 1,360 is close
        // enough.
        let mut size = PathSize::new(Some(1_171), 1_423);
        assert_eq!(search(&mut size, Time::ZERO, 1_370, 0), 3 + 1 + 1 + 3 + 3);
        assert_eq!((size.current(), size.news()), (1_360, Some(1_360)));
        assert_eq!(size.news(), None, "reported once");
        // Ten minutes later the path has become wider.
        let later = Time::from_secs(600);
        assert_eq!(size.next_try(Time::from_nanos(later.as_nanos() - 1)), None);
        assert_eq!(search(&mut size, later, 9_000, 100), 1);
        assert_eq!((size.current(), size.news()), (1_423, Some(1_423)));
    }

    #[test]
    fn an_outage_does_not_affect_the_size() {
        let mut size = PathSize::new(Some(1_171), 1_423);
        for number in 1..100 {
            assert_eq!(size.next_try(Time::ZERO), Some(1_423));
            size.on_tried(Time::ZERO, PacketNumber::new(number), 1_423);
            let newest = (number > 1).then_some(PacketNumber::new(0));
            size.on_failure(Time::ZERO, newest);
        }
        assert_eq!(search(&mut size, Time::ZERO, 1_423, 100), 1);
        assert_eq!((size.current(), size.news()), (1_423, None));
        // Later packets arrive, and those of this size do not.
        let mut size = PathSize::new(Some(1_171), 1_423);
        search(&mut size, Time::ZERO, 1_171, 0);
        assert_eq!(size.news(), Some(1_171));
    }

    #[test]
    fn without_a_base_the_size_never_changes() {
        let mut size = PathSize::new(None, 1_400);
        assert_eq!(
            (size.current(), size.next_try(Time::from_secs(86_400))),
            (1_400, None)
        );
        assert!(!size.on_lost((0..100).map(|number| (PacketNumber::new(number), 1_400))));
        size.on_refused(Time::ZERO, 1_400);
        assert_eq!(size.current(), 1_400);
    }

    #[test]
    fn a_size_refused_by_the_system_is_not_tried_again() {
        let mut size = PathSize::new(Some(1_171), 1_423);
        let now = Time::ZERO;
        let mut tried = 0;
        while let Some(bytes) = size.next_try(now) {
            size.on_tried(now, PacketNumber::new(tried), bytes);
            match bytes <= 1_343 {
                true => size.on_success(now),
                false => size.on_refused(now, bytes),
            }
            tried += 1;
        }
        assert!((1_328..=1_343).contains(&size.current()), "{size:?}");
        assert_eq!(
            tried, 5,
            "one for each halving of 252 bytes down to 16, and the first"
        );
        // The interface changes during the search.
        size.on_refused(now, size.current());
        assert_eq!(size.current(), 1_171);
        assert!(size.next_try(now).is_some_and(|bytes| bytes < 1_343));
        size.on_refused(now, 1_100);
        assert_eq!(size.current(), 1_171, "never below the base");
    }

    #[test]
    fn losses_are_a_black_hole_only_if_no_large_packet_arrives() {
        let mut size = PathSize::new(Some(1_171), 1_423);
        search(&mut size, Time::ZERO, 1_423, 0);
        let large = |numbers: core::ops::Range<u64>| {
            numbers.map(|number| (PacketNumber::new(number), 1_400))
        };
        assert!(!size.on_lost(large(10..12)));
        size.on_arrived(PacketNumber::new(12));
        assert!(
            !size.on_lost(large(1..12)),
            "they left before one that arrived"
        );
        assert!(!size.on_lost(large(13..15)), "two");
        assert!(!size.on_lost((20..60).map(|number| (PacketNumber::new(number), 1_171))));
        assert!(size.on_lost(large(60..61)), "the third");
        assert_eq!(
            (size.current(), size.next_try(Time::ZERO)),
            (1_171, Some(1_423))
        );
    }
}
