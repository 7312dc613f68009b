//! The driver's half of a connection, between its session and the queues of the application.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use comity_transport::wire::CloseCode;
use comity_units::Time;

use super::clock::Clock;
use super::connection_shared::{ConnectionShared, SharedTransport};
use super::events::{Advice, Event};
use super::inbound::Next;
use super::outgoing::Outgoing as OutgoingDatagrams;
use crate::contain::contain;
use crate::error::CloseReason;
use crate::section::Item;
use crate::session::{
    Closed, ConnectionId, Event as SessionEvent, Protocol as _, Session, lock, recover, whole,
};
use crate::transport::TransportEvent;

/// The maximum number of items that wait for the application outside the transport.
const MAX_ITEMS: usize = 256;
/// The maximum number of bytes in these items; at most a quarter of the receive buffer.
const MAX_BYTES: usize = 1 << 20;
/// The number of packets that a connection may send before the next connection's turn.
const MAX_PACKETS: usize = 64;

/// Buffers that all connections share while they are served.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Connections with new items for their applications. They are notified together, since each
    /// notification may wake a thread.
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
    /// The reason of the end, once it is known.
    end: Option<CloseReason>,
    /// Whether the end was reported to the application.
    is_end_reported: bool,
    /// Whether its controller sets when each packet leaves.
    pub(super) times_departures: bool,
}

impl ConnectionDriver {
    pub(super) fn new(shared: Arc<ConnectionShared>) -> Self {
        Self {
            shared,
            end: None,
            is_end_reported: false,
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
        recover(&self.shared.transport, || session.fail(now));
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
        // The transport is now a new, closed one: this call reports the end to the application.
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
        self.on_session_events(now, session);
        self.collect(now);
        if self.end.is_some() {
            has_more = self.deliver(now, clock, arrived);
        }
        let transport = whole(&self.shared.transport, now);
        if transport.has_planned() {
            planned.push(session.id());
        }
        self.times_departures = transport.times_departures();
        match has_more {
            true => Served::Busy,
            false => served,
        }
    }

    /// Delivers sections while the queue has room. Returns whether it discarded some because the
    /// application is gone. Then more may follow, and the connection must be served again: after
    /// its end, no timer and no packet triggers that.
    fn deliver(
        &mut self,
        now: Time,
        clock: Clock,
        arrived: &mut Vec<Arc<ConnectionShared>>,
    ) -> bool {
        let inbound = &self.shared.inbound;
        if self.is_end_reported && inbound.is_over() {
            return false;
        }
        let is_abandoned = self.shared.is_abandoned.load(Ordering::SeqCst);
        let mut transport = whole(&self.shared.transport, now);
        // Sections do not count as received before the application has accepted the connection.
        if transport.awaits_taker() && self.end.is_none() && !is_abandoned {
            transport.set_stalled(true, false);
            return false;
        }
        if is_abandoned {
            if self.end.is_some() {
                // Nobody would receive the remaining sections.
                transport.close(now, CloseCode::DONE, "");
            }
            let deliveries = (0..MAX_ITEMS).map_while(|_| transport.poll_delivery(now));
            let has_discarded = deliveries.count() > 0;
            inbound.discard(self.end.is_some() && !transport.has_deliveries());
            transport.set_stalled(false, true);
            return has_discarded;
        }
        let quarter = usize::try_from(transport.receive_buffer() / 4).unwrap_or(usize::MAX);
        let instant = |time| clock.instant(time);
        let next = || match transport.poll_delivery(now) {
            Some(delivery) => {
                let item = Item::from_delivery(delivery, &transport, instant, clock.origin());
                let size = item.size();
                Next::Item(item, size)
            }
            // After the end, the remaining sections are still delivered at their times.
            None if self.end.is_some() && !transport.has_deliveries() => Next::End,
            None => Next::Nothing,
        };
        let filled = inbound.fill(MAX_ITEMS, MAX_BYTES.min(quarter.max(1)), next);
        transport.set_stalled(filled.is_stalled, false);
        drop(transport);
        if filled.is_news {
            arrived.push(self.shared.clone());
        }
        false
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

    /// Records that the endpoint has just handed paced packets to the system.
    pub(super) fn on_sent(&self, now: Time) {
        whole(&self.shared.transport, now).on_sent(now);
    }

    /// Handles the events of the session.
    fn on_session_events(&mut self, now: Time, session: &mut Session<SharedTransport>) {
        while let Some(event) = session.poll_event() {
            match event {
                SessionEvent::PathChanged { from, to } => {
                    whole(&self.shared.transport, now).set_peer_address(to.ip());
                    self.shared.address.send_replace(to);
                    self.shared.emit(Event::PathChanged { from, to });
                }
                SessionEvent::Closed(closed) if closed != Closed::ByProtocol => {
                    self.end.get_or_insert(CloseReason::Session(closed));
                    // The close settles every section.
                    whole(&self.shared.transport, now).close(now, CloseCode::SHUTDOWN, "");
                }
                SessionEvent::Established { .. }
                | SessionEvent::PathUnanswered { .. }
                | SessionEvent::Closed(_) => {}
            }
        }
    }

    /// Handles the events of the transport.
    fn collect(&mut self, now: Time) {
        let mut has_room = false;
        let mut transport = whole(&self.shared.transport, now);
        while let Some(event) = transport.poll_event(now) {
            match event {
                // The session reports the end of a broken transport.
                TransportEvent::Closed(_) if transport.has_failed() => {}
                TransportEvent::Closed(reason) => {
                    self.end.get_or_insert(reason);
                }
                TransportEvent::Outcome(outcome) => {
                    has_room = true;
                    self.shared.emit(Event::Outcome(outcome));
                }
                TransportEvent::PathSize(size) => {
                    self.shared.size.send_replace(Some(size));
                    self.shared.emit(Event::PathSize(size));
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
        let notifies_room = has_room && self.shared.room.take_wanted();
        drop(transport);
        if notifies_room {
            self.shared.room.notify();
        }
        if self.end.is_some() && !self.is_end_reported {
            self.report_end(now);
        }
    }

    /// Wakes the tasks that wait for room.
    pub(super) fn offer_room(&self, now: Time) {
        let transport = whole(&self.shared.transport, now);
        let notifies_room = self.shared.room.take_wanted();
        drop(transport);
        if notifies_room {
            self.shared.room.notify();
        }
    }

    fn report_end(&mut self, now: Time) {
        self.is_end_reported = true;
        let end = self.end.clone().unwrap_or(CloseReason::EndpointClosed);
        let session = *lock(&self.shared.session);
        {
            let mut transport = whole(&self.shared.transport, now);
            let last = transport.stats(now, &session);
            transport.trace_end(now, &end, &last);
            // A connection ends only once.
            let _ = self.shared.last.set(last);
        }
        self.shared.end.send_replace(Some(end.clone()));
        self.shared.room.notify();
        self.shared
            .target
            .send_modify(|target| target.is_over = true);
        self.shared.emit(Event::Closed(end));
    }

    /// Wakes all waiting tasks, since the endpoint forgets the connection.
    pub(super) fn forget(&mut self, now: Time) {
        if !self.is_end_reported {
            let end = self.end.get_or_insert(CloseReason::EndpointClosed).clone();
            let reported = contain(|| {
                whole(&self.shared.transport, now).close(now, CloseCode::SHUTDOWN, "");
                self.collect(now);
            });
            if reported.is_none() {
                self.shared.end.send_replace(Some(end));
                self.shared.room.notify();
            }
        }
        self.shared.inbound.end();
    }
}
