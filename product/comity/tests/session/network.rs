//! A lossy, reordering, duplicating network in virtual time, with a listener, callers and a
//! protocol core.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use comity::session::{
    BadParameters, Caller, CallerConfig, CallerCredentials, CallerEvent, Cipher, Ecn, Listener,
    ListenerConfig, ListenerCredentials, ListenerEvent, PassphraseKey, PathFrame, PresharedKey,
    Protocol, Randomness, Transmit,
};
use comity_units::{PacketNumber, Seed, Span, Time};

pub(crate) const LISTENER: &str = "192.0.2.1:5000";
pub(crate) const CALLER: &str = "198.51.100.7:4000";
pub(crate) const PROBE: Span = Span::from_millis(150);

// The types of packets, in the first four bits.
pub(crate) const INITIAL: u8 = 1;
pub(crate) const RETRY: u8 = 2;
pub(crate) const ANSWER: u8 = 3;
pub(crate) const DATA: u8 = 4;
pub(crate) const CONFIRM: u8 = 6;
pub(crate) const ACCEPT: u8 = 7;
pub(crate) const RESET: u8 = 8;

pub(crate) fn address(text: &str) -> SocketAddr {
    text.parse().expect("a socket address")
}

pub(crate) fn shared(byte: u8) -> PresharedKey {
    PresharedKey::new([byte; 32])
}

pub(crate) fn passphrase(byte: u8) -> PassphraseKey {
    PassphraseKey::new([byte; 32])
}

/// A core with its own small language: it sends each message once, and repeats a question until it
/// has an answer.
///
/// Payload: 0 nothing, 1 please answer, 2 + 8 bytes challenge, 3 + 8 bytes response, 4 + message.
#[derive(Debug, Default)]
pub(crate) struct Fake {
    next: u64,
    outgoing: VecDeque<Vec<u8>>,
    challenges: VecDeque<[u8; 8]>,
    /// Whether the question is due, by the timer.
    asks: bool,
    ask_at: Option<Time>,
    has_received: bool,
    answer: bool,
    frames: VecDeque<PathFrame>,
    pub(crate) received: Vec<Vec<u8>>,
    pub(crate) numbers: BTreeSet<u64>,
    pub(crate) duplicates: u32,
    /// What the handshake measured.
    pub(crate) round_trip: Option<Span>,
    pub(crate) paths: u32,
    pub(crate) closing: bool,
    /// Has announced its end, and still has something to deliver.
    pub(crate) has_ended: bool,
    /// Sends and reads nothing more, and still has something to deliver.
    pub(crate) silent: bool,
    /// Makes it panic at the next packet.
    pub(crate) panics: bool,
    pub(crate) peer_parameters: Vec<u8>,
    pub(crate) overhead: usize,
}

impl Fake {
    pub(crate) fn send(&mut self, message: &[u8]) {
        self.outgoing.push_back(message.to_vec());
    }

    /// Sends a challenge in a short packet.
    pub(crate) fn challenge(&mut self, token: u64) {
        self.challenges.push_back(token.to_be_bytes());
    }

    fn transmit(&mut self) -> Option<Transmit> {
        let number = PacketNumber::new(self.next);
        self.next += 1;
        Some(Transmit {
            number,
            ecn: Ecn::Capable0,
            leave_by: Time::MAX,
        })
    }
}

impl Protocol for Fake {
    fn on_established(&mut self, now: Time, round_trip: Option<Span>) {
        self.ask_at = Some(now);
        self.round_trip = round_trip;
    }

    fn on_packet(&mut self, _now: Time, number: PacketNumber, _ecn: Ecn, payload: &[u8]) {
        assert!(self.numbers.insert(number.get()), "{number} came twice");
        self.has_received = true;
        self.ask_at = None;
        match payload {
            [1, ..] => self.answer = true,
            [kind @ (2 | 3), rest @ ..] => {
                let bytes = *rest.first_chunk().expect("8 bytes");
                self.frames.push_back(match kind {
                    2 => PathFrame::Challenge(bytes),
                    _ => PathFrame::Response(bytes),
                });
            }
            [4, message @ ..] => self.received.push(message.to_vec()),
            _ => {}
        }
    }

    fn on_duplicate(&mut self) {
        self.duplicates += 1;
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        assert!(!self.panics, "a defect");
        if let Some(message) = self.outgoing.pop_front() {
            out.push(4);
            out.extend(message);
            return self.transmit();
        }
        if let Some(challenge) = self.challenges.pop_front() {
            out.push(2);
            out.extend(challenge);
            return self.transmit();
        }
        if core::mem::take(&mut self.asks) && !self.has_received {
            self.ask_at = Some(now + PROBE);
            out.extend([1, 0, 0, 0]);
            return self.transmit();
        }
        if core::mem::take(&mut self.answer) {
            out.extend([0; 4]);
            return self.transmit();
        }
        None
    }

    fn write_path_frame(
        &mut self,
        _now: Time,
        frame: PathFrame,
        length: usize,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let (kind, bytes) = match frame {
            PathFrame::Challenge(bytes) => (2, bytes),
            PathFrame::Response(bytes) => (3, bytes),
        };
        let start = out.len();
        out.push(kind);
        out.extend(bytes);
        out.resize(start + length, 0);
        self.transmit()
    }

    fn poll_path_frame(&mut self) -> Option<PathFrame> {
        self.frames.pop_front()
    }

    fn on_path_changed(&mut self, _now: Time, _from: SocketAddr, _to: SocketAddr) {
        self.paths += 1;
    }

    fn probe_timeout(&self) -> Span {
        PROBE
    }

    fn is_closed(&self) -> bool {
        self.closing
    }

    fn is_silent(&self) -> bool {
        self.closing || self.silent
    }

    fn has_ended(&self) -> bool {
        self.closing || self.has_ended
    }

    fn next_timer(&self) -> Time {
        self.ask_at.unwrap_or(Time::MAX)
    }

    fn on_timer(&mut self, now: Time) {
        assert!(self.ask_at.is_some_and(|at| at <= now), "no timer is due");
        self.ask_at = None;
        self.asks = true;
    }
}

/// The network's treatment of datagrams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) loss: f64,
    pub(crate) duplication: f64,
    pub(crate) delay: Span,
    /// The largest extra delay of a datagram; it reorders datagrams.
    pub(crate) jitter: Span,
}

impl Path {
    pub(crate) const GOOD: Self = Self {
        loss: 0.0,
        duplication: 0.0,
        delay: Span::from_millis(20),
        jitter: Span::ZERO,
    };
}

#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) path: Path,
    pub(crate) listener: Listener<Fake>,
    pub(crate) callers: Vec<(SocketAddr, Caller<Fake>)>,
    pub(crate) listener_events: Vec<ListenerEvent>,
    pub(crate) caller_events: Vec<(usize, CallerEvent)>,
    /// All sent datagrams in order, whether they arrived or not.
    pub(crate) log: Vec<Flight>,
    /// The bytes that arrived at the listener from an address, and that the listener sent to it.
    pub(crate) traffic: BTreeMap<SocketAddr, (u64, u64)>,
    /// Addresses whose traffic is lost in both directions.
    pub(crate) dead: BTreeSet<SocketAddr>,
    flights: BTreeMap<(Time, u64), Flight>,
    sequence: u64,
    random: Randomness,
}

pub(crate) fn opener() -> comity::session::Opener<Fake> {
    Box::new(|_, _, overhead, parameters| {
        if parameters == b"unacceptable" {
            return Err(BadParameters::Unfit);
        }
        Ok(Fake {
            peer_parameters: parameters.to_vec(),
            overhead,
            ..Fake::default()
        })
    })
}

pub(crate) fn listener_config(credentials: ListenerCredentials) -> ListenerConfig {
    ListenerConfig {
        cipher: Cipher::Aes128Gcm,
        instance: Some(b"the listener".to_vec()),
        ..ListenerConfig::new(credentials, b"listener's".to_vec())
    }
}

pub(crate) fn caller_config(credentials: CallerCredentials) -> CallerConfig {
    CallerConfig {
        cipher: Cipher::Aes128Gcm,
        // Paths here lose up to a third of all packets.
        timeout: Span::from_secs(10),
        ..CallerConfig::new(credentials, b"caller's".to_vec())
    }
}

impl World {
    pub(crate) fn new(seed: u64, path: Path, config: ListenerConfig) -> Self {
        let mut random = Randomness::seeded(Seed::new(seed));
        let now = Time::from_secs(1000);
        let listener = Listener::new(now, config, opener(), random.split()).expect("valid");
        Self {
            now,
            path,
            listener,
            callers: Vec::new(),
            listener_events: Vec::new(),
            caller_events: Vec::new(),
            log: Vec::new(),
            traffic: BTreeMap::new(),
            dead: BTreeSet::new(),
            flights: BTreeMap::new(),
            sequence: 0,
            random,
        }
    }

    /// With a shared secret at both ends.
    pub(crate) fn with_shared_secret(seed: u64, path: Path) -> Self {
        let mut world = Self::new(
            seed,
            path,
            listener_config(ListenerCredentials::Shared(shared(7))),
        );
        world.call(CALLER, caller_config(CallerCredentials::Shared(shared(7))));
        world
    }

    pub(crate) fn call(&mut self, from: &str, config: CallerConfig) -> usize {
        let caller = Caller::new(
            self.now,
            address(LISTENER),
            config,
            opener(),
            self.random.split(),
        )
        .expect("valid");
        self.callers.push((address(from), caller));
        self.callers.len() - 1
    }

    fn chance(&mut self) -> f64 {
        (u64::from_be_bytes(self.random.bytes()) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Puts a datagram on the network, as any host can.
    pub(crate) fn inject(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        let flight = Flight { from, to, bytes };
        self.log.push(flight.clone());
        if from == address(LISTENER) {
            self.traffic.entry(to).or_default().1 += flight.bytes.len() as u64;
        }
        if self.dead.contains(&from) || self.dead.contains(&to) {
            return;
        }
        let copies = if self.chance() < self.path.loss {
            0
        } else if self.chance() < self.path.duplication {
            2
        } else {
            1
        };
        for _ in 0..copies {
            let jitter = self.path.jitter.mul_f64(self.chance());
            let arrival = self.now + self.path.delay + jitter;
            self.sequence += 1;
            self.flights
                .insert((arrival, self.sequence), flight.clone());
        }
    }

    /// Lets all ends send what may leave now, and collects their events.
    pub(crate) fn drain(&mut self) {
        // A host collects datagrams in one buffer: each is appended.
        let mut out = b"others".to_vec();
        let before = out.len();
        while let Some(datagram) = self.listener.poll_transmit(self.now, &mut out) {
            assert_eq!(out.len(), before + datagram.length);
            let bytes = out.split_off(before);
            self.inject(address(LISTENER), datagram.to, bytes);
        }
        while let Some(event) = self.listener.poll_event() {
            self.listener_events.push(event);
        }
        for at in 0..self.callers.len() {
            while let Some(datagram) = self.callers[at].1.poll_transmit(self.now, &mut out) {
                assert_eq!(out.len(), before + datagram.length);
                let (from, bytes) = (self.callers[at].0, out.split_off(before));
                self.inject(from, datagram.to, bytes);
            }
            while let Some(event) = self.callers[at].1.poll_event() {
                self.caller_events.push((at, event));
            }
        }
        assert_eq!(out, b"others");
    }

    /// Runs until `until`, or until no event is left.
    pub(crate) fn run_until(&mut self, until: Time) {
        loop {
            self.drain();
            let arrival = self.flights.keys().next().map_or(Time::MAX, |key| key.0);
            let timers = self.callers.iter().map(|(_, caller)| caller.next_timer());
            let timer = timers
                .min()
                .unwrap_or(Time::MAX)
                .min(self.listener.next_timer());
            let next = arrival.min(timer);
            if next > until {
                self.now = until;
                return;
            }
            assert!(
                next >= self.now,
                "a timer at {next} in the past of {}",
                self.now
            );
            assert!(next > self.now || arrival == next || timer == next);
            self.now = next;
            if arrival <= timer {
                self.arrive();
            } else {
                self.on_timers();
            }
        }
    }

    pub(crate) fn run_for(&mut self, span: Span) {
        self.run_until(self.now + span);
    }

    fn on_timers(&mut self) {
        if self.listener.next_timer() <= self.now {
            self.listener.on_timer(self.now);
        }
        for (_, caller) in &mut self.callers {
            if caller.next_timer() <= self.now {
                caller.on_timer(self.now);
            }
        }
    }

    fn arrive(&mut self) {
        let Some((_, flight)) = self.flights.pop_first() else {
            return;
        };
        let Flight {
            from,
            to,
            mut bytes,
        } = flight;
        if to == address(LISTENER) {
            self.traffic.entry(from).or_default().0 += bytes.len() as u64;
            self.listener
                .handle_datagram(self.now, from, Ecn::NotCapable, &mut bytes);
            return;
        }
        for (_, caller) in self.callers.iter_mut().filter(|(own, _)| *own == to) {
            caller.handle_datagram(self.now, from, Ecn::NotCapable, &mut bytes);
        }
    }

    /// The core of a caller.
    pub(crate) fn caller_core(&mut self, at: usize) -> &mut Fake {
        let session = self.callers[at]
            .1
            .session_mut()
            .expect("the caller is connected");
        session.protocol_mut()
    }

    /// The core of the listener's only connection.
    pub(crate) fn listener_core(&mut self) -> &mut Fake {
        let ids: Vec<_> = self.listener.ids().collect();
        assert_eq!(ids.len(), 1, "connections of the listener");
        self.listener
            .protocol_mut(ids[0])
            .expect("it was just named")
    }

    /// Why a caller has failed.
    pub(crate) fn failure(&self, at: usize) -> Option<comity::session::CallError> {
        self.caller_events.iter().find_map(|event| match event {
            (who, CallerEvent::Failed(error)) if *who == at => Some(error.clone()),
            _ => None,
        })
    }

    /// The sent datagrams of a kind (the high 4 bits of the first byte).
    pub(crate) fn sent(&self, kind: u8) -> Vec<&Flight> {
        self.log
            .iter()
            .filter(|flight| flight.bytes[0] >> 4 == kind)
            .collect()
    }
}
