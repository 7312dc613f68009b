//! Handles the packets that arrive at a host.

use std::net::{IpAddr, SocketAddr};

use comity_tcp::codec::DecodeError;
use comity_tcp::{Flags, Segment, State};
use comity_units::{SeqNo, Time};

use super::Host;
use super::listener::Listener;
use crate::error::End;
use crate::icmp::{self, Problem};
use crate::id::{ConnectionId, ListenerId};
use crate::packet::{self, Arrived, Packet, Protocol, Unreadable};
use crate::socket::Owner;
use crate::tuple::Tuple;

impl Host {
    /// Handles an IP packet that arrived. It may contain anything.
    pub fn handle_packet(&mut self, now: Time, bytes: &[u8]) {
        self.statistics.received += 1;
        let packet = match Packet::read(bytes) {
            Ok(packet) => packet,
            Err(Unreadable::Malformed) => return self.statistics.dropped_malformed_ip += 1,
            Err(Unreadable::Fragment) => return self.statistics.dropped_fragments += 1,
        };
        if !self.is_local(packet.destination) || !self.can_be_peer(packet.source) {
            // An error of the network may come from any router, but its destination is the host.
            let is_error = packet.protocol == Protocol::Icmp && self.is_local(packet.destination);
            if !is_error {
                return self.statistics.dropped_address += 1;
            }
        }
        match packet.protocol {
            Protocol::Tcp => match packet::segment(&packet) {
                Ok(arrived) => self.on_segment(now, &arrived),
                Err(DecodeError::Checksum { .. }) => self.statistics.dropped_checksum += 1,
                Err(_) => self.statistics.dropped_malformed_tcp += 1,
            },
            Protocol::Icmp => self.on_error(now, &packet),
            Protocol::Other => self.statistics.dropped_protocol += 1,
        }
    }

    pub(super) fn is_local(&self, address: IpAddr) -> bool {
        self.config.addresses.contains(&address)
    }

    /// Whether a peer can have this address, which must be that of a single other host.
    pub(super) fn can_be_peer(&self, address: IpAddr) -> bool {
        let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
        !address.is_unspecified()
            && !address.is_multicast()
            && !is_broadcast
            && !self.is_local(address)
    }

    fn on_segment(&mut self, now: Time, arrived: &Arrived<'_>) {
        let Arrived {
            tuple,
            ref segment,
            payload,
            skipped_options,
        } = *arrived;
        self.statistics.skipped_options += u64::from(skipped_options);
        let Some(&id) = self.by_tuple.get(&tuple) else {
            return self.on_stranger(now, tuple, segment);
        };
        let listener = self.listener_of(tuple.local);
        let Some(socket) = self.sockets.get_mut(&id) else {
            debug_assert!(false, "{tuple:?} without a connection");
            return;
        };
        if socket.is_replaced_by(segment)
            && let Some(listener) = listener
        {
            return self.replace(now, id, listener, segment);
        }
        if socket.is_over() {
            // The connection waits only until its last segments have been sent.
            return self.on_stranger(now, tuple, segment);
        }
        self.statistics.accepted += 1;
        socket.on_segment(now, segment, payload);
        self.mark_ready(id);
        self.settle(now, id);
    }

    /// Replaces a connection in TIME-WAIT by that of a connection request.
    fn replace(&mut self, now: Time, id: ConnectionId, listener: ListenerId, segment: &Segment) {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        let (tuple, after) = (socket.tuple, socket.next_sequence + (1 << 16));
        socket.is_replaced = true;
        self.by_tuple.remove(&tuple);
        self.settle(now, id);
        self.request(now, tuple, listener, segment, Some(after));
    }

    /// Handles a segment of an unknown connection.
    fn on_stranger(&mut self, now: Time, tuple: Tuple, segment: &Segment) {
        let flags = segment.flags;
        let is_request =
            flags.contains(Flags::SYN) && !flags.intersects(Flags::ACK | Flags::RST | Flags::FIN);
        match self.listener_of(tuple.local) {
            Some(listener) if is_request => self.request(now, tuple, listener, segment, None),
            _ => {
                self.statistics.dropped_unknown += 1;
                self.refuse(now, &tuple, segment);
            }
        }
    }

    fn listener_of(&self, local: SocketAddr) -> Option<ListenerId> {
        self.by_address.get(&local).copied()
    }

    /// Handles a request to open a connection to a listener.
    fn request(
        &mut self,
        now: Time,
        tuple: Tuple,
        listener: ListenerId,
        segment: &Segment,
        after: Option<SeqNo>,
    ) {
        let has_room = self
            .listeners
            .get(&listener)
            .is_some_and(|listener| listener.has_room());
        let surplus = { self.listeners.get(&listener) }.and_then(Listener::surplus);
        if has_room && surplus.is_some() {
            self.end_oldest_half_open(listener);
        }
        // Without an answer, the peer tries again. A reset would be final.
        let id = match has_room {
            true => {
                let request = Some(&segment.options);
                self.begin(now, tuple, Owner::Listener(listener), after, request)
            }
            false => None,
        };
        let (Some(id), Some(listener)) = (id, self.listeners.get_mut(&listener)) else {
            self.statistics.dropped_backlog += 1;
            return;
        };
        listener.on_request(id);
        self.statistics.accepted += 1;
        self.statistics.opened_by_peer += 1;
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.on_segment(now, segment, &[]);
        }
        self.mark_ready(id);
        self.settle(now, id);
    }

    /// Handles an ICMP message.
    fn on_error(&mut self, now: Time, packet: &Packet<'_>) {
        let error = icmp::read(packet);
        let known = error.and_then(|error| {
            let id = *self.by_tuple.get(&error.tuple)?;
            let socket = self.sockets.get(&id)?;
            socket.is_in_flight(error.sequence).then_some((error, id))
        });
        let Some((error, id)) = known else {
            self.statistics.dropped_protocol += 1;
            return;
        };
        self.statistics.icmp += 1;
        match error.problem {
            Problem::TooBig { mtu } => self.limit_path(now, error.tuple.remote.ip(), mtu),
            Problem::Unreachable { is_final } => {
                if let Some(socket) = self.sockets.get_mut(&id) {
                    socket.is_unreachable = true;
                    if is_final && socket.tcp.state() == State::SynSent {
                        socket.end = Some(End::Unreachable);
                    }
                }
                self.settle(now, id);
            }
        }
    }

    /// Limits the path to `peer` to packets of `mtu` bytes.
    fn limit_path(&mut self, now: Time, peer: IpAddr, mtu: u32) {
        if mtu >= self.paths.mtu(now, peer, self.config.mtu) {
            return;
        }
        self.paths.learn(now, peer, mtu);
        for socket in self.sockets.values_mut() {
            if socket.tuple.remote.ip() == peer {
                socket.limit_mtu(now, mtu);
            }
        }
    }
}
