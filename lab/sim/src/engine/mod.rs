//! The engine: runs a network in virtual time.
//!
//! # How it is fast
//! - A link decides the fate of a packet when the packet is offered, so the end of a transmission
//!   needs no event.
//! - The packets on a link form a chain. Only the first packet of a chain has an event, in a
//!   `tournament` of all links.
//! - A link with one feeder that keeps order cannot meet a foreign packet between two packets of
//!   that feeder. The engine computes the path up to the next meeting of flows at once
//!   (`collapse`).
//! - A packet that can only wait passes a link in a few dozen instructions (`LinkState::pass`).
//! - Timers are lazy: an ACK that moves a retransmission timer later writes one field.
//!
//! # How it is deterministic
//! Times are whole nanoseconds. At one instant events are ordered by class and source, never by
//! insertion. Every random stream is keyed by the run's seed and an entity's name. The fingerprint
//! hashes each entity's own history and then the entities in order, so it does not depend on how
//! their histories interleave: a run with `collapse` off has the same fingerprint.

mod alarm;
mod applications;
mod arrivals;
mod build;
mod check;
mod consistency;
mod event;
mod fingerprint;
mod flow;
pub mod host;
mod links;
mod observe;
mod packet;
mod path;
mod paths;
mod playback;
mod producer;
mod queue;
mod room;
mod route;
mod schedule;
mod sections;
mod shares;
mod standstill;
mod streams;
mod timeline;
mod tokens;
mod tournament;

use comity_congestion::RttEstimator;
use comity_link::{Link, Outcome};
use comity_tcp::Segment;
use comity_units::{Seed, Time};

pub(crate) use check::{flow as check_flow, ways as check_ways};
pub(crate) use consistency::times as check_times;
pub use observe::{
    Fate, FlowEvent, FlowEventKind, LinkEvent, NullObserver, Observer, SectionEvent, SenderState,
};
pub use packet::{Body, Packet, SectionPacket};

use crate::custom::{CustomControllers, NoControllers};
use crate::network::{Network, NetworkError};
use crate::report::{Cost, FlowReport, RunReport};
use event::{Class, Event};
use fingerprint::Fingerprint;
use flow::{Agent, Flow, ReaderState, TcpWorkload};
use links::{LinkState, Watch, link_view};
use packet::{Arena, Header, Slot};
use path::{ACTS_AHEAD, AHEAD, DRAW, END, LINK};
use queue::EventQueue;
use shares::Shares;

/// The options of a run. None of them changes the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// Whether the engine computes packets ahead where nothing can interfere. If off, observers see
    /// events in the order of their times, and the run is slower.
    pub collapse: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { collapse: true }
    }
}

/// Runs `network` from `seed`.
///
/// # Errors
/// As [`Network::validate`], and for flows that only the lab can run. A queue too small for any
/// packet is no error here.
pub fn run(network: &Network, seed: Seed, options: &RunOptions) -> Result<RunReport, NetworkError> {
    run_observed(network, seed, options, &mut NullObserver)
}

/// Runs `network` from `seed` and reports its events to `observer`.
///
/// # Errors
/// As for [`run()`].
pub fn run_observed<O: Observer>(
    network: &Network,
    seed: Seed,
    options: &RunOptions,
    observer: &mut O,
) -> Result<RunReport, NetworkError> {
    run_with(network, seed, options, &NoControllers, observer)
}

/// As [`run_observed`], and also with flows of custom controllers.
pub(crate) fn run_with<O: Observer>(
    network: &Network,
    seed: Seed,
    options: &RunOptions,
    custom: &dyn CustomControllers,
    observer: &mut O,
) -> Result<RunReport, NetworkError> {
    let mut engine = Engine::build(network, seed, options, custom, observer)?;
    engine.run_until(Time::MAX);
    Ok(engine.finish(network, seed).0)
}

/// How many endpoints may act ahead of one event in turn. Without this bound, two endpoints alone
/// on their links would never stop.
const MAX_DEPTH: u32 = 4;

/// The source number of a control event that starts the measuring.
const MEASURE: u32 = u32::MAX;

/// No link.
const NO_LINK: u32 = u32::MAX;

pub(crate) struct Engine<O> {
    queue: EventQueue,
    arena: Arena,
    links: Vec<LinkState>,
    flows: Vec<Flow>,
    /// The links of all paths, one path after the other, each closed by an [`END`].
    paths: Vec<u32>,
    watch: Watch,
    observer: O,
    events: u64,
    /// The link whose packet is being handled, or [`NO_LINK`]: its next event goes into the queue
    /// at the end.
    current: u32,
    /// Counts packets put on links. The count orders packets that leave one link at one instant.
    order: u64,
    /// How many endpoints act ahead of the current event in turn.
    depth: u32,
    /// Whether the warm-up is over and the counters at its end are stored.
    is_measuring: bool,
}

impl<O: Observer> Engine<O> {
    /// Handles all events before `until`.
    pub(crate) fn run_until(&mut self, until: Time) {
        loop {
            let event = self.queue.begin();
            let (now, source) = (event.time(), event.source());
            if now > self.watch.end || now >= until || self.observer.is_stopped() {
                return;
            }
            self.events += 1;
            if event.class() == Class::Arrival {
                self.current = source;
                self.on_arrival(now, source);
                self.current = NO_LINK;
                let next = self.links[source as usize].next_arrival;
                self.queue.set(Class::Arrival, source, next);
                continue;
            }
            match event.class() {
                Class::Timer => self.on_timer(now, source),
                Class::Application => self.on_application(now, source),
                Class::Control => self.on_control(now, source),
                Class::Arrival | Class::Service => self.on_service(now, source),
            }
            self.queue.end();
        }
    }

    // ---------------------------------------------------------------- packets

    /// A packet comes out of a link.
    fn on_arrival(&mut self, now: Time, link: u32) {
        let Some(slot) = self.links[link as usize].take(&self.arena) else {
            return;
        };
        let header = self.arena.header(slot);
        let (entry, flow) = (self.paths[header.at as usize], header.flow);
        if entry & DRAW != 0 {
            self.draw(flow);
        }
        if entry & END == 0 {
            self.carry(now, slot);
            return;
        }
        self.receive_in_turn(now, slot);
        // The other packets on the link may be handled too; they then need no events.
        while let Some(slot) = self.links[link as usize].first() {
            let &Header {
                flow, at, arrival, ..
            } = self.arena.header(slot);
            if self.paths[at as usize] != END | ACTS_AHEAD
                || !self.may_act_ahead(flow, at, arrival, true)
            {
                break;
            }
            self.links[link as usize].take(&self.arena);
            self.receive_in_turn(arrival, slot);
        }
    }

    /// Offers a packet to the next link of its path, and to all further links computed ahead.
    fn carry(&mut self, mut at: Time, slot: Slot) {
        let &Header {
            flow,
            wire,
            at: mut position,
            ..
        } = self.arena.header(slot);
        let mut next = self.paths[position as usize];
        loop {
            let link = next & LINK;
            position += 1;
            next = self.paths[position as usize];
            let state = &mut self.links[link as usize];
            let arrival = match state.pass(at, (flow, wire), &self.watch) {
                Some(way) => {
                    self.show_link(link, slot, at, Outcome::Carried(way));
                    way.arrival
                }
                None => match self.offer(link, at, slot, position) {
                    Some(arrival) => arrival,
                    None => return,
                },
            };
            if arrival > self.watch.end {
                self.flows[flow as usize].counts.in_flight_at_end += 1;
                self.arena.free(slot);
                return;
            }
            if next & AHEAD != 0 {
                at = arrival;
                continue;
            }
            self.arena.set_position(slot, position, arrival);
            if next == END | ACTS_AHEAD && self.may_act_ahead(flow, position, arrival, false) {
                self.depth += 1;
                self.receive(arrival, slot);
                self.depth -= 1;
            } else {
                self.put_on_wire(link, slot, position);
            }
            return;
        }
    }

    /// Offers a packet to a link that may do more than delay it. Returns when it arrives, if known.
    /// It continues at the path entry `position`.
    #[inline(never)]
    fn offer(&mut self, link: u32, at: Time, slot: Slot, position: u32) -> Option<Time> {
        let &Header { flow, wire, .. } = self.arena.header(slot);
        let state = &mut self.links[link as usize];
        state.count_offer();
        let Link::Analytic(analytic) = &mut state.link else {
            self.arena.set_position(slot, position, at);
            self.enqueue(at, link, slot);
            return None;
        };
        // No queue of an analytic link depends on the flow.
        let view = link_view(wire, state.marks && self.arena.is_ecn_capable(slot), 0);
        let outcome = analytic.offer(at, view);
        let Outcome::Carried(way) = outcome else {
            self.lose(link, slot, at, outcome);
            return None;
        };
        if way.marked {
            self.arena.mark(slot);
        }
        state.account_passage(at, (flow, wire), way, &self.watch);
        self.show_link(link, slot, at, outcome);
        if let Some(second) = way.duplicate {
            self.duplicate(link, position, slot, second);
        }
        Some(way.arrival)
    }

    /// Handles a packet that was offered at `offered_at` and does not arrive.
    #[cold]
    fn lose(&mut self, link: u32, slot: Slot, offered_at: Time, outcome: Outcome) {
        let &Header { flow, wire, at, .. } = self.arena.header(slot);
        let is_return = self.flows[flow as usize].is_return(at);
        let link_state = &mut self.links[link as usize];
        link_state.account_loss(offered_at, (flow, wire), outcome, &self.watch);
        link_state.account_direction(is_return);
        self.show_link(link, slot, offered_at, outcome);
        let counts = &mut self.flows[flow as usize].counts;
        counts.dropped_packets += 1;
        counts.dropped_acks += u64::from(is_return);
        self.arena.free(slot);
    }

    /// Whether the endpoint at the end of the path with entry `at` may handle a packet of `flow`
    /// now although it arrives later: nothing that touches the endpoint comes before it. `is_first`
    /// if the packet is the first on its last link.
    #[inline]
    fn may_act_ahead(&self, flow: u32, at: u32, arrival: Time, is_first: bool) -> bool {
        let flow = &self.flows[flow as usize];
        match &flow.agent {
            Agent::Datagram(_) => true,
            Agent::Sections(_) => false,
            Agent::Tcp(tcp) => {
                let end = if flow.is_return(at) {
                    &tcp.source
                } else {
                    &tcp.sink
                };
                (is_first || flow.is_next(at))
                    && self.depth < MAX_DEPTH
                    && !end.is_sending
                    && arrival <= end.connection.next_timer()
                    && arrival < flow.stop_at
                    && (arrival < self.watch.warmup || self.is_measuring)
            }
        }
    }

    /// Puts a packet on the wire of a link. It continues at the path entry `position`.
    #[inline]
    fn put_on_wire(&mut self, link: u32, slot: Slot, position: u32) {
        if self.paths[position as usize] & END != 0 {
            let flow = self.arena.header(slot).flow;
            *self.flows[flow as usize].waiting(position) += 1;
        }
        self.order += 1;
        let state = &mut self.links[link as usize];
        if state.put(&mut self.arena, slot, self.order) && link != self.current {
            self.queue.advance(Class::Arrival, link, state.next_arrival);
        }
    }

    /// Handles a duplicate that a link made: it arrives at `arrival` and continues at `position`.
    fn duplicate(&mut self, link: u32, position: u32, slot: Slot, arrival: Time) {
        self.links[link as usize].count_duplicate(arrival, &self.watch);
        let flow = self.arena.header(slot).flow;
        let counts = &mut self.flows[flow as usize].counts;
        counts.duplicated_packets += 1;
        if arrival > self.watch.end {
            counts.in_flight_at_end += 1;
            return;
        }
        let copy = self.arena.insert_copy(slot);
        self.arena.set_position(copy, position, arrival);
        self.put_on_wire(link, copy, position);
    }

    /// Handles a packet that waited on its last link and has reached its endpoint.
    fn receive_in_turn(&mut self, now: Time, slot: Slot) {
        let &Header { flow, at, .. } = self.arena.header(slot);
        *self.flows[flow as usize].waiting(at) -= 1;
        self.receive(now, slot);
    }

    /// Handles a packet that has reached its endpoint.
    fn receive(&mut self, now: Time, slot: Slot) {
        let &Header {
            flow: index,
            wire,
            sent_at,
            at,
            ..
        } = self.arena.header(slot);
        let flow = &mut self.flows[index as usize];
        let at_destination = !flow.is_return(at);
        flow.counts.received_packets += u64::from(at_destination);
        let datagram = match &mut flow.agent {
            Agent::Tcp(_) => return self.receive_segment(now, slot, index, at_destination),
            Agent::Sections(_) => return self.receive_sections(now, slot, index, at_destination),
            Agent::Datagram(datagram) => datagram,
        };
        flow.hash.add(now.as_nanos(), wire);
        let delivered = u64::from(wire);
        flow.counts.delivered_total += delivered;
        if now >= self.watch.warmup {
            flow.counts.delivered_measured += delivered;
            flow.counts.delay.record(now.saturating_since(sent_at));
            datagram.arrivals.record(now);
        }
        self.show_received(index, now, slot, delivered);
        self.arena.free(slot);
    }

    /// Handles a segment that has reached its end of a connection.
    fn receive_segment(&mut self, now: Time, slot: Slot, index: u32, at_destination: bool) {
        let warmup = self.watch.warmup;
        let flow = &mut self.flows[index as usize];
        let (Agent::Tcp(tcp), Body::Tcp(segment)) = (&mut flow.agent, self.arena.body(slot)) else {
            return;
        };
        let mut delivered = 0;
        if at_destination {
            if now >= warmup && segment.payload > 0 {
                let sent_at = self.arena.header(slot).sent_at;
                flow.counts.delay.record(now.saturating_since(sent_at));
            }
            let before = tcp.sink.connection.delivered();
            tcp.sink.connection.on_segment(now, segment);
            delivered = tcp.sink.connection.delivered() - before;
            if delivered > 0 {
                flow.counts.delivered_total += delivered;
                if now >= warmup {
                    flow.counts.delivered_measured += delivered;
                }
            }
            // A jump without data may leave a gap to read.
            if delivered > 0 || tcp.sink.connection.has_piece() {
                self.hand_over(now, index);
            }
        } else {
            flow.hash.add(now.as_nanos(), segment.acknowledgement.get());
            tcp.source.connection.on_segment(now, segment);
            tcp.track_window(now, warmup);
            if matches!(tcp.workload, TcpWorkload::File(_))
                && flow.counts.finished_at.is_none()
                && tcp.source.connection.is_all_acknowledged()
            {
                flow.counts.finished_at = Some(now);
            }
        }
        self.show_received(index, now, slot, delivered);
        self.arena.free(slot);
        self.pump(now, index, at_destination);
    }

    /// Notifies the receiving application of new data or a gap.
    fn hand_over(&mut self, now: Time, index: u32) {
        let Agent::Tcp(tcp) = &mut self.flows[index as usize].agent else {
            return;
        };
        match &mut tcp.reader {
            ReaderState::Immediate => {
                if let TcpWorkload::Timeline(timeline) = &mut tcp.workload {
                    while tcp.sink.connection.has_piece()
                        && let Some(piece) = tcp.sink.connection.read_piece(u64::MAX)
                    {
                        timeline.read(now, piece, |section| {
                            if O::ACTIVE {
                                self.observer.on_section(index, section);
                            }
                        });
                    }
                } else {
                    tcp.sink.connection.read(u64::MAX);
                }
            }
            ReaderState::Playback(playback) if playback.next_read.is_never() => {
                playback.next_read = now + playback.delay;
                let event = Event::new(playback.next_read, Class::Application, index * 2 + 1);
                self.queue.schedule(event);
            }
            // Data after the last read is not needed, and must not fill the buffer.
            ReaderState::Playback(playback) if playback.is_over() => {
                tcp.sink.connection.read(u64::MAX);
            }
            ReaderState::Playback(_) => {}
        }
    }

    /// Lets an endpoint send what it may, and arms its timer.
    fn pump(&mut self, now: Time, index: u32, at_destination: bool) {
        loop {
            let flow = &mut self.flows[index as usize];
            let Agent::Tcp(tcp) = &mut flow.agent else {
                return;
            };
            let end = tcp.end(at_destination);
            let mut segment = end.connection.poll_transmit(now);
            end.is_sending = true;
            if segment.is_none() && !at_destination {
                let tokens = &mut flow.counts.tokens_used;
                segment = draw_more(tcp, tokens, now, self.watch.warmup);
            }
            let Some(segment) = segment else {
                tcp.end(at_destination).is_sending = false;
                break;
            };
            let wire = tcp.wire_size(&segment);
            let path = if at_destination {
                flow.counts.acks += 1;
                flow.backward
            } else {
                flow.counts.sent_packets += 1;
                flow.counts.sent_wire_bytes += u64::from(wire);
                flow.forward
            };
            let header = Header::new(now, index, wire, path.start);
            let slot = self.arena.insert(header, Body::Tcp(segment));
            self.show_sent(index, now, slot);
            self.carry(now, slot);
        }
        self.arm_timer(now, index, at_destination);
    }

    /// Ensures that an endpoint's next timer has an event at or before its time.
    fn arm_timer(&mut self, now: Time, index: u32, at_destination: bool) {
        let flow = &mut self.flows[index as usize];
        let Agent::Tcp(tcp) = &mut flow.agent else {
            return;
        };
        let end = tcp.end(at_destination);
        if let Some(due) = end.alarm.set(now, end.connection.next_timer()) {
            let source = index * 2 + u32::from(at_destination);
            self.queue.schedule(Event::new(due, Class::Timer, source));
        }
    }

    // ---------------------------------------------------------------- queued links

    fn enqueue(&mut self, now: Time, link: u32, slot: Slot) {
        let &Header { flow, wire, at, .. } = self.arena.header(slot);
        let is_return = self.flows[flow as usize].is_return(at);
        let flow = u64::from(flow) << 1 | u64::from(is_return);
        let state = &mut self.links[link as usize];
        let view = link_view(wire, state.marks && self.arena.is_ecn_capable(slot), flow);
        match state.link.offer(now, view, slot) {
            Some(outcome) => self.settle(link, slot, outcome),
            None if O::ACTIVE => self.observer.on_queued(link, slot, now, &self.packet(slot)),
            None => {}
        }
        self.arm_service(link);
    }

    fn arm_service(&mut self, link: u32) {
        let state = &mut self.links[link as usize];
        if let Some(due) = state.link.next_wakeup()
            && due < state.next_service
        {
            state.next_service = due;
            self.queue.advance(Class::Service, link, due);
        }
    }

    fn on_service(&mut self, now: Time, link: u32) {
        self.links[link as usize].next_service = Time::MAX;
        self.queue.set(Class::Service, link, Time::MAX);
        while let Some(decision) = self.links[link as usize].link.poll(now) {
            self.settle(link, decision.token, decision.outcome);
        }
        self.arm_service(link);
    }

    /// Handles the decision of a queued link about a packet.
    fn settle(&mut self, link: u32, slot: Slot, outcome: Outcome) {
        // While a queued link holds a packet, its `arrival` in the arena is the time of its offer.
        let &Header {
            arrival: offered_at,
            flow,
            wire,
            at: position,
            ..
        } = self.arena.header(slot);
        let Outcome::Carried(way) = outcome else {
            self.lose(link, slot, offered_at, outcome);
            return;
        };
        if way.marked {
            self.arena.mark(slot);
        }
        self.links[link as usize].account_passage(offered_at, (flow, wire), way, &self.watch);
        self.show_link(link, slot, offered_at, outcome);
        if let Some(second) = way.duplicate {
            self.duplicate(link, position, slot, second);
        }
        if way.arrival > self.watch.end {
            self.flows[flow as usize].counts.in_flight_at_end += 1;
            self.arena.free(slot);
            return;
        }
        self.arena.set_position(slot, position, way.arrival);
        self.put_on_wire(link, slot, position);
    }

    // ---------------------------------------------------------------- observers

    #[inline]
    fn show_link(&mut self, link: u32, slot: Slot, offered_at: Time, outcome: Outcome) {
        if O::ACTIVE {
            let packet = &self.packet(slot);
            let fate = match outcome {
                Outcome::Carried(way) => Fate::Carried {
                    start: way.start,
                    departure: way.departure,
                    arrival: way.arrival,
                    marked: way.marked,
                    duplicate: way.duplicate,
                },
                Outcome::Lost {
                    start, departure, ..
                } => Fate::Lost { start, departure },
                Outcome::Dropped(cause) => Fate::Dropped(cause),
            };
            self.observer.on_link(
                link,
                &LinkEvent {
                    packet,
                    token: slot,
                    offered_at,
                    fate,
                },
            );
        }
    }

    fn show_sent(&mut self, index: u32, now: Time, slot: Slot) {
        if O::ACTIVE {
            let packet = self.packet(slot);
            self.show_flow(index, now, packet.is_return, FlowEventKind::Sent(&packet));
        }
    }

    fn show_received(&mut self, index: u32, now: Time, slot: Slot, delivered: u64) {
        if O::ACTIVE {
            let packet = self.packet(slot);
            let at_destination = !packet.is_return;
            self.show_flow(index, now, at_destination, FlowEventKind::Received(&packet));
            if delivered > 0 {
                self.show_flow(index, now, true, FlowEventKind::Delivered(delivered));
            }
        }
    }

    /// A packet as observers see it.
    fn packet(&self, slot: Slot) -> Packet {
        let header = self.arena.header(slot);
        Packet {
            flow: header.flow,
            wire: header.wire,
            sent_at: header.sent_at,
            is_return: self.flows[header.flow as usize].is_return(header.at),
            body: *self.arena.body(slot),
        }
    }

    fn show_flow(&mut self, index: u32, now: Time, at_destination: bool, kind: FlowEventKind<'_>) {
        if O::ACTIVE {
            let state = match &self.flows[index as usize].agent {
                Agent::Tcp(tcp) => Some(tcp.sender_state()),
                Agent::Sections(sections) => Some(sections.sender_state()),
                Agent::Datagram(_) => None,
            };
            self.observer.on_flow(
                index,
                &FlowEvent {
                    now,
                    at_destination,
                    kind,
                    state,
                },
            );
        }
    }

    // ---------------------------------------------------------------- the end

    /// The report of `network`, which was run from `seed`.
    pub(crate) fn finish(mut self, network: &Network, seed: Seed) -> (RunReport, O) {
        self.count_what_is_held();
        let mut fingerprint = Fingerprint::default();
        for link in &self.links {
            fingerprint.merge(link.hash);
        }
        for flow in &self.flows {
            fingerprint.merge(flow.hash);
        }
        let memory = self.memory();
        let links = network
            .links
            .iter()
            .zip(&self.links)
            .map(|(spec, link)| link.report(&spec.name, &spec.config.rate, &self.watch))
            .collect();
        let watch = self.watch;
        let paths = &self.paths;
        let data = |flow: &Flow| path::links(flow.forward, paths).map(|link| link as usize);
        let shares = Shares::new(network, self.flows.iter().flat_map(data), watch);
        let flows = network
            .flows
            .iter()
            .zip(&mut self.flows)
            .zip(network.base_rtts())
            .map(|((spec, flow), base_rtt)| {
                let share = shares.of(data(flow));
                FlowReport {
                    base_rtt,
                    ..flow.report(spec, watch, share)
                }
            })
            .collect();
        let report = RunReport {
            world: crate::report::World::default(),
            seed,
            fingerprint: fingerprint.finish(),
            duration: network.duration,
            warmup: network.warmup,
            flows,
            links,
            cost: Cost {
                events: self.events,
                packet_hops: self.links.iter().map(LinkState::carried).sum(),
                peak_packets: self.arena.peak() as u64,
                memory_bytes: memory as u64,
            },
            series: None,
            packets: None,
        };
        (report, self.observer)
    }

    /// Counts packets that queued links hold at the end. No other packets remain in the arena:
    /// packets that would arrive after the end are never put there.
    fn count_what_is_held(&mut self) {
        let end = self.watch.end;
        for link in &mut self.links {
            if let Link::Queued(queued) = &mut link.link {
                let held = queued.backlog(end).packets.unwrap_or(0);
                link.count_held(u64::from(held));
            }
        }
        for flow in self.arena.flows_in_use() {
            self.flows[flow as usize].counts.in_flight_at_end += 1;
        }
    }

    fn memory(&self) -> usize {
        let links: usize = self.links.iter().map(LinkState::memory).sum();
        let flows: usize = self.flows.iter().map(Flow::memory).sum();
        links
            + flows
            + self.queue.memory()
            + self.arena.memory()
            + self.paths.capacity() * size_of::<u32>()
    }
}

/// Gives a TCP source without unsent data as much as its workload allows now.
fn draw_more(
    tcp: &mut flow::TcpFlow,
    tokens_used: &mut u64,
    now: Time,
    warmup: Time,
) -> Option<Segment> {
    match &mut tcp.workload {
        TcpWorkload::Bucket { .. } => draw_tokens(tcp, tokens_used, now, warmup),
        TcpWorkload::Timeline(timeline) => {
            let connection = &mut tcp.source.connection;
            if timeline.fill(now, connection) {
                connection.poll_transmit(now)
            } else {
                None
            }
        }
        _ => None,
    }
}

/// Gives a TCP source as much as its token bucket allows now.
fn draw_tokens(
    tcp: &mut flow::TcpFlow,
    tokens_used: &mut u64,
    now: Time,
    warmup: Time,
) -> Option<Segment> {
    let TcpWorkload::Bucket(source) = &mut tcp.workload else {
        return None;
    };
    let connection = &mut tcp.source.connection;
    let is_measured = now >= warmup;
    if is_measured && let Some(rtt) = connection.rtt().and_then(RttEstimator::latest) {
        source.rounds.advance(now, rtt);
    }
    let consumed = source.consume(connection);
    if is_measured {
        *tokens_used += consumed;
        source.rounds.add(consumed);
    }
    if source.offer(connection) {
        connection.poll_transmit(now)
    } else {
        None
    }
}
