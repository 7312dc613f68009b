//! The driver's half of a connection: between its session and its queues.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use comity_transport::datagram::{self, Event as TransportEvent};
use comity_transport::timeline::{self, Delivery, Meta, SectionId, StreamId};
use comity_transport::wire::CloseCode;
use comity_units::{Span, Time};
use hdrhistogram::Histogram;

use super::clock::Clock;
use super::connection::{Event, PathSize};
use super::outgoing::Outgoing as OutgoingDatagrams;
use super::shared::{Advice, Command, ConnectionShared, lock};
use crate::core::Transport;
use crate::error::CloseReason;
use crate::section::{About, Fate, Gap, Item, Outcome, Partial, Reason, Received};
use crate::session::{Closed, ConnectionId, Event as SessionEvent, Session};
use crate::statistics::{Pacing, Statistics};
use crate::trace::{Ended, Record, Settled, Size, Skipped, Submitted};

/// Received sections that wait for the application outside of the connection: so many items,
const MAX_ITEMS: usize = 256;
/// and bytes, or a quarter of the receive buffer if that is less.
const MAX_BYTES: usize = 1 << 20;
/// Packets of one connection that leave before the next connection has its turn.
const MAX_PACKETS: usize = 64;
/// The longest pacing error that is told apart, in ns.
const LONGEST_ERROR: u64 = 10_000_000_000;

/// What serving connections needs and leaves, for any of them.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Empty between two connections.
    commands: Vec<Command>,
    /// Those whose applications are to be told that something arrived: together, since each may
    /// wake a thread.
    pub(super) arrived: Vec<Arc<ConnectionShared>>,
    /// Datagrams that leave.
    pub(super) out: OutgoingDatagrams,
    /// Connections with paced packets among them.
    pub(super) planned: Vec<ConnectionId>,
}

/// What serving a connection came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// Nothing more can be done now.
    Idle,
    /// More packets may leave at once.
    Busy,
}

/// A number that never reached the connection.
enum Unsent {
    Section { length: u32 },
    Skipped(Reason),
}

#[derive(Debug)]
pub(super) struct ConnectionDriver {
    pub(super) shared: Arc<ConnectionShared>,
    idle_timeout: Duration,
    controller: &'static str,
    /// What could not be given to the connection yet, in order.
    pending: VecDeque<Command>,
    /// What came when the connection was closed already.
    late: Vec<Command>,
    is_finishing: bool,
    is_abandoned: bool,
    /// Why it is over, from the moment at which that is known.
    end: Option<CloseReason>,
    /// Whether the application has been told.
    is_told: bool,
    pacing: Option<Box<Histogram<u32>>>,
    /// Whether its controller sets when each packet leaves.
    pub(super) times_departures: bool,
}

impl ConnectionDriver {
    pub(super) fn new(
        shared: Arc<ConnectionShared>,
        idle_timeout: Duration,
        controller: &'static str,
    ) -> Self {
        Self {
            shared,
            idle_timeout,
            controller,
            pending: VecDeque::new(),
            late: Vec::new(),
            is_finishing: false,
            is_abandoned: false,
            end: None,
            is_told: false,
            pacing: None,
            times_departures: false,
        }
    }

    /// Does everything that there is to do for the connection, and gathers its packets.
    pub(super) fn serve(
        &mut self,
        now: Time,
        clock: Clock,
        session: &mut Session<Transport>,
        scratch: &mut Scratch,
        max_segments: usize,
    ) -> Served {
        let Scratch {
            commands,
            arrived,
            out,
            planned,
        } = scratch;
        self.shared.unschedule();
        {
            let mut outbound = lock(&self.shared.outbound);
            mem::swap(&mut outbound.commands, commands);
            self.is_abandoned = outbound.is_abandoned;
        }
        for command in commands.drain(..) {
            self.obey(now, command, session);
        }
        self.catch_up(now, session);
        let mut has_more = self.deliver(now, clock, session.core_mut(), arrived);
        let served = self.transmit(now, session, out, max_segments);
        self.collect(now, session);
        if !self.pending.is_empty() {
            self.catch_up(now, session);
        }
        if self.is_finishing && self.end.is_none() && session.core().connection().is_settled() {
            session
                .core_mut()
                .connection_mut()
                .close(now, CloseCode::DONE, "");
            self.transmit(now, session, out, max_segments);
            self.collect(now, session);
        }
        if self.end.is_some() {
            has_more = self.deliver(now, clock, session.core_mut(), arrived);
        }
        if session.core().has_planned() {
            planned.push(session.id());
        }
        self.times_departures = session.core().connection().times_departures();
        if !self.is_told {
            *lock(&self.shared.statistics) = self.statistics(now, session);
        }
        match has_more {
            true => Served::Busy,
            false => served,
        }
    }

    /// Does what cannot wait, and puts the rest behind what waits already.
    fn obey(&mut self, now: Time, command: Command, session: &mut Session<Transport>) {
        match command {
            Command::Close(code, reason) => {
                let connection = session.core_mut().connection_mut();
                connection.close(now, code, &reason);
            }
            Command::Take => session.core_mut().connection_mut().take_sections(now),
            Command::Refuse => session.core_mut().connection_mut().refuse_sections(),
            command => self.pending.push_back(command),
        }
    }

    /// Gives the connection what waits, as far as it takes it.
    fn catch_up(&mut self, now: Time, session: &mut Session<Transport>) {
        let core = session.core_mut();
        while let Some(command) = self.pending.pop_front() {
            let connection = core.connection_mut();
            match command {
                // The peer keeps only so many sections apart, the handle cannot know how many are
                // left.
                Command::Submit(section) if connection.is_open() => {
                    let Ok(id) = connection.submit(now, section.clone()) else {
                        self.pending.push_front(Command::Submit(section));
                        return;
                    };
                    core.trace(now, |trace, _| {
                        Record::Submitted(Submitted::new(trace, id, &section))
                    });
                }
                Command::Skip(stream, reason) if connection.is_open() => {
                    let Ok(id) = connection.skip(stream, reason) else {
                        self.pending.push_front(Command::Skip(stream, reason));
                        return;
                    };
                    core.trace(now, |_, _| {
                        Record::Skipped(Skipped::new(stream, id, reason))
                    });
                }
                Command::Cancel(stream, section) => {
                    connection.cancel(stream, section);
                }
                Command::End(stream) => connection.end(stream),
                Command::Finish => {
                    self.is_finishing = true;
                    let open: Vec<_> = lock(&self.shared.outbound)
                        .streams
                        .iter_mut()
                        .filter_map(|(stream, given)| {
                            (!mem::replace(&mut given.has_ended, true)).then_some(*stream)
                        })
                        .collect();
                    for stream in open {
                        connection.end(stream);
                    }
                }
                Command::Submit(_) | Command::Skip(..) => self.late.push(command),
                Command::Take | Command::Refuse | Command::Close(..) => {}
            }
        }
    }

    /// Hands sections over as long as there is room for them. Whether some were thrown away that
    /// nobody will take: then there may be more, and whether the connection is over is to be looked
    /// at once more. No timer and no packet brings that about when it has ended.
    fn deliver(
        &mut self,
        now: Time,
        clock: Clock,
        core: &mut Transport,
        arrived: &mut Vec<Arc<ConnectionShared>>,
    ) -> bool {
        if self.is_told && lock(&self.shared.inbound).is_over {
            return false;
        }
        // What nobody has accepted yet is not received yet, and not counted so.
        if core.connection().awaits_taker() && self.end.is_none() && !self.is_abandoned {
            core.set_stalled(true, false);
            return false;
        }
        if self.is_abandoned && self.end.is_some() {
            // Nobody watches what would be run out.
            core.connection_mut().close(now, CloseCode::DONE, "");
        }
        let max_bytes = MAX_BYTES.min((self.shared.facts.receive_buffer / 4) as usize);
        let mut inbound = lock(&self.shared.inbound);
        if self.is_abandoned {
            inbound.items.clear();
            inbound.bytes = 0;
        }
        let before = inbound.items.len();
        let mut is_stalled = false;
        let mut delivered = 0;
        loop {
            if inbound.items.len() >= MAX_ITEMS || inbound.bytes >= max_bytes {
                is_stalled = true;
                break;
            }
            if self.is_abandoned && delivered >= MAX_ITEMS {
                break;
            }
            let Some(delivery) = core.connection_mut().poll_delivery(now) else {
                break;
            };
            delivered += 1;
            core.trace(now, |trace, connection| {
                Record::delivery(trace, &delivery, |time| connection.to_local(time))
            });
            if self.is_abandoned {
                continue;
            }
            let item = item(delivery, core, clock);
            inbound.bytes += item.size();
            inbound.items.push_back(item);
        }
        inbound.is_stalled = is_stalled;
        // What is run out after the end comes in its time.
        let is_played_out = !core.connection().has_deliveries();
        inbound.is_over = self.end.is_some() && !is_stalled && is_played_out;
        let is_news = inbound.items.len() > before || inbound.is_over;
        drop(inbound);
        core.set_stalled(is_stalled, self.is_abandoned);
        if is_news {
            arrived.push(self.shared.clone());
        }
        self.is_abandoned && delivered > 0
    }

    fn transmit(
        &mut self,
        now: Time,
        session: &mut Session<Transport>,
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

    /// Paced packets have just been handed to the system.
    pub(super) fn on_sent(&mut self, now: Time, core: &mut Transport) {
        for planned in core.take_planned() {
            let error = now.saturating_since(planned).as_nanos();
            let histogram = self.pacing.get_or_insert_with(|| {
                let new = Histogram::new_with_bounds(1_000, LONGEST_ERROR, 2);
                Box::new(new.expect("the bounds are in order, and the digits few"))
            });
            histogram.saturating_record(error);
        }
    }

    /// Takes over what the session and its connection tell.
    fn collect(&mut self, now: Time, session: &mut Session<Transport>) {
        while let Some(event) = session.poll_event() {
            match event {
                SessionEvent::PathChanged { from, to } => {
                    self.shared.address.send_replace(to);
                    self.shared.tell(Event::PathChanged { from, to });
                }
                SessionEvent::Closed(closed) if closed != Closed::ByCore => {
                    self.end.get_or_insert(CloseReason::Keys(closed));
                }
                SessionEvent::Established { .. }
                | SessionEvent::PathUnanswered { .. }
                | SessionEvent::Closed(_) => {}
            }
        }
        let mut settled_sections = 0;
        let mut settled_bytes = 0;
        while let Some(event) = session.core_mut().connection_mut().poll_event() {
            match event {
                TransportEvent::Closed(reason) => {
                    let end = match reason {
                        datagram::CloseReason::Idle => CloseReason::Idle {
                            after: self.idle_timeout,
                        },
                        datagram::CloseReason::Local { code, reason } => {
                            CloseReason::Local { code, reason }
                        }
                        datagram::CloseReason::Peer { code, reason } => {
                            CloseReason::Peer { code, reason }
                        }
                        datagram::CloseReason::Violation(violation) => {
                            CloseReason::Violation(violation)
                        }
                    };
                    self.end.get_or_insert(end);
                }
                TransportEvent::Outcome(outcome) => {
                    session
                        .core_mut()
                        .trace(now, |_, _| Record::Settled(Settled::new(&outcome)));
                    settled_sections += 1;
                    settled_bytes += u64::from(outcome.length);
                    self.shared.tell(Event::Outcome(outcome));
                }
                TransportEvent::PathSize { payload, most } => {
                    let core = session.core_mut();
                    let size = PathSize {
                        datagram: core.datagram_of(payload),
                        most: core.datagram_of(most),
                    };
                    core.trace(now, |_, _| Record::Size(Size { new: size.datagram }));
                    self.shared.size.send_replace(Some(size));
                    self.shared.tell(Event::PathSize(size));
                }
                TransportEvent::TargetBitrate(target) => {
                    self.shared.target.send_replace(Advice {
                        target: Some(target),
                        is_over: false,
                    });
                }
            }
        }
        if settled_sections > 0 {
            let mut outbound = lock(&self.shared.outbound);
            outbound.held_sections = outbound.held_sections.saturating_sub(settled_sections);
            outbound.held_bytes = outbound.held_bytes.saturating_sub(settled_bytes);
            if mem::take(&mut outbound.is_waited_for) {
                drop(outbound);
                self.shared.room.notify_waiters();
            }
        }
        if self.end.is_some() && !self.is_told {
            self.tell_end(now, session);
        }
    }

    fn tell_end(&mut self, now: Time, session: &mut Session<Transport>) {
        self.is_told = true;
        let end = self.end.clone().unwrap_or(CloseReason::EndpointClosed);
        let last = self.statistics(now, session);
        session.core_mut().trace(now, |_, _| {
            Record::Ended(Box::new(Ended {
                reason: end.to_string(),
                statistics: last.clone(),
            }))
        });
        self.settle(end, Box::new(last));
    }

    /// The endpoint forgets the connection: whoever still waits has to know.
    pub(super) fn forget(&mut self) {
        if !self.is_told {
            self.is_told = true;
            let end = self.end.clone().unwrap_or(CloseReason::EndpointClosed);
            let last = lock(&self.shared.statistics).clone();
            self.settle(end, Box::new(last));
        }
        lock(&self.shared.inbound).is_over = true;
        self.shared.arrived.notify_one();
    }

    fn settle(&mut self, end: CloseReason, mut last: Box<Statistics>) {
        let mut cancelled = Vec::new();
        {
            let mut outbound = lock(&self.shared.outbound);
            // Whoever waits for an answer sees that none comes.
            let commands = mem::take(&mut outbound.commands);
            // What was accepted from the application and never reached the connection has an end
            // all the same. In each stream those are the last ones that got a number.
            let mut unsent: BTreeMap<StreamId, Vec<Unsent>> = BTreeMap::new();
            let late = self.late.drain(..).chain(self.pending.drain(..));
            for command in late.chain(commands) {
                let (stream, one) = match command {
                    Command::Submit(section) => {
                        let length = u32::try_from(section.payload.len()).unwrap_or(u32::MAX);
                        (section.stream, Unsent::Section { length })
                    }
                    Command::Skip(stream, reason) => (stream, Unsent::Skipped(reason)),
                    _ => continue,
                };
                unsent.entry(stream).or_default().push(one);
            }
            let (sections, bytes) = (&mut last.sent.sections, &mut last.sent.bytes);
            for (stream, unsent) in unsent {
                let given = outbound.streams.get(&stream).map_or(0, |given| given.next);
                let first = given.saturating_sub(unsent.len() as u64);
                for (section, one) in (first..).zip(unsent) {
                    let length = match one {
                        Unsent::Section { length } => length,
                        Unsent::Skipped(reason) => {
                            sections.skip(Fate::of_unsent(reason));
                            continue;
                        }
                    };
                    sections.skip(Fate::Cancelled);
                    bytes.submitted += u64::from(length);
                    bytes.cancelled += u64::from(length);
                    cancelled.push(Outcome {
                        stream,
                        section: SectionId(section),
                        fate: Fate::Cancelled,
                        length,
                        sent: 0,
                        acknowledged: 0,
                    });
                }
            }
            outbound.end = Some(end.clone());
            *lock(&self.shared.statistics) = *last;
        }
        for outcome in cancelled {
            self.shared.tell(Event::Outcome(outcome));
        }
        self.shared.room.notify_waiters();
        self.shared.end.send_replace(Some(end.clone()));
        self.shared
            .target
            .send_modify(|target| target.is_over = true);
        self.shared.tell(Event::Closed(end));
    }

    /// Everything that is known.
    fn statistics(&self, now: Time, session: &Session<Transport>) -> Statistics {
        let age = now.saturating_since(self.shared.facts.opened_at);
        let connection = session.core().connection();
        let mut statistics = Statistics::new(
            age,
            self.controller,
            &connection.statistics(),
            &session.statistics(),
            connection.clock_drift_ppm(),
        );
        if let Some(histogram) = &self.pacing {
            let us = |nanos: u64| Span::from_nanos(nanos).as_secs_f64() * 1e6;
            statistics.pacing = Pacing {
                packets: histogram.len(),
                mean_us: histogram.mean() / 1e3,
                p50_us: us(histogram.value_at_quantile(0.5)),
                p99_us: us(histogram.value_at_quantile(0.99)),
                p999_us: us(histogram.value_at_quantile(0.999)),
                max_us: us(histogram.max()),
            };
        }
        statistics
    }
}

fn item(delivery: Delivery<Bytes>, core: &Transport, clock: Clock) -> Item {
    let local = |time: Time| core.connection().to_local(time);
    let about = |meta: &Meta| About {
        importance: meta.importance,
        source_time: clock.instant_or_origin(local(meta.source_time)),
        deadline: clock.instant(local(meta.deadline)),
        needs: meta.needs,
        length: meta.length,
    };
    match delivery {
        Delivery::Section(section) => Item::Section(Received {
            stream: section.meta.stream,
            id: section.meta.section,
            about: about(&section.meta),
            completed: clock.instant_or_origin(section.completed),
            is_late: section.is_late,
            payload: section.payload,
        }),
        Delivery::Gap(gap) => Item::Gap(Gap {
            stream: gap.stream,
            id: gap.section,
            reason: gap.reason,
            partial: gap
                .partial
                .map(|partial: timeline::inbox::Partial<_>| Partial {
                    about: about(&partial.meta),
                    payload: partial.payload,
                    missing: partial.missing,
                }),
        }),
    }
}
