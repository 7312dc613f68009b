//! The driver's half of a connection: between its session and its queues.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use comity_transport::wire::CloseCode;
use comity_units::Time;

use super::clock::Clock;
use super::connection_shared::{ConnectionShared, SharedTransport};
use super::events::{Advice, Event};
use super::outgoing::Outgoing as OutgoingDatagrams;
use crate::contain::contain;
use crate::error::CloseReason;
use crate::section::Item;
use crate::session::{Closed, ConnectionId, Event as SessionEvent, Protocol as _, Session, lock};
use crate::transport::TransportEvent;

/// Items that wait for the application outside the transport.
const MAX_ITEMS: usize = 256;
/// The bytes of these items; at most a quarter of the receive buffer.
const MAX_BYTES: usize = 1 << 20;
/// The packets that a connection may send before the next connection's turn.
const MAX_PACKETS: usize = 64;

/// Buffers that all connections share while they are served.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Connections whose applications must learn that something arrived. They learn it together,
    /// since each may wake a thread.
    pub(super) arrived: Vec<Arc<ConnectionShared>>,
    /// Outgoing datagrams.
    pub(super) out: OutgoingDatagrams,
    /// Connections with paced packets among these datagrams.
    pub(super) planned: Vec<ConnectionId>,
}

/// The state of a connection after it was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// Nothing more can be done now.
    Idle,
    /// More packets may leave at once.
    Busy,
}

#[derive(Debug)]
pub(super) struct ConnectionDriver {
    pub(super) shared: Arc<ConnectionShared>,
    /// Why it is over, once that is known.
    end: Option<CloseReason>,
    /// Whether the application knows of the end.
    is_told: bool,
    /// Whether its controller sets when each packet leaves.
    pub(super) times_departures: bool,
}

impl ConnectionDriver {
    pub(super) fn new(shared: Arc<ConnectionShared>) -> Self {
        Self {
            shared,
            end: None,
            is_told: false,
            times_departures: false,
        }
    }

    /// Does all pending work of the connection, and gathers its packets. If it panics, here or in a
    /// call of the application, the connection ends.
    pub(super) fn serve(
        &mut self,
        now: Time,
        clock: Clock,
        session: &mut Session<SharedTransport>,
        scratch: &mut Scratch,
        max_segments: usize,
    ) -> Served {
        if self.shared.transport.is_poisoned() {
            session.fail(now);
            self.shared.transport.clear_poison();
        }
        let work =
            |driver: &mut Self, session: &mut Session<SharedTransport>, scratch: &mut Scratch| {
                session.contain(now, |session| {
                    driver.work(now, clock, session, scratch, max_segments)
                })
            };
        if let Some(served) = work(self, session, scratch) {
            return served;
        }
        self.shared.transport.clear_poison();
        // The transport is a new one, which is closed: this tells the application.
        work(self, session, scratch).unwrap_or(Served::Idle)
    }

    fn work(
        &mut self,
        now: Time,
        clock: Clock,
        session: &mut Session<SharedTransport>,
        scratch: &mut Scratch,
        max_segments: usize,
    ) -> Served {
        let Scratch {
            arrived,
            out,
            planned,
        } = scratch;
        self.shared.unschedule();
        let mut has_more = self.deliver(now, clock, arrived);
        let served = self.transmit(now, session, out, max_segments);
        *lock(&self.shared.session) = session.statistics();
        self.hear(now, session);
        self.collect(now);
        if self.end.is_some() {
            has_more = self.deliver(now, clock, arrived);
        }
        let transport = lock(&self.shared.transport);
        if transport.has_planned() {
            planned.push(session.id());
        }
        self.times_departures = transport.times_departures();
        match has_more {
            true => Served::Busy,
            false => served,
        }
    }

    /// Delivers sections while there is room for them. Returns whether it discarded some that
    /// nobody will take. Then more may follow, and the caller must check again whether the
    /// connection is over: after its end, no timer and no packet triggers that.
    fn deliver(
        &mut self,
        now: Time,
        clock: Clock,
        arrived: &mut Vec<Arc<ConnectionShared>>,
    ) -> bool {
        if self.is_told && lock(&self.shared.inbound).is_over {
            return false;
        }
        let is_abandoned = self.shared.is_abandoned.load(Ordering::SeqCst);
        let mut transport = lock(&self.shared.transport);
        // Sections do not count as received before somebody has accepted the connection.
        if transport.awaits_taker() && self.end.is_none() && !is_abandoned {
            transport.set_stalled(true, false);
            return false;
        }
        if is_abandoned && self.end.is_some() {
            // Nobody would receive the remaining sections.
            transport.close(now, CloseCode::DONE, "");
        }
        let quarter = usize::try_from(transport.receive_buffer() / 4).unwrap_or(usize::MAX);
        let quarter = quarter.max(1);
        let mut inbound = lock(&self.shared.inbound);
        if is_abandoned {
            inbound.items.clear();
            inbound.bytes = 0;
        }
        let before = inbound.items.len();
        let mut is_stalled = false;
        let mut delivered = 0;
        loop {
            if inbound.items.len() >= MAX_ITEMS || inbound.bytes >= MAX_BYTES.min(quarter) {
                is_stalled = true;
                break;
            }
            if is_abandoned && delivered >= MAX_ITEMS {
                break;
            }
            let Some(delivery) = transport.poll_delivery(now) else {
                break;
            };
            delivered += 1;
            if is_abandoned {
                continue;
            }
            let instant = |time| clock.instant(time);
            let item = Item::from_delivery(delivery, &transport, instant, clock.origin());
            inbound.bytes += item.size();
            inbound.items.push_back(item);
        }
        inbound.is_stalled = is_stalled;
        self.shared.memory.set_queued(inbound.bytes as u64);
        // After the end, the remaining sections are delivered in their time.
        let is_played_out = !transport.has_deliveries();
        inbound.is_over = self.end.is_some() && !is_stalled && is_played_out;
        let is_news = inbound.items.len() > before || inbound.is_over;
        drop(inbound);
        transport.set_stalled(is_stalled, is_abandoned);
        drop(transport);
        if is_news {
            arrived.push(self.shared.clone());
        }
        is_abandoned && delivered > 0
    }

    fn transmit(
        &self,
        now: Time,
        session: &mut Session<SharedTransport>,
        out: &mut OutgoingDatagrams,
        max_segments: usize,
    ) -> Served {
        for _ in 0..MAX_PACKETS {
            let Some(datagram) = session.poll_transmit(now, &mut out.bytes) else {
                return Served::Idle;
            };
            out.push(Some(session.id()), datagram, max_segments);
        }
        Served::Busy
    }

    /// The endpoint has just handed paced packets to the system.
    pub(super) fn on_sent(&self, now: Time) {
        lock(&self.shared.transport).on_sent(now);
    }

    /// Takes over what the session tells.
    fn hear(&mut self, now: Time, session: &mut Session<SharedTransport>) {
        while let Some(event) = session.poll_event() {
            match event {
                SessionEvent::PathChanged { from, to } => {
                    lock(&self.shared.transport).set_peer_address(to.ip());
                    self.shared.address.send_replace(to);
                    self.shared.tell(Event::PathChanged { from, to });
                }
                SessionEvent::Closed(closed) if closed != Closed::ByProtocol => {
                    self.end.get_or_insert(CloseReason::Session(closed));
                    // Every section gets its outcome.
                    lock(&self.shared.transport).close(now, CloseCode::SHUTDOWN, "");
                }
                SessionEvent::Established { .. }
                | SessionEvent::PathUnanswered { .. }
                | SessionEvent::Closed(_) => {}
            }
        }
    }

    /// Takes the events of the transport.
    fn collect(&mut self, now: Time) {
        let mut has_room = false;
        let mut transport = lock(&self.shared.transport);
        while let Some(event) = transport.poll_event(now) {
            match event {
                // The session says what the end of a broken transport means.
                TransportEvent::Closed(_) if transport.has_failed() => {}
                TransportEvent::Closed(reason) => {
                    self.end.get_or_insert(reason);
                }
                TransportEvent::Outcome(outcome) => {
                    has_room = true;
                    self.shared.tell(Event::Outcome(outcome));
                }
                TransportEvent::PathSize(size) => {
                    self.shared.size.send_replace(Some(size));
                    self.shared.tell(Event::PathSize(size));
                }
                TransportEvent::Target(target) => {
                    self.shared.target.send_replace(Advice {
                        target: Some(target),
                        is_over: false,
                    });
                }
            }
        }
        has_room |= transport.take_more_open();
        let is_told_of_room = has_room && self.shared.is_waited_for.swap(false, Ordering::SeqCst);
        drop(transport);
        if is_told_of_room {
            self.shared.room.notify_waiters();
        }
        if self.end.is_some() && !self.is_told {
            self.tell_end(now);
        }
    }

    fn tell_end(&mut self, now: Time) {
        self.is_told = true;
        let end = self.end.clone().unwrap_or(CloseReason::EndpointClosed);
        let session = *lock(&self.shared.session);
        {
            let mut transport = lock(&self.shared.transport);
            let last = transport.stats(now, &session);
            transport.trace_end(now, &end, &last);
            // A connection ends only once.
            let _ = self.shared.last.set(last);
        }
        self.shared.end.send_replace(Some(end.clone()));
        self.shared.room.notify_waiters();
        self.shared
            .target
            .send_modify(|target| target.is_over = true);
        self.shared.tell(Event::Closed(end));
    }

    /// The endpoint forgets the connection: all waiting tasks must learn of it.
    pub(super) fn forget(&mut self, now: Time) {
        if !self.is_told {
            let end = self.end.get_or_insert(CloseReason::EndpointClosed).clone();
            let told = contain(|| {
                lock(&self.shared.transport).close(now, CloseCode::SHUTDOWN, "");
                self.collect(now);
            });
            if told.is_none() {
                self.shared.end.send_replace(Some(end));
                self.shared.room.notify_waiters();
            }
        }
        self.shared.end_inbound();
    }
}
