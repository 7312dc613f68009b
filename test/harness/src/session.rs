//! A caller and a listener with the deadline transport in them, and a network under the control of
//! the input.
//!
//! An input is a list of steps. Datagrams are delivered in any order, more than once, to either
//! end, from any address, truncated, extended and changed; strangers send packets of their own;
//! time passes.
//!
//! Checks: no changed datagram is accepted, and each section is delivered at most once, with the
//! bytes of its sender. Neither end sends more than three times the received bytes to an address
//! without proof that it receives. The listener stays within its limits.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::LazyLock;

use bytes::Bytes;
use comity::parts::{Seed, Time};
use comity::session::{
    Caller, CallerConfig, CallerCredentials, Ecn, Listener, ListenerConfig, ListenerCredentials,
    PresharedKey, Randomness,
};
use comity::transport::{Delivery, Outgoing, Transport};
use comity::{Config, Deliver, Importance, Span, StreamId};

use crate::source::Source;

const START: Time = Time::from_secs(1_000);
const MAX_STEPS: usize = 300;
/// The maximum number of datagrams kept for another delivery.
const MAX_KEPT: usize = 256;
/// The maximum number of bytes that one end may send at one instant: a flight that fills every
/// window of these inputs many times.
const MAX_AT_ONCE: usize = 4 << 20;

static OPTIONS: LazyLock<Config> = LazyLock::new(|| {
    Config::builder()
        .preshared_key(PresharedKey::new([1; 32]))
        .deliver(Deliver::Early)
        .build()
        .expect("valid options")
});

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Caller,
    Listener,
}

/// A datagram as it was sent.
struct Sent {
    by: End,
    to: SocketAddr,
    bytes: Vec<u8>,
}

struct World {
    now: Time,
    caller: Caller<Transport>,
    listener: Listener<Transport>,
    /// Where the caller is at present.
    home: SocketAddr,
    kept: Vec<Sent>,
    /// The bytes that an end received from an address, and sent to it.
    traffic: BTreeMap<(End, SocketAddr), (usize, usize)>,
    /// The addresses at which an end has proof that its peer receives.
    proved: BTreeSet<(End, SocketAddr)>,
    submitted: [u64; 2],
    delivered: [BTreeSet<u64>; 2],
}

fn address(which: u8) -> SocketAddr {
    ([10, 0, 0, which % 8], 4_000).into()
}

const LISTENER: u8 = 7;

/// Byte `at` of a section.
fn byte(section: u64, at: usize) -> u8 {
    (section as usize * 31 + at * 7) as u8
}

/// One input.
pub fn check(input: &[u8]) {
    let mut source = Source::new(input);
    let mut world = World::new(source.u8());
    for _ in 0..MAX_STEPS {
        if source.is_empty() {
            break;
        }
        world.step(&mut source);
        world.settle();
        world.check();
    }
}

impl World {
    fn new(bits: u8) -> Self {
        let options = OPTIONS.clone();
        let seed = Seed::new(u64::from(bits));
        let mut randomness = Randomness::seeded(seed);
        let mut parameters = Vec::new();
        let own = options.parameters();
        own.encode(&mut parameters).expect("our own parameters");
        let key = || PresharedKey::new([1; 32]);
        let credentials = CallerCredentials::Shared(key());
        let caller = Caller::new(
            START,
            address(LISTENER),
            CallerConfig::new(credentials, parameters.clone()),
            Transport::opener(options.clone(), seed.derive("caller")),
            randomness.split(),
        )
        .expect("a valid configuration");
        let credentials = ListenerCredentials::Shared(key());
        let config = ListenerConfig {
            max_connections: 4,
            ..ListenerConfig::new(credentials, parameters)
        };
        let opener = Transport::opener(options, seed.derive("listener"));
        let listener = Listener::new(START, config, opener, randomness.split());
        Self {
            now: START,
            caller,
            listener: listener.expect("a valid configuration"),
            home: address(0),
            kept: Vec::new(),
            traffic: BTreeMap::new(),
            // The caller initiates, so the address of the listener counts as proved.
            proved: BTreeSet::from([(End::Caller, address(LISTENER))]),
            submitted: [0; 2],
            delivered: [BTreeSet::new(), BTreeSet::new()],
        }
    }

    fn step(&mut self, source: &mut Source<'_>) {
        match source.u8() % 16 {
            // A well-behaved network, for a while.
            0..=3 => self.carry(usize::from(source.u8() % 8) + 1),
            4 => self.pass(Span::from_micros(u64::from(source.u16()) * 10)),
            5 => self.pass(Span::from_millis(u64::from(source.u8()) * 20)),
            6 => {
                let next = self.caller.next_timer().min(self.listener.next_timer());
                if next < self.now + Span::from_secs(10) {
                    self.pass(next.saturating_since(self.now));
                }
            }
            7 => self.submit(0, usize::from(source.u8()) * 20 + 1),
            8 => self.submit(1, usize::from(source.u8()) * 20 + 1),
            // The caller moves.
            9 => self.home = address(source.u8() % 4),
            10..=13 => self.attack(source),
            _ => self.stranger(source),
        }
    }

    /// Delivers this many of the oldest datagrams that have not been delivered.
    fn carry(&mut self, count: usize) {
        for _ in 0..count {
            if self.kept.is_empty() {
                return;
            }
            let Sent { by, to, bytes } = self.kept.remove(0);
            let from = match by {
                End::Caller => self.home,
                End::Listener => address(LISTENER),
            };
            if by == End::Listener && to != self.home {
                continue;
            }
            self.deliver(by, from, bytes);
            self.settle();
        }
    }

    /// To the end other than the alleged sender.
    fn deliver(&mut self, by: End, from: SocketAddr, mut bytes: Vec<u8>) {
        let (now, ecn) = (self.now, Ecn::Capable0);
        let to = match by {
            End::Caller => End::Listener,
            End::Listener => End::Caller,
        };
        self.traffic.entry((to, from)).or_default().0 += bytes.len();
        match to {
            End::Caller => self.caller.handle_datagram(now, from, ecn, &mut bytes),
            End::Listener => self.listener.handle_datagram(now, from, ecn, &mut bytes),
        }
    }

    /// Delivers a duplicate of a datagram in flight out of order, possibly changed.
    fn attack(&mut self, source: &mut Source<'_>) {
        let which = usize::from(source.u8());
        let Some(sent) = self.kept.get(which % self.kept.len().max(1)) else {
            return;
        };
        let (by, mut bytes) = (sent.by, sent.bytes.clone());
        let from = match by {
            End::Caller => address(source.u8() % 7),
            End::Listener => address(LISTENER - source.u8() % 2),
        };
        match source.u8() % 6 {
            0 => bytes.truncate(usize::from(source.u16()) % (bytes.len() + 1)),
            1 => bytes.resize(bytes.len() + usize::from(source.u16()), 0),
            2 => {
                let at = usize::from(source.u16()) % bytes.len().max(1);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= source.u8().max(1);
                }
            }
            3 => {
                // The header, byte by byte.
                let at = usize::from(source.u8()) % 32;
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = source.u8();
                }
            }
            _ => {}
        }
        let by = match source.u8() {
            // Reflected to who sent it.
            0 if by == End::Caller => End::Listener,
            0 => End::Caller,
            _ => by,
        };
        self.deliver(by, from, bytes);
    }

    /// A stranger who knows only the format.
    fn stranger(&mut self, source: &mut Source<'_>) {
        let by = match source.u8() % 4 {
            0 => End::Listener,
            _ => End::Caller,
        };
        let from = address(source.u8() % 7);
        let kind = source.u8();
        let mut bytes = vec![kind];
        match source.u8() % 3 {
            0 => {}
            // To an existing connection.
            1 => {
                let id = match by {
                    End::Caller => self.listener.ids().next(),
                    End::Listener => Some(self.caller.id()),
                };
                bytes.extend(id.map_or(0, |id| id.get()).to_be_bytes());
            }
            _ => {
                bytes.extend(1_u32.to_be_bytes());
                bytes.extend(self.caller.id().get().to_be_bytes());
            }
        }
        bytes.extend(source.counted());
        if source.u8() & 1 == 0 {
            bytes.resize(bytes.len().max(1_200), 0);
        }
        self.deliver(by, from, bytes);
    }

    fn pass(&mut self, span: Span) {
        let until = self.now + span;
        for _ in 0..64 {
            let next = self.caller.next_timer().min(self.listener.next_timer());
            if next > until {
                break;
            }
            self.now = self.now.max(next);
            self.on_timers();
            self.settle();
        }
        self.now = until;
        self.on_timers();
    }

    fn on_timers(&mut self) {
        if self.caller.next_timer() <= self.now {
            self.caller.on_timer(self.now);
        }
        if self.listener.next_timer() <= self.now {
            self.listener.on_timer(self.now);
        }
    }

    fn submit(&mut self, end: usize, length: usize) {
        let now = self.now;
        let number = self.submitted[end];
        let payload: Vec<u8> = (0..length).map(|at| byte(number, at)).collect();
        let section = Outgoing {
            stream: StreamId(0),
            importance: Importance(1),
            source_time: now,
            deadline: now + Span::from_millis(400),
            needs: None,
            payload: Bytes::from(payload),
        };
        let session = match end {
            0 => self.caller.session_mut(),
            _ => {
                // Only to the genuine caller: strangers have no key.
                let id = self.confirmed();
                id.and_then(|id| self.listener.session_mut(id))
            }
        };
        if let Some(session) = session
            && session.protocol_mut().submit(now, section).is_ok()
        {
            self.submitted[end] += 1;
        }
        if let Some(id) = self.confirmed() {
            self.listener.make_ready(id);
        }
    }

    fn confirmed(&self) -> Option<comity::session::ConnectionId> {
        self.listener.ids().find(|id| {
            let session = self.listener.session(*id);
            session.is_some_and(|session| session.is_confirmed())
        })
    }

    /// Both ends do all that is possible at this moment.
    fn settle(&mut self) {
        let ids: Vec<_> = self.listener.ids().collect();
        for id in ids {
            if let Some(session) = self.listener.session_mut(id) {
                take(
                    session.protocol_mut(),
                    self.now,
                    self.submitted[0],
                    &mut self.delivered[1],
                );
                if session.is_confirmed() {
                    self.proved.insert((End::Listener, session.address()));
                }
            }
        }
        if let Some(session) = self.caller.session_mut() {
            self.proved.insert((End::Caller, session.address()));
            take(
                session.protocol_mut(),
                self.now,
                self.submitted[1],
                &mut self.delivered[0],
            );
        }
        let (mut out, mut total) = (Vec::new(), 0);
        while let Some(datagram) = self.listener.poll_transmit(self.now, &mut out) {
            assert_eq!(datagram.length, out.len());
            total += out.len();
            self.keep(End::Listener, datagram.to, core::mem::take(&mut out));
            assert!(total <= MAX_AT_ONCE, "datagrams without end");
        }
        out.clear();
        while let Some(datagram) = self.caller.poll_transmit(self.now, &mut out) {
            assert_eq!(datagram.length, out.len());
            total += out.len();
            self.keep(End::Caller, datagram.to, core::mem::take(&mut out));
            assert!(total <= MAX_AT_ONCE, "datagrams without end");
        }
        while self.listener.poll_event().is_some() {}
        while self.caller.poll_event().is_some() {}
    }

    fn keep(&mut self, by: End, to: SocketAddr, bytes: Vec<u8>) {
        self.traffic.entry((by, to)).or_default().1 += bytes.len();
        if self.kept.len() < MAX_KEPT {
            self.kept.push(Sent { by, to, bytes });
        }
    }

    fn check(&self) {
        assert!(self.listener.connections() <= 4);
        for (way, (received, sent)) in &self.traffic {
            let is_bounded = *sent <= 3 * received || self.proved.contains(way);
            assert!(is_bounded, "{sent} bytes for {received} to {way:?}");
        }
    }
}

/// Collects the deliveries of a connection.
fn take(transport: &mut Transport, now: Time, submitted: u64, delivered: &mut BTreeSet<u64>) {
    while let Some(delivery) = transport.poll_delivery(now) {
        let section = match &delivery {
            Delivery::Section(received) => {
                let section = received.meta.section.0;
                let mut bytes = received.payload.iter().enumerate();
                assert!(bytes.all(|(at, &got)| got == byte(section, at)));
                section
            }
            Delivery::Gap(gap) => gap.section.0,
        };
        assert!(section < submitted, "nobody sent section {section}");
        assert!(delivered.insert(section), "section {section} came twice");
    }
    while transport.poll_event(now).is_some() {}
}
