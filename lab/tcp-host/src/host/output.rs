//! Makes the packets that a host sends.

use comity_tcp::{Flags, Segment};
use comity_units::Time;

use super::Host;
use crate::id::ConnectionId;
use crate::packet;
use crate::socket::Search;
use crate::tuple::Tuple;

impl Host {
    /// Replaces `out` by the next packet to send. Returns `false` if there is nothing to send.
    /// Connections with data take turns.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> bool {
        loop {
            if let Some(packet) = self.packets.pop_front() {
                *out = packet;
                self.statistics.sent += 1;
                return true;
            }
            let Some(id) = self.ready.pop_front() else {
                return false;
            };
            let Some(socket) = self.sockets.get_mut(&id) else {
                continue;
            };
            if socket.end.is_some() {
                socket.is_ready = false;
                continue;
            }
            match socket.poll_transmit(now) {
                None => match socket.search(now) {
                    None => {
                        socket.is_ready = false;
                        self.settle(now, id);
                    }
                    Some(Search::Found(mtu)) => {
                        let peer = socket.tuple.remote.ip();
                        self.paths.learn(now, peer, mtu);
                        self.ready.push_front(id);
                    }
                    Some(Search::Probe(segment)) => {
                        self.statistics.path_probes += 1;
                        self.push_segment(id, &segment);
                        self.ready.push_front(id);
                    }
                },
                Some(Err(_)) => {
                    self.statistics.suppressed_acks += 1;
                    self.ready.push_front(id);
                }
                Some(Ok(segment)) => {
                    self.ready.push_back(id);
                    if segment.flags.contains(Flags::RST) {
                        self.statistics.resets += 1;
                    }
                    if socket.fits(&segment) {
                        if self.write_packet(id, &segment, out) {
                            self.statistics.sent += 1;
                            return true;
                        }
                    } else {
                        let parts = socket.cut(segment);
                        self.statistics.cut += 1;
                        for part in &parts {
                            self.push_segment(id, part);
                        }
                    }
                }
            }
        }
    }

    /// Writes the packet of a segment. Returns `false` if it cannot be written.
    fn write_packet(&self, id: ConnectionId, segment: &Segment, out: &mut Vec<u8>) -> bool {
        let Some(socket) = self.sockets.get(&id) else {
            return false;
        };
        let Some(payload) = socket.payload(segment) else {
            debug_assert!(false, "{segment:?} has bytes that nobody submitted");
            return false;
        };
        let number = socket.number();
        let result = packet::write(&socket.tuple, segment, number, payload, out);
        debug_assert!(result.is_ok(), "{result:?}: {segment:?}");
        result.is_ok()
    }

    /// Sends a segment of a connection before all others.
    pub(super) fn push_segment(&mut self, id: ConnectionId, segment: &Segment) {
        let mut packet = Vec::new();
        if self.write_packet(id, segment, &mut packet) {
            self.packets.push_back(packet);
        }
    }

    /// Sends the reset of a connection.
    pub(super) fn push_reset(&mut self, id: ConnectionId) {
        let Some(socket) = self.sockets.get(&id) else {
            return;
        };
        let reset = socket.reset();
        self.statistics.resets += 1;
        self.push_segment(id, &reset);
    }

    /// Answers a segment of an unknown connection with a reset (RFC 9293, section 3.10.7.1), unless
    /// it is itself a reset, or too many resets were sent within a second.
    pub(super) fn refuse(&mut self, now: Time, tuple: &Tuple, segment: &Segment) {
        if segment.flags.contains(Flags::RST)
            || !self.resets.take(now, self.config.resets_per_second)
        {
            return;
        }
        let reset = if segment.flags.contains(Flags::ACK) {
            Segment {
                sequence: segment.acknowledgement,
                flags: Flags::RST,
                ..Segment::default()
            }
        } else {
            Segment {
                acknowledgement: segment.sequence_end(),
                flags: Flags::RST | Flags::ACK,
                ..Segment::default()
            }
        };
        let mut packet = Vec::new();
        if packet::write(tuple, &reset, 0, [&[], &[]], &mut packet).is_ok() {
            self.statistics.resets += 1;
            self.packets.push_back(packet);
        }
    }
}
