//! The transport as the protocol of a session.

use std::net::SocketAddr;

use comity_congestion::Controller;
use comity_transport::datagram::Connection;
use comity_transport::wire::CloseCode;
use comity_units::{PacketNumber, Span, Time};

use super::Transport;
use crate::contain::contain;
use crate::session::{Ecn, Holder, PathFrame, Protocol, PublicKey, Transmit};
use crate::trace::{PacketRecord, Record};

/// The pause before a connection that had nothing to send is served again, if its timer is already
/// due.
const SOON: Span = Span::from_micros(100);

impl Protocol for Transport {
    fn on_peer(&mut self, key: Option<PublicKey>, address: SocketAddr) {
        self.memory.set_peer(Holder::new(key, address.ip()));
    }

    fn on_established(&mut self, now: Time, round_trip: Option<Span>) {
        self.opened_at = self.advance(now);
        if let Some(round_trip) = round_trip {
            self.connection.set_round_trip(round_trip);
        }
        // The frame elicits an acknowledgement, and the probe timer retransmits it until one comes.
        self.connection.ping();
    }

    fn on_packet(&mut self, now: Time, number: PacketNumber, ecn: Ecn, payload: &[u8]) {
        let now = self.advance(now);
        let before = self.connection.received_packets();
        self.connection.set_memory_limit(self.memory.limit());
        // A violation closes the connection and is the reason of the close.
        let _ = self.connection.on_packet(now, number, ecn, payload);
        self.count_memory();
        // Duplicates, refused packets and packets after the end do not count.
        if self.trace.is_some() && self.connection.received_packets() > before {
            let shorter = self.shorter;
            self.trace(now, |_, connection| {
                let overhead = connection.config().overhead - shorter;
                Record::Received(PacketRecord::read(number, payload, overhead))
            });
            self.trace_state(now);
        }
    }

    fn on_duplicate(&mut self) {
        self.connection.on_duplicate();
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        let now = self.advance(now);
        // Only packets that waited for the pacer alone have a planned time.
        let planned = match self.is_paced {
            true => self.connection.release_at(),
            false => None,
        };
        let backlog = self.connection.backlog();
        let start = out.len();
        let Some(sent) = self.poll_packet(now, out) else {
            match self.connection.release_at() {
                None => self.is_paced = false,
                Some(time) if time > now => self.is_paced = true,
                Some(_) => {}
            }
            self.idle_at = now;
            return None;
        };
        let carries_data = self.connection.backlog() < backlog;
        let planned = planned.filter(|time| carries_data && *time <= now);
        self.departures.plan(planned);
        self.trace_sent(
            now,
            sent.number,
            out.get(start..).unwrap_or_default(),
            planned,
        );
        Some(Transmit {
            number: sent.number,
            ecn: sent.ecn,
            leave_by: sent.leave_by,
        })
    }

    fn write_path_frame(
        &mut self,
        now: Time,
        frame: PathFrame,
        length: usize,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let now = self.advance(now);
        let start = out.len();
        let sent = self.connection.write_path_frame(now, frame, length, out)?;
        let payload = out.get(start..).unwrap_or_default();
        self.trace_sent(now, sent.number, payload, None);
        Some(Transmit {
            number: sent.number,
            ecn: Ecn::NotCapable,
            leave_by: sent.leave_by,
        })
    }

    fn poll_path_frame(&mut self) -> Option<PathFrame> {
        self.connection.poll_path_frame()
    }

    fn on_path_changed(&mut self, now: Time, from: SocketAddr, to: SocketAddr) {
        let now = self.advance(now);
        let another_host = from.ip().to_canonical() != to.ip().to_canonical();
        if !another_host || !self.moves.begins_afresh(now) {
            return self.connection.on_kept_path(another_host);
        }
        let fresh: Result<Box<dyn Controller>, _> = self
            .controller
            .build(&self.setup, &self.controller_parameters);
        if let Ok(controller) = fresh {
            self.connection.on_new_path(now, controller);
        }
    }

    fn probe_timeout(&self) -> Span {
        self.connection.probe_timeout()
    }

    fn is_closed(&self) -> bool {
        self.connection.is_closed() && !self.is_stalled && !self.connection.has_deliveries()
    }

    fn is_silent(&self) -> bool {
        self.connection.is_closed()
    }

    fn has_ended(&self) -> bool {
        !self.connection.is_open()
    }

    fn next_timer(&self) -> Time {
        let next = if self.is_stalled {
            self.connection.next_protocol_timer()
        } else {
            self.connection.next_timer()
        };
        // If the timer is due and nothing can be sent, the connection waits for something other
        // than time. The thread must not spin.
        if next <= self.idle_at {
            self.idle_at + SOON
        } else {
            next
        }
    }

    fn on_timer(&mut self, now: Time) {
        let now = self.advance(now);
        self.connection.on_timer(now);
        self.trace_state(now);
    }

    fn fail(&mut self, now: Time) {
        if self.failed.is_some() {
            return;
        }
        let now = self.advance(now);
        let last = contain(|| self.connection.statistics()).unwrap_or_default();
        self.failed = Some(Box::new(last));
        let config = *self.connection.config();
        let controller = self
            .controller
            .build(&self.setup, &self.controller_parameters)
            .ok();
        let closed = controller.and_then(|controller| {
            let delay = self.peer.max_ack_delay;
            Connection::new(config, delay, controller, None, now).ok()
        });
        let mut closed = closed.expect("the same arguments opened the connection");
        closed.close(now, CloseCode::INTERNAL, "");
        self.is_stalled = false;
        self.is_finishing = false;
        self.departures.forget();
        drop(std::mem::replace(&mut self.connection, closed));
        self.count_memory();
    }

    fn has_failed(&self) -> bool {
        self.failed.is_some()
    }
}
