//! The engine: plays a network in virtual time.
//!
//! # How it is fast
//! A link decides a packet's fate when the packet is handed over, so there is no event for the end of a
//! transmission; packets on a link form a chain, of which only the first has an event in the queue. Where a
//! link has a single feeder that keeps order, nothing can come between two packets of that feeder, and the
//! whole way up to the next meeting of flows is computed at once (`collapse`). Timers are lazy: an
//! acknowledgement that moves a retransmission timer later writes one field.
//!
//! # How it is deterministic
//! Times are whole nanoseconds. At one instant events are ordered by class and source, never by insertion.
//! Every random stream is keyed by the run's seed and an entity's name. The fingerprint hashes each entity's
//! own history and then the entities in order, so it does not depend on how their histories interleave in
//! the computation: a run with `collapse` off gives the same.

mod build;
mod fingerprint;
mod flow;
mod links;
mod observe;
mod packet;
mod queue;
mod route;
mod schedule;

use comity_transport::tcp::Segment;
use comity_units::{Seed, Time};

pub use build::BuildError;
pub use observe::{
    Fate, FlowEvent, FlowEventKind, LinkEvent, NullObserver, Observer, SenderState,
};
pub use packet::{Body, Packet};

use crate::network::Network;
use crate::report::{Cost, RunReport};
use fingerprint::Fingerprint;
use flow::{Agent, DatagramSource, Flow, ReaderState, TcpWorkload};
use links::{Handed, LinkState, Model, Watch, link_view};
use packet::Arena;
use queue::{Class, Event, EventQueue};

/// How a run is made; none of it changes the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// Whether packets are computed ahead where nothing can interfere. Off, observers see events in the
    /// order of their times, and the run is slower.
    pub collapse: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { collapse: true }
    }
}

/// Plays `network` from `seed`.
///
/// # Errors
/// [`BuildError`] when the network cannot be played: an unreachable destination, an unknown controller, a
/// link or a flow with impossible settings.
pub fn run(network: &Network, seed: Seed, options: &RunOptions) -> Result<RunReport, BuildError> {
    run_observed(network, seed, options, &mut NullObserver)
}

/// Plays `network` from `seed` while `observer` looks on.
///
/// # Errors
/// As for [`run()`].
pub fn run_observed<O: Observer>(
    network: &Network,
    seed: Seed,
    options: &RunOptions,
    observer: &mut O,
) -> Result<RunReport, BuildError> {
    let mut engine = Engine::build(network, seed, options, observer)?;
    engine.play();
    Ok(engine.finish(network, seed))
}

/// The bit of a path entry that says: this link may be computed ahead from the one before it.
const AHEAD: u32 = 1 << 31;

/// The hop at which a flow is drawn on that is not.
const NOT_DRAWN: u16 = u16::MAX;

/// The source number of a control event that starts the measuring.
const MEASURE: u32 = u32::MAX;

struct Engine<'o, O> {
    queue: EventQueue,
    arena: Arena,
    links: Vec<LinkState>,
    flows: Vec<Flow>,
    /// The links of all paths, one path behind the other, with [`AHEAD`] marked.
    paths: Vec<u32>,
    watch: Watch,
    observer: &'o mut O,
    events: u64,
    packet_hops: u64,
    /// Counts packets put on links, to order those that come out of one link at one instant.
    order: u64,
    /// The event being handled still stands at the top of the queue. The first event that it brings about
    /// takes its place, which is cheaper than taking one off and putting another in.
    top_is_spent: bool,
}

impl<O: Observer> Engine<'_, O> {
    fn play(&mut self) {
        while let Some(event) = self.queue.peek() {
            let now = event.time();
            if now > self.watch.end {
                break;
            }
            self.events += 1;
            self.top_is_spent = true;
            match event.class() {
                Class::Arrival => self.on_arrival(now, event.source()),
                Class::Timer => self.on_timer(now, event.source()),
                Class::Application => self.on_application(now, event.source()),
                Class::Service => self.on_service(now, event.source()),
                Class::Control => self.on_control(now, event.source()),
            }
            if self.top_is_spent {
                self.queue.pop();
            }
        }
    }

    /// Adds an event.
    #[inline]
    fn schedule(&mut self, event: Event) {
        if self.top_is_spent {
            self.top_is_spent = false;
            self.queue.replace_top(event);
        } else {
            self.queue.push(event);
        }
    }

    // ---------------------------------------------------------------- packets

    /// A packet comes out of a link.
    fn on_arrival(&mut self, now: Time, link: u32) {
        let state = &mut self.links[link as usize];
        if !state.is_expected(now) {
            return;
        }
        let Some((slot, next)) = state.take(&self.arena) else { return };
        if !next.is_never() {
            self.schedule(Event::new(next, Class::Arrival, link));
        }
        let packet = self.arena.remove(slot);
        if self.flows[packet.flow as usize].drawn_at == packet.hop && !packet.is_return {
            self.draw(packet.flow);
        }
        let flow = &self.flows[packet.flow as usize];
        let path = if packet.is_return { flow.backward } else { flow.forward };
        if packet.hop < path.length {
            self.carry(now, packet);
        } else {
            self.receive(now, &packet);
        }
    }

    /// Hands a packet to the next link of its path, and on to all that can be computed ahead.
    fn carry(&mut self, mut at: Time, mut packet: Packet) {
        let flow = &self.flows[packet.flow as usize];
        let path = if packet.is_return { flow.backward } else { flow.forward };
        loop {
            let entry = self.paths[path.start as usize + usize::from(packet.hop)];
            let link = entry & !AHEAD;
            packet.hop += 1;
            let state = &mut self.links[link as usize];
            state.count_offer();
            let outcome = match &mut state.model {
                Model::Clocked(model) => model.offer(at, link_view(&packet)),
                Model::Served(_) => {
                    self.queue_at_served(at, link, packet);
                    return;
                }
            };
            let handed = state.account(at, &packet, outcome, self.watch);
            self.show_link(link, &packet, at, handed);
            let Handed::Carried(way) = handed else {
                self.flows[packet.flow as usize].counts.dropped_packets += 1;
                return;
            };
            self.packet_hops += 1;
            if let Some(second) = way.duplicate {
                self.duplicate(link, packet, second);
            }
            if way.arrival > self.watch.end {
                self.flows[packet.flow as usize].counts.in_flight_at_end += 1;
                return;
            }
            if packet.hop < path.length {
                if self.paths[path.start as usize + usize::from(packet.hop)] & AHEAD != 0 {
                    at = way.arrival;
                    continue;
                }
            } else if let Body::Datagram(_) = packet.body {
                // Nothing answers a datagram: its arrival needs no turn of its own.
                self.receive(way.arrival, &packet);
                return;
            }
            self.put_on_wire(link, packet, way.arrival);
            return;
        }
    }

    /// Lets a packet travel on a link until it comes out at `arrival`.
    fn put_on_wire(&mut self, link: u32, packet: Packet, arrival: Time) {
        let slot = self.arena.insert(packet, arrival);
        self.order += 1;
        let order = self.order;
        if let Some(time) = self.links[link as usize].put(&mut self.arena, slot, order) {
            self.schedule(Event::new(time, Class::Arrival, link));
        }
    }

    /// A link made a second copy of a packet.
    fn duplicate(&mut self, link: u32, packet: Packet, arrival: Time) {
        self.links[link as usize].count_duplicate(arrival, self.watch);
        let counts = &mut self.flows[packet.flow as usize].counts;
        counts.duplicated_packets += 1;
        if arrival > self.watch.end {
            counts.in_flight_at_end += 1;
            return;
        }
        self.put_on_wire(link, packet, arrival);
    }

    /// A packet has come to its endpoint.
    fn receive(&mut self, now: Time, packet: &Packet) {
        let warmup = self.watch.warmup;
        let flow = &mut self.flows[packet.flow as usize];
        if !packet.is_return {
            flow.counts.received_packets += 1;
        }
        match (&mut flow.agent, packet.body) {
            (Agent::Datagram(_), _) | (_, Body::Datagram(_)) => {
                flow.hash.add(now.as_nanos(), packet.wire);
                let wire = u64::from(packet.wire);
                flow.counts.delivered_total += wire;
                if now >= warmup {
                    flow.counts.delivered_measured += wire;
                    flow.counts.delay.record(now.saturating_since(packet.sent_at));
                }
                if O::ACTIVE {
                    self.show_flow(packet.flow, now, true, FlowEventKind::Received(packet));
                    self.show_flow(packet.flow, now, true, FlowEventKind::Delivered(wire));
                }
            }
            (Agent::Tcp(_), Body::Tcp(segment)) => self.receive_segment(now, packet, &segment),
        }
    }

    fn receive_segment(&mut self, now: Time, packet: &Packet, segment: &Segment) {
        let index = packet.flow;
        let at_destination = !packet.is_return;
        let warmup = self.watch.warmup;
        let flow = &mut self.flows[index as usize];
        let Agent::Tcp(tcp) = &mut flow.agent else { return };
        let mut delivered = 0;
        if at_destination {
            if now >= warmup && segment.payload > 0 {
                flow.counts.delay.record(now.saturating_since(packet.sent_at));
            }
            let before = tcp.sink.connection.delivered();
            tcp.sink.connection.on_segment(now, segment);
            delivered = tcp.sink.connection.delivered() - before;
            if delivered > 0 {
                flow.counts.delivered_total += delivered;
                if now >= warmup {
                    flow.counts.delivered_measured += delivered;
                }
                match &mut tcp.reader {
                    ReaderState::Immediate => {
                        tcp.sink.connection.read(u64::MAX);
                    }
                    ReaderState::Playback(playback) if playback.next_read.is_never() => {
                        playback.next_read = now + playback.delay;
                        let event = Event::new(playback.next_read, Class::Application, index * 2 + 1);
                        self.schedule(event);
                    }
                    ReaderState::Playback(_) => {}
                }
            }
        } else {
            flow.hash.add(now.as_nanos(), segment.acknowledgement.get());
            tcp.source.connection.on_segment(now, segment);
            tcp.track_window(now, warmup);
            if let TcpWorkload::File(_) = tcp.workload
                && flow.counts.finished_at.is_none()
                && tcp.source.connection.is_all_acknowledged()
            {
                flow.counts.finished_at = Some(now);
            }
        }
        if O::ACTIVE {
            self.show_flow(index, now, at_destination, FlowEventKind::Received(packet));
            if delivered > 0 {
                self.show_flow(index, now, true, FlowEventKind::Delivered(delivered));
            }
        }
        self.pump(now, index, at_destination);
    }

    /// Lets an endpoint send what it may, and sees to its timer.
    fn pump(&mut self, now: Time, index: u32, at_destination: bool) {
        loop {
            let flow = &mut self.flows[index as usize];
            let Agent::Tcp(tcp) = &mut flow.agent else { return };
            let mut segment = tcp.end(at_destination).connection.poll_transmit(now);
            if segment.is_none() && !at_destination {
                segment = draw_tokens(tcp, &mut flow.counts.tokens_used, now, self.watch.warmup);
            }
            let Some(segment) = segment else { break };
            let wire = tcp.wire_size(&segment);
            let packet = Packet {
                flow: index,
                wire,
                sent_at: now,
                hop: 0,
                is_return: at_destination,
                body: Body::Tcp(segment),
            };
            if at_destination {
                flow.counts.returned_packets += 1;
            } else {
                flow.counts.sent_packets += 1;
                flow.counts.sent_wire_bytes += u64::from(wire);
            }
            if O::ACTIVE {
                self.show_flow(index, now, at_destination, FlowEventKind::Sent(&packet));
            }
            self.carry(now, packet);
        }
        let flow = &mut self.flows[index as usize];
        let Agent::Tcp(tcp) = &mut flow.agent else { return };
        let end = tcp.end(at_destination);
        let due = end.connection.next_timer();
        if due < end.timer_queued_for {
            // A pacer may be late already; its turn comes after this event, not before.
            let due = due.max(now);
            end.timer_queued_for = due;
            let source = index * 2 + u32::from(at_destination);
            self.schedule(Event::new(due, Class::Timer, source));
        }
    }

    // ---------------------------------------------------------------- links that serve

    fn queue_at_served(&mut self, now: Time, link: u32, packet: Packet) {
        let slot = self.arena.insert(packet, now);
        let state = &mut self.links[link as usize];
        let Model::Served(model) = &mut state.model else { return };
        if let Err(cause) = model.offer(now, link_view(&packet), slot) {
            self.arena.remove(slot);
            self.settle(link, packet, now, comity_link::Outcome::Dropped(cause));
        }
        self.arm_service(link);
    }

    fn arm_service(&mut self, link: u32) {
        let state = &mut self.links[link as usize];
        let Model::Served(model) = &mut state.model else { return };
        if let Some(due) = model.next_wakeup()
            && due < state.service_queued_for
        {
            state.service_queued_for = due;
            self.schedule(Event::new(due, Class::Service, link));
        }
    }

    fn on_service(&mut self, now: Time, link: u32) {
        let state = &mut self.links[link as usize];
        if state.service_queued_for != now {
            return;
        }
        state.service_queued_for = Time::MAX;
        loop {
            let Model::Served(model) = &mut self.links[link as usize].model else { return };
            let Some(served) = model.poll(now) else { break };
            let offered_at = self.arena.arrival(served.token);
            let packet = self.arena.remove(served.token);
            self.settle(link, packet, offered_at, served.outcome);
        }
        self.arm_service(link);
    }

    /// A served link has decided about a packet that was handed over at `offered_at`.
    fn settle(&mut self, link: u32, packet: Packet, offered_at: Time, outcome: comity_link::Outcome) {
        let handed = self.links[link as usize].account(offered_at, &packet, outcome, self.watch);
        self.show_link(link, &packet, offered_at, handed);
        let counts = &mut self.flows[packet.flow as usize].counts;
        let Handed::Carried(way) = handed else {
            counts.dropped_packets += 1;
            return;
        };
        self.packet_hops += 1;
        if let Some(second) = way.duplicate {
            self.duplicate(link, packet, second);
        }
        if way.arrival > self.watch.end {
            self.flows[packet.flow as usize].counts.in_flight_at_end += 1;
            return;
        }
        self.put_on_wire(link, packet, way.arrival);
    }

    // ---------------------------------------------------------------- timers and applications

    fn on_timer(&mut self, now: Time, source: u32) {
        let (index, at_destination) = (source / 2, source % 2 == 1);
        let warmup = self.watch.warmup;
        let Agent::Tcp(tcp) = &mut self.flows[index as usize].agent else { return };
        let end = tcp.end(at_destination);
        if end.timer_queued_for != now {
            return;
        }
        end.timer_queued_for = Time::MAX;
        if end.connection.next_timer() <= now {
            end.connection.on_timer(now);
            if !at_destination {
                tcp.track_window(now, warmup);
            }
            if O::ACTIVE {
                self.show_flow(index, now, at_destination, FlowEventKind::Timer);
            }
        }
        self.pump(now, index, at_destination);
    }

    fn on_application(&mut self, now: Time, source: u32) {
        let (index, is_reader) = (source / 2, source % 2 == 1);
        let next = if is_reader { self.on_read(now, index) } else { self.on_emission(now, index) };
        if let Some(next) = next {
            self.schedule(Event::new(next, Class::Application, source));
        }
        if is_reader {
            self.pump(now, index, true);
        } else {
            self.emit(now, index);
        }
    }

    /// Lets the receiving application read. Returns when it reads next.
    fn on_read(&mut self, now: Time, index: u32) -> Option<Time> {
        let warmup = self.watch.warmup;
        let Agent::Tcp(tcp) = &mut self.flows[index as usize].agent else { return None };
        let ReaderState::Playback(playback) = &mut tcp.reader else { return None };
        let satisfied = tcp.sink.connection.readable() >= playback.bytes;
        if satisfied {
            tcp.sink.connection.read(playback.bytes);
        }
        if now >= warmup {
            playback.reads += 1;
            playback.satisfied += u64::from(satisfied);
        }
        playback.next_read = now + playback.interval;
        Some(playback.next_read)
    }

    /// Moves a workload's calendar on. Returns when it acts next.
    fn on_emission(&mut self, now: Time, index: u32) -> Option<Time> {
        let flow = &mut self.flows[index as usize];
        if now >= flow.stop_at {
            return None;
        }
        let next = match &mut flow.agent {
            Agent::Datagram(datagram) => match &mut datagram.source {
                DatagramSource::Schedule(schedule) => {
                    schedule.advance();
                    schedule.peek()
                }
                DatagramSource::Bucket(bucket) => {
                    bucket.refill();
                    bucket.next_refill
                }
            },
            Agent::Tcp(tcp) => match &mut tcp.workload {
                TcpWorkload::Schedule { schedule, chunk } => {
                    tcp.source.connection.write(*chunk);
                    schedule.advance();
                    schedule.peek()
                }
                TcpWorkload::Bucket { bucket, .. } => {
                    bucket.refill();
                    bucket.next_refill
                }
                TcpWorkload::Greedy | TcpWorkload::File(_) => return None,
            },
        };
        Some(next)
    }

    /// Sends what a workload has just given.
    fn emit(&mut self, now: Time, index: u32) {
        let flow = &mut self.flows[index as usize];
        if now >= flow.stop_at {
            return;
        }
        match &mut flow.agent {
            Agent::Tcp(_) => self.pump(now, index, false),
            Agent::Datagram(datagram) => match &mut datagram.source {
                DatagramSource::Schedule(_) => self.send_datagram(now, index),
                DatagramSource::Bucket(bucket) => {
                    let wire = u64::from(datagram.wire);
                    let packets = bucket.tokens / wire.max(1);
                    bucket.tokens -= packets * wire;
                    if now >= self.watch.warmup {
                        flow.counts.tokens_used += packets * wire;
                    }
                    for _ in 0..packets {
                        self.send_datagram(now, index);
                    }
                }
            },
        }
    }

    fn send_datagram(&mut self, now: Time, index: u32) {
        let flow = &mut self.flows[index as usize];
        let Agent::Datagram(datagram) = &mut flow.agent else { return };
        let packet = datagram.emit(index, now);
        flow.counts.sent_packets += 1;
        flow.counts.sent_wire_bytes += u64::from(packet.wire);
        if O::ACTIVE {
            self.show_flow(index, now, false, FlowEventKind::Sent(&packet));
        }
        self.carry(now, packet);
    }

    /// Emits the next packets of a source that is drawn on, until one of them is under way.
    ///
    /// Such a source has its first links to itself, so its packets up to where they meet others depend on
    /// nothing else. One packet at a time is on that stretch, and when it gets to the end the next one is
    /// emitted: one event for a packet instead of two.
    fn draw(&mut self, index: u32) {
        loop {
            let flow = &mut self.flows[index as usize];
            let Agent::Datagram(datagram) = &mut flow.agent else { return };
            let DatagramSource::Schedule(schedule) = &mut datagram.source else { return };
            let at = schedule.peek();
            if at > self.watch.end || at >= flow.stop_at {
                return;
            }
            schedule.advance();
            let on_the_way = self.order;
            self.send_datagram(at, index);
            if self.order != on_the_way {
                return;
            }
        }
    }

    fn on_control(&mut self, now: Time, source: u32) {
        if source == MEASURE {
            self.begin_measuring();
            return;
        }
        let index = source / 2;
        let flow = &mut self.flows[index as usize];
        if source % 2 == 1 {
            if let Agent::Tcp(tcp) = &mut flow.agent {
                tcp.source.connection.truncate();
            }
            return;
        }
        match &mut flow.agent {
            Agent::Datagram(datagram) => {
                let first = match &datagram.source {
                    DatagramSource::Schedule(schedule) => schedule.peek(),
                    DatagramSource::Bucket(_) => now,
                };
                if flow.drawn_at == NOT_DRAWN {
                    self.schedule(Event::new(first, Class::Application, index * 2));
                } else {
                    self.draw(index);
                }
            }
            Agent::Tcp(tcp) => {
                tcp.track_window(now, self.watch.warmup);
                let connection = &mut tcp.source.connection;
                match &tcp.workload {
                    TcpWorkload::Greedy => connection.write_without_end(),
                    TcpWorkload::File(bytes) => {
                        connection.write(*bytes);
                        connection.close();
                    }
                    TcpWorkload::Schedule { schedule, .. } => {
                        let first = Event::new(schedule.peek(), Class::Application, index * 2);
                        self.schedule(first);
                    }
                    TcpWorkload::Bucket { bucket, .. } => {
                        let first = Event::new(bucket.next_refill, Class::Application, index * 2);
                        self.schedule(first);
                    }
                }
                self.pump(now, index, false);
            }
        }
    }

    fn begin_measuring(&mut self) {
        for flow in &mut self.flows {
            if let Agent::Tcp(tcp) = &mut flow.agent {
                let statistics = tcp.source.connection.statistics();
                tcp.rtt_at_warmup = (statistics.rtt_samples, statistics.rtt_sum);
            }
        }
    }

    // ---------------------------------------------------------------- looking on

    #[inline]
    fn show_link(&mut self, link: u32, packet: &Packet, offered_at: Time, handed: Handed) {
        if O::ACTIVE {
            let fate = match handed {
                Handed::Carried(way) => Fate::Carried {
                    departure: way.departure,
                    arrival: way.arrival,
                    marked: way.marked,
                },
                Handed::Lost(departure) => Fate::Lost { departure },
                Handed::Dropped(cause) => Fate::Dropped(cause),
            };
            self.observer.on_link(link, &LinkEvent { packet, offered_at, fate });
        }
    }

    fn show_flow(&mut self, index: u32, now: Time, at_destination: bool, kind: FlowEventKind<'_>) {
        if O::ACTIVE {
            let state = match &self.flows[index as usize].agent {
                Agent::Tcp(tcp) => Some(tcp.sender_state()),
                Agent::Datagram(_) => None,
            };
            self.observer.on_flow(index, &FlowEvent { now, at_destination, kind, state });
        }
    }

    // ---------------------------------------------------------------- the end

    fn finish(mut self, network: &Network, seed: Seed) -> RunReport {
        let watched = self.watch.end.saturating_since(self.watch.warmup);
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
            .map(|(spec, link)| {
                link.report(&spec.name, build::mean_rate(&spec.config, self.watch), watched)
            })
            .collect();
        let watch = self.watch;
        let flows = network
            .flows
            .iter()
            .zip(&mut self.flows)
            .map(|(spec, flow)| flow.report(spec, watch))
            .collect();
        RunReport {
            seed,
            fingerprint: fingerprint.finish(),
            duration: network.duration,
            warmup: network.warmup,
            flows,
            links,
            cost: Cost {
                events: self.events,
                packet_hops: self.packet_hops,
                peak_packets: u64::from(self.arena.peak()),
                memory_bytes: memory as u64,
            },
            series: None,
        }
    }

    /// Packets that the queues of served links hold at the end belong to the accounts too. Nothing else is
    /// left in the arena: packets that come out after the end were never put there.
    fn count_what_is_held(&mut self) {
        let end = self.watch.end;
        for link in &mut self.links {
            if let Model::Served(model) = &mut link.model {
                let held = model.backlog(end).packets.unwrap_or(0);
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

/// Gives a TCP source as much as its token bucket lets it send right now.
fn draw_tokens(
    tcp: &mut flow::TcpFlow,
    tokens_used: &mut u64,
    now: Time,
    warmup: Time,
) -> Option<Segment> {
    let TcpWorkload::Bucket { bucket, chunk } = &mut tcp.workload else { return None };
    let connection = &mut tcp.source.connection;
    // Only what can leave at once is drawn: tokens that the window does not let through stay, and overflow.
    if bucket.tokens < *chunk || connection.unsent() > 0 || !connection.is_synchronized() {
        return None;
    }
    connection.write(*chunk);
    bucket.tokens -= *chunk;
    if now >= warmup {
        *tokens_used += *chunk;
    }
    connection.poll_transmit(now)
}
