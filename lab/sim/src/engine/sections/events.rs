//! The events of a flow of sections.

use comity_transport::datagram::Event as ConnectionEvent;
use comity_transport::timeline::Delivery;
use comity_units::Time;

use super::super::Engine;
use super::super::event::{Class, Event};
use super::super::flow::Agent;
use super::super::observe::{FlowEventKind, Observer, SectionEvent};
use super::super::packet::{Body, Header, SectionPacket, Slot};
use crate::ledger::Settled;

impl<O: Observer> Engine<O> {
    pub(in crate::engine) fn start_sections(&mut self, now: Time, index: u32) {
        let Agent::Sections(sections) = &self.flows[index as usize].agent else {
            return;
        };
        let first = sections.next_emission();
        if !first.is_never() {
            self.queue
                .schedule(Event::new(first, Class::Application, index * 2));
        }
        self.pump_sections(now, index, true);
        self.pump_sections(now, index, false);
    }

    /// Handles a packet that has reached its end of a connection.
    pub(in crate::engine) fn receive_sections(
        &mut self,
        now: Time,
        slot: Slot,
        index: u32,
        at_destination: bool,
    ) {
        let flow = &mut self.flows[index as usize];
        let (Agent::Sections(sections), Body::Sections(packet)) =
            (&mut flow.agent, *self.arena.body(slot))
        else {
            return;
        };
        if at_destination {
            if now >= self.watch.warmup {
                let sent_at = self.arena.header(slot).sent_at;
                flow.counts.delay.record(now.saturating_since(sent_at));
                sections.arrivals.record(now);
            }
        } else {
            flow.hash.add(now.as_nanos(), packet.number.get() as u32);
        }
        let payload = self.arena.payload(slot);
        let connection = &mut sections.end(at_destination).connection;
        // A violation by the peer closes the connection; an event of the connection reports it.
        let _ = connection.on_packet(now, packet.number, packet.ecn, payload);
        self.show_received(index, now, slot, 0);
        self.arena.free(slot);
        self.pump_sections(now, index, at_destination);
    }

    pub(in crate::engine) fn on_sections_timer(
        &mut self,
        now: Time,
        index: u32,
        at_destination: bool,
    ) {
        let Agent::Sections(sections) = &mut self.flows[index as usize].agent else {
            return;
        };
        let end = sections.end(at_destination);
        if !end.alarm.take(now) {
            return;
        }
        if end.connection.next_timer() > now {
            // The timer has moved later.
            self.arm_sections(now, index, at_destination);
            return;
        }
        end.alarm.ring(now);
        end.connection.on_timer(now);
        if O::ACTIVE {
            self.show_flow(index, now, at_destination, FlowEventKind::Timer);
        }
        // The endpoint may request another turn at once: an ACK carries one report, and several may
        // be due.
        self.pump_sections(now, index, at_destination);
    }

    /// Lets an end deliver sections that are due and send what it may, and arms its timer.
    pub(in crate::engine) fn pump_sections(&mut self, now: Time, index: u32, at_destination: bool) {
        self.hand_sections_over(now, index, at_destination);
        loop {
            let flow = &mut self.flows[index as usize];
            let Agent::Sections(sections) = &mut flow.agent else {
                return;
            };
            if !at_destination {
                sections.fill(now);
            }
            let connection = &mut sections.end(at_destination).connection;
            let Some(sent) = connection.poll_transmit(now, &mut self.arena.draft) else {
                break;
            };
            let mut wire = sent.payload + connection.config().overhead;
            let path = if at_destination {
                wire = sections.acknowledgement.unwrap_or(wire);
                flow.counts.acks += 1;
                flow.backward
            } else {
                flow.counts.sent_packets += 1;
                flow.counts.sent_wire_bytes += u64::from(wire);
                flow.forward
            };
            let header = Header::new(now, index, wire, path.start);
            let packet = SectionPacket {
                number: sent.number,
                ecn: sent.ecn,
            };
            let slot = self.arena.insert_draft(header, packet);
            self.show_sent(index, now, slot);
            self.carry(now, slot);
        }
        self.arm_sections(now, index, at_destination);
    }

    /// Delivers sections and gaps of an end to its application.
    fn hand_sections_over(&mut self, now: Time, index: u32, at_destination: bool) {
        loop {
            let flow = &mut self.flows[index as usize];
            let Agent::Sections(sections) = &mut flow.agent else {
                return;
            };
            let connection = &mut sections.end(at_destination).connection;
            let Some(delivery) = connection.poll_delivery(now) else {
                break;
            };
            match delivery {
                Delivery::Section(received) => {
                    let (section, bytes) = (received.meta.section, u64::from(received.meta.length));
                    let completed = received.completed;
                    let settled = sections.ledger.on_section(section, completed);
                    flow.hash.add(completed.as_nanos(), section.0 as u32);
                    flow.counts.delivered_total += bytes;
                    if now >= self.watch.warmup {
                        flow.counts.delivered_measured += bytes;
                    }
                    if O::ACTIVE {
                        let delivered = FlowEventKind::Delivered(bytes);
                        self.show_flow(index, now, at_destination, delivered);
                        self.show_settled(index, now, settled, Some(completed));
                    }
                }
                Delivery::Gap(gap) => {
                    let mut missing = Vec::new();
                    for section in gap.sections() {
                        flow.hash.add(!now.as_nanos(), section.0 as u32);
                        let settled = sections.ledger.on_gap(section, gap.reason);
                        missing.extend(settled.filter(|_| O::ACTIVE));
                    }
                    for settled in missing {
                        self.show_settled(index, now, Some(settled), None);
                    }
                }
            }
        }
        let Agent::Sections(sections) = &mut self.flows[index as usize].agent else {
            return;
        };
        while let Some(event) = sections.end(at_destination).connection.poll_event() {
            match event {
                ConnectionEvent::Closed(_) => {
                    sections.closed_at.get_or_insert(now);
                }
                ConnectionEvent::TargetBitrate(target) if !at_destination => {
                    sections.target = Some(target);
                }
                _ => {}
            }
        }
    }

    /// Shows the fate of a section.
    fn show_settled(
        &mut self,
        index: u32,
        now: Time,
        settled: Option<Settled>,
        completed: Option<Time>,
    ) {
        if O::ACTIVE
            && let Some(settled) = settled
        {
            let event = SectionEvent {
                now,
                frame_type: settled.frame_type,
                bytes: settled.bytes,
                deadline: settled.deadline,
                completed,
            };
            self.observer.on_section(index, &event);
        }
    }

    /// Ensures that an end's next timer has an event at or before its time.
    fn arm_sections(&mut self, now: Time, index: u32, at_destination: bool) {
        let Agent::Sections(sections) = &mut self.flows[index as usize].agent else {
            return;
        };
        let end = sections.end(at_destination);
        if let Some(due) = end.alarm.set(now, end.connection.next_timer()) {
            let source = index * 2 + u32::from(at_destination);
            self.queue.schedule(Event::new(due, Class::Timer, source));
        }
    }
}
