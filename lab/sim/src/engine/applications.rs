//! Events of endpoints other than packets: timers, workloads, readers, starts and stops.

use comity_units::Time;

use super::event::{Class, Event};
use super::flow::{Agent, DatagramSource, ReaderState, TcpWorkload};
use super::observe::{FlowEventKind, Observer};
use super::packet::{Body, Header};
use super::{Engine, MEASURE};

impl<O: Observer> Engine<O> {
    pub(super) fn on_timer(&mut self, now: Time, source: u32) {
        let (index, at_destination) = (source / 2, source % 2 == 1);
        let warmup = self.watch.warmup;
        let Agent::Tcp(tcp) = &mut self.flows[index as usize].agent else {
            return self.on_sections_timer(now, index, at_destination);
        };
        let end = tcp.end(at_destination);
        if !end.alarm.take(now) {
            return;
        }
        if end.connection.next_timer() > now {
            // The timer has moved later; the endpoint may even have acted ahead of this moment.
            self.arm_timer(now, index, at_destination);
            return;
        }
        end.alarm.ring(now);
        end.connection.on_timer(now);
        if !at_destination {
            tcp.track_window(now, warmup);
        }
        if O::ACTIVE {
            self.show_flow(index, now, at_destination, FlowEventKind::Timer);
        }
        self.pump(now, index, at_destination);
        let Agent::Tcp(tcp) = &mut self.flows[index as usize].agent else {
            return;
        };
        debug_assert!(
            tcp.end(at_destination).connection.next_timer() > now,
            "an endpoint asks at once for the turn that it has just had"
        );
    }

    pub(super) fn on_application(&mut self, now: Time, source: u32) {
        let (index, is_reader) = (source / 2, source % 2 == 1);
        let next = if is_reader {
            self.on_read(now, index)
        } else {
            self.on_emission(now, index)
        };
        if let Some(next) = next {
            self.queue
                .schedule(Event::new(next, Class::Application, source));
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
        let Agent::Tcp(tcp) = &mut self.flows[index as usize].agent else {
            return None;
        };
        let ReaderState::Playback(playback) = &mut tcp.reader else {
            return None;
        };
        let connection = &mut tcp.sink.connection;
        connection.read(playback.read(now, connection.readable(), warmup));
        if playback.is_over() {
            connection.read(u64::MAX);
            return None;
        }
        Some(playback.next_read)
    }

    /// Advances a workload's calendar. Returns when it acts next.
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
                    tcp.source.connection.write(u64::from(*chunk));
                    schedule.advance();
                    schedule.peek()
                }
                TcpWorkload::Bucket(source) => {
                    source.bucket.refill();
                    source.bucket.next_refill
                }
                TcpWorkload::Timeline(timeline) => {
                    let next = timeline.produce(now, &mut tcp.source.connection);
                    return (!next.is_never()).then_some(next);
                }
                TcpWorkload::Greedy | TcpWorkload::File(_) => return None,
            },
            Agent::Sections(sections) => {
                let next = sections.produce(now);
                return (!next.is_never()).then_some(next);
            }
        };
        Some(next)
    }

    /// Sends the packet that a workload has just produced.
    fn emit(&mut self, now: Time, index: u32) {
        let flow = &mut self.flows[index as usize];
        if now >= flow.stop_at {
            return;
        }
        match &mut flow.agent {
            Agent::Tcp(_) => self.pump(now, index, false),
            Agent::Sections(_) => self.pump_sections(now, index, false),
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
        let Agent::Datagram(datagram) = &mut flow.agent else {
            return;
        };
        let number = datagram.next_number;
        datagram.next_number += 1;
        flow.counts.sent_packets += 1;
        flow.counts.sent_wire_bytes += u64::from(datagram.wire);
        let header = Header::new(now, index, datagram.wire, flow.forward.start);
        let slot = self.arena.insert(header, Body::Datagram(number));
        self.show_sent(index, now, slot);
        self.carry(now, slot);
    }

    /// Emits the next packets of a drawn source until one of them is in flight.
    ///
    /// No other flow uses the first links of such a source, so its packets depend on nothing else
    /// until they meet other flows. One packet at a time is on those links. The source emits the
    /// next one when it reaches their end: one event for a packet instead of two.
    pub(super) fn draw(&mut self, index: u32) {
        loop {
            let flow = &mut self.flows[index as usize];
            let Agent::Datagram(datagram) = &mut flow.agent else {
                return;
            };
            let DatagramSource::Schedule(schedule) = &mut datagram.source else {
                return;
            };
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

    pub(super) fn on_control(&mut self, now: Time, source: u32) {
        if source == MEASURE {
            self.begin_measuring();
            return;
        }
        let index = source / 2;
        let flow = &mut self.flows[index as usize];
        if source % 2 == 1 {
            match &mut flow.agent {
                Agent::Tcp(tcp) => {
                    match &mut tcp.workload {
                        TcpWorkload::Timeline(timeline) => timeline.stop(),
                        TcpWorkload::Bucket(source) => source.stop(),
                        _ => {}
                    }
                    tcp.source.connection.truncate();
                }
                Agent::Sections(sections) => {
                    sections.stop();
                    self.pump_sections(now, index, false);
                }
                Agent::Datagram(_) => {}
            }
            return;
        }
        match &mut flow.agent {
            Agent::Datagram(datagram) => {
                let first = match &datagram.source {
                    DatagramSource::Schedule(schedule) => schedule.peek(),
                    DatagramSource::Bucket(_) => now,
                };
                if datagram.is_drawn {
                    self.draw(index);
                } else {
                    self.queue
                        .schedule(Event::new(first, Class::Application, index * 2));
                }
            }
            Agent::Sections(_) => self.start_sections(now, index),
            Agent::Tcp(tcp) => {
                tcp.track_window(now, self.watch.warmup);
                let connection = &mut tcp.source.connection;
                match &mut tcp.workload {
                    TcpWorkload::Greedy => connection.write_without_end(),
                    TcpWorkload::File(bytes) => {
                        connection.write(*bytes);
                        connection.close();
                    }
                    TcpWorkload::Schedule { schedule, .. } => {
                        let first = Event::new(schedule.peek(), Class::Application, index * 2);
                        self.queue.schedule(first);
                    }
                    TcpWorkload::Timeline(timeline) => {
                        timeline.fill(now, connection);
                        let first = timeline.next_emission();
                        if !first.is_never() {
                            self.queue
                                .schedule(Event::new(first, Class::Application, index * 2));
                        }
                    }
                    TcpWorkload::Bucket(source) => {
                        let at = source.bucket.next_refill;
                        let first = Event::new(at, Class::Application, index * 2);
                        self.queue.schedule(first);
                    }
                }
                self.pump(now, index, false);
            }
        }
    }

    fn begin_measuring(&mut self) {
        self.is_measuring = true;
        for flow in &mut self.flows {
            match &mut flow.agent {
                Agent::Tcp(tcp) => {
                    let statistics = tcp.source.connection.statistics();
                    tcp.rtt_at_warmup = (statistics.rtt_samples, statistics.rtt_sum);
                }
                Agent::Sections(sections) => sections.begin_measuring(),
                Agent::Datagram(_) => {}
            }
        }
    }
}
