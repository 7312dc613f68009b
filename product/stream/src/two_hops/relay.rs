//! The two sides of a relay, as transports in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use comity::causes::ArgumentError;
use comity::parts::Time;
use comity::transport::{Delivery, Outgoing};
use comity::{
    Item, Outcome, Rate, Reason, Reliability, Section, SectionId, SendError, Span, StreamId,
};

use super::hop::{End, Hop};
use crate::counters::Counters;
use crate::error::Error;
use crate::joining::Background;
use crate::lock::lock;
use crate::missing::{Missing, MissingReason};
use crate::peer::Outlet;
use crate::receiver::source_item;
use crate::relay::{Sink, Source, Written};
use crate::subscriber::{Subscriber, Unreached};
use crate::transport::TransportMonitor;
use crate::unit::{MediaUnit, SourceItem};

/// What happens in one virtual time: the relay is the listener of the first hop and the caller of
/// the second.
pub(super) struct World {
    pub(super) now: Time,
    pub(super) hops: [Hop; 2],
    /// The instant at which the relay's clock showed zero.
    pub(super) origin: Instant,
    /// How far the relay's clock is ahead of the world's.
    pub(super) clock: Span,
    /// Whether there is a second connection, as far as the relay knows.
    pub(super) has_output: bool,
    /// The fates of sections that the relay sent, by their number in the second connection.
    pub(super) fates: BTreeMap<(StreamId, SectionId), Outcome>,
    outcomes: VecDeque<Outcome>,
    /// The sections that the relay received and has not taken yet.
    items: VecDeque<Item>,
    /// The numbers in the second connection of the source's sections. Those that came before there
    /// was one have none.
    pub(super) numbers: BTreeMap<(StreamId, SectionId), SectionId>,
    next: BTreeMap<StreamId, SectionId>,
}

pub(super) type Shared = Arc<Mutex<World>>;

impl World {
    pub(super) fn new(now: Time, hops: [Hop; 2], origin: Instant, clock: Span) -> Self {
        Self {
            now,
            hops,
            origin,
            clock,
            has_output: false,
            fates: BTreeMap::new(),
            outcomes: VecDeque::new(),
            items: VecDeque::new(),
            numbers: BTreeMap::new(),
            next: BTreeMap::new(),
        }
    }

    /// Lets time pass until something happens, or until `until`.
    pub(super) fn step(&mut self, until: Time) {
        let next = self.hops.iter().map(Hop::next).min().expect("two hops");
        self.now = next.clamp(self.now, until);
        for hop in &mut self.hops {
            if hop.next() <= self.now {
                hop.advance(self.now);
            }
        }
    }

    /// Lets all ends send what they can.
    pub(super) fn settle(&mut self) {
        let now = self.now;
        self.hops.iter_mut().for_each(|hop| hop.settle(now));
        for delivery in std::mem::take(&mut self.hops[0].deliveries) {
            let item = self.item(delivery);
            self.items.push_back(item);
        }
        for outcome in std::mem::take(&mut self.hops[1].outcomes) {
            let id = (outcome.stream, outcome.section);
            let before = self.fates.insert(id, outcome);
            assert!(before.is_none(), "a second fate of {id:?}");
            self.outcomes.push_back(outcome);
        }
    }

    /// The time of the relay's clock.
    fn here(&self) -> Time {
        self.now + self.clock
    }

    fn item(&mut self, delivery: Delivery<Bytes>) -> Item {
        let origin = self.origin;
        let instant =
            |time: Time| (!time.is_never()).then(|| origin + Duration::from_nanos(time.as_nanos()));
        let end = self.hops[0].transport(End::Listener);
        let transport = end.expect("it stays until everything is delivered");
        Item::from_delivery(delivery, transport, instant, origin)
    }
}

/// Receives from the first hop.
pub(super) struct Input {
    pub(super) world: Shared,
    pub(super) add_latency: Duration,
}

impl Source for Input {
    async fn next(&mut self) -> Result<Option<SourceItem>, Error> {
        poll_fn(|_| {
            let mut world = lock(&self.world);
            if let Some(item) = world.items.pop_front() {
                return Poll::Ready(Ok(Some(source_item(item, self.add_latency))));
            }
            let input = &mut world.hops[0];
            let is_over = input.closed.contains_key(&End::Listener)
                && input
                    .transport(End::Listener)
                    .is_none_or(|transport| !transport.has_deliveries());
            match is_over {
                true => Poll::Ready(Ok(None)),
                false => Poll::Pending,
            }
        })
        .await
    }

    fn cut(&mut self) {}

    fn refuse(&mut self, reason: &str) {
        panic!("{reason}");
    }

    async fn close(&mut self, _reason: Option<&str>) {}

    fn counters(&self) -> Counters {
        Counters::of_media(Arc::default(), TransportMonitor::default())
    }
}

/// The relay's end of the second hop.
struct Second(Shared);

impl Outlet for Second {
    fn latency(&self) -> Duration {
        let mut world = lock(&self.0);
        let transport = world.hops[1].transport(End::Caller);
        transport.map_or(Duration::ZERO, |transport| transport.latency().into())
    }

    fn round_trip(&self) -> Duration {
        Duration::ZERO
    }

    fn takes_layouts(&self) -> bool {
        true
    }

    /// A relay does not shed.
    fn offer(&self) -> Option<Rate> {
        None
    }

    fn try_send(&mut self, section: Section) -> Result<SectionId, SendError> {
        let mut world = lock(&self.0);
        let (now, origin) = (world.here(), world.origin);
        let source_time = section.source_time.expect("a relay knows it") - origin;
        let source_time = Time::ZERO + Span::from(source_time);
        let deadline = section.deadline.expect("a relay knows it");
        let outgoing = Outgoing {
            stream: section.stream,
            importance: section.importance,
            source_time,
            deadline: source_time
                .checked_add(Span::from(deadline))
                .unwrap_or(Time::MAX),
            needs: section.needs,
            payload: section.payload,
        };
        let transport = world.hops[1].transport(End::Caller).expect("it is open");
        let submitted = transport.submit(now, outgoing);
        let is_expected = matches!(
            submitted,
            Ok(_)
                | Err(SendError::Full { .. } | SendError::Argument(ArgumentError::TooLong { .. }))
        );
        assert!(is_expected, "{submitted:?}");
        submitted
    }

    fn skip_run(
        &mut self,
        stream: StreamId,
        count: u64,
        reason: Reason,
    ) -> Result<SectionId, SendError> {
        let mut world = lock(&self.0);
        let now = world.here();
        let transport = world.hops[1].transport(End::Caller).expect("it is open");
        let first = transport.skip_run(now, stream, count, reason);
        Ok(first.expect("it is open"))
    }

    fn try_outcome(&mut self) -> Option<Outcome> {
        lock(&self.0).outcomes.pop_front()
    }
}

/// Sends to the second hop, as a [`Fanout`](crate::Fanout) with one receiver does.
pub(super) struct Output {
    world: Shared,
    reliability: Reliability,
    subscriber: Subscriber<Second>,
    unreached: Unreached,
}

impl Output {
    pub(super) fn new(world: Shared, reliability: Reliability, now: Instant) -> Self {
        Self {
            subscriber: Subscriber::new(
                now,
                Second(world.clone()),
                &Background::default(),
                true,
                false,
            ),
            unreached: Unreached {
                lists: true,
                ..Unreached::default()
            },
            reliability,
            world,
        }
    }

    /// Every section takes the next number of its stream, with any fate.
    fn number(&self, stream: StreamId, first: SectionId, count: u64) {
        let mut world = lock(&self.world);
        for id in first.run(count) {
            let next = world.next.entry(stream).or_default();
            let number = std::mem::replace(next, SectionId(next.0 + 1));
            let before = world.numbers.insert((stream, id), number);
            assert_eq!(before, None, "{stream}, {id} twice");
        }
    }
}

impl Sink for Output {
    fn is_ready(&self) -> bool {
        lock(&self.world).has_output
    }

    fn was_ready(&self) -> bool {
        // A source that is a connection does not wait for the sink's first one.
        self.is_ready()
    }

    fn has_room(&self) -> bool {
        self.subscriber.behind() == 0
    }

    async fn tend(&mut self) -> Result<Written, Error> {
        let was_ready = self.is_ready();
        let mut is_behind = self.subscriber.behind() > 0;
        poll_fn(|_| {
            if is_behind {
                self.subscriber.flush(&mut self.unreached);
                is_behind = self.subscriber.behind() > 0;
                if !is_behind {
                    return Poll::Ready(());
                }
            }
            match was_ready != self.is_ready() || !lock(&self.world).outcomes.is_empty() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
        Ok(Written::Yes)
    }

    fn write(&mut self, unit: &MediaUnit) -> Written {
        let is_ready = self.is_ready();
        let unreached = &mut self.unreached;
        match (is_ready, self.reliability) {
            (false, _) => unreached.enter(unit, MissingReason::Unconnected),
            (true, Reliability::Full) => self.subscriber.queue(unit, unreached),
            (true, _) => self.subscriber.submit(unit, unreached),
        }
        if is_ready {
            self.number(unit.stream, unit.id, 1);
        }
        Written::Yes
    }

    fn skip(&mut self, missing: &Missing) {
        if self.is_ready() {
            let (stream, first, count) = (missing.stream, missing.id, missing.count);
            self.subscriber.skip(stream, first, count);
            self.number(stream, first, count);
        }
    }

    fn take_missing(&mut self) -> Vec<Missing> {
        let mut missing = std::mem::take(&mut self.unreached.missing);
        missing.extend(self.subscriber.take_missing());
        missing
    }

    async fn finish(&mut self) -> Result<(), Error> {
        poll_fn(|_| {
            self.subscriber.flush(&mut self.unreached);
            if self.subscriber.behind() > 0 {
                return Poll::Pending;
            }
            let mut world = lock(&self.world);
            if let Some(transport) = world.hops[1].transport(End::Caller) {
                transport.finish();
            }
            match world.hops[1].closed.contains_key(&End::Caller) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
        let missing = self.subscriber.close_fates();
        self.unreached.missing.extend(missing);
        Ok(())
    }

    fn counters(&self) -> Counters {
        Counters::of_media(Arc::default(), TransportMonitor::default())
    }
}
