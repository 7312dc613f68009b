//! One listener and all its callers in virtual time, without sockets: memory and cost per peer.

use std::collections::{BTreeSet, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use bytes::Bytes;
use comity::parts::{Seed, Time};
use comity::session::{
    Caller, CallerConfig, CallerCredentials, ConnectionId, Ecn, Listener, ListenerConfig,
    ListenerCredentials, PresharedKey, Randomness, Session,
};
use comity::transport::{Delivery, Outgoing, Transport};
use comity::{Config, Importance, Span, StreamId};
use comity_testkit::memory::held;

use super::Plan;
use super::common::Failure;

const ONE_WAY: Span = Span::from_millis(10);
const LATENCY: Span = Span::from_millis(400);
/// Between two calls: the listener's budget is 2,000 key exchanges in a second.
const BETWEEN_CALLS: Span = Span::from_micros(600);
const START: Time = Time::from_secs(1);

fn listener_address() -> SocketAddr {
    ([192, 0, 2, 1], 5_000).into()
}

/// Each caller has a network of 256 addresses, as far as they go.
fn caller_address(caller: usize) -> SocketAddr {
    let host = (10 << 24) + ((caller as u32) << 8) % (1 << 24) + (caller as u32 >> 16);
    (Ipv4Addr::from_bits(host), 4_000).into()
}

fn caller_at(address: SocketAddr) -> usize {
    match address {
        SocketAddr::V4(address) => {
            let host = address.ip().to_bits();
            (((host >> 8) & 0xffff) | (host & 0xff) << 16) as usize
        }
        SocketAddr::V6(_) => usize::MAX,
    }
}

/// A datagram on its way: when it arrives, its caller, and its bytes.
type Flight = (Time, usize, Vec<u8>);

/// The next datagram that has arrived.
fn pop_due(flights: &mut VecDeque<Flight>, now: Time) -> Option<Flight> {
    match flights.front() {
        Some(&(at, ..)) if at <= now => flights.pop_front(),
        _ => None,
    }
}

/// What the listener's part of the run took.
#[derive(Debug, Default)]
struct Taken {
    time: Duration,
    memory: isize,
}

impl Taken {
    /// Runs a part of the listener's work.
    fn by<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (began, memory) = (Instant::now(), held());
        let done = work();
        self.memory += held() - memory;
        self.time += began.elapsed();
        done
    }
}

struct World {
    now: Time,
    listener: Listener<Transport>,
    callers: Vec<Caller<Transport>>,
    timers: BTreeSet<(Time, usize)>,
    armed: Vec<Time>,
    /// Datagrams to the listener and to the callers, in order: the path has one delay.
    up: VecDeque<Flight>,
    down: VecDeque<Flight>,
    taken: Taken,
    received: [u64; 3],
    out: Vec<u8>,
}

impl World {
    fn new(options: &Config, parameters: &[u8]) -> Result<Self, Failure> {
        let credentials = ListenerCredentials::Shared(PresharedKey::new([7; 32]));
        let listening = ListenerConfig {
            max_connections: 1 << 17,
            ..ListenerConfig::new(credentials, parameters.to_vec())
        };
        let opener = Transport::opener(options.clone(), Seed::new(2));
        let randomness = Randomness::seeded(Seed::new(1));
        Ok(Self {
            now: START,
            listener: Listener::new(START, listening, opener, randomness)?,
            callers: Vec::new(),
            timers: BTreeSet::new(),
            armed: Vec::new(),
            up: VecDeque::new(),
            down: VecDeque::new(),
            taken: Taken::default(),
            received: [0; 3],
            out: Vec::new(),
        })
    }

    fn call(&mut self, options: &Config, parameters: &[u8]) -> Result<(), Failure> {
        let at = self.callers.len();
        let credentials = CallerCredentials::Shared(PresharedKey::new([7; 32]));
        let calling = CallerConfig {
            timeout: Span::from_secs(20),
            ..CallerConfig::new(credentials, parameters.to_vec())
        };
        let seed = Seed::new(at as u64 + 10);
        let opener = Transport::opener(options.clone(), seed);
        let randomness = Randomness::seeded(seed);
        let caller = Caller::new(self.now, listener_address(), calling, opener, randomness)?;
        self.callers.push(caller);
        self.armed.push(Time::MAX);
        self.serve_caller(at);
        Ok(())
    }

    /// Lets a caller send what may leave now.
    fn serve_caller(&mut self, at: usize) {
        let caller = &mut self.callers[at];
        while caller.poll_transmit(self.now, &mut self.out).is_some() {
            let datagram = (self.now + ONE_WAY, at, std::mem::take(&mut self.out));
            self.up.push_back(datagram);
        }
        while caller.poll_event().is_some() {}
        if let Some(session) = caller.session_mut() {
            while session.protocol_mut().poll_event(self.now).is_some() {}
        }
        let timer = caller.next_timer();
        self.timers.remove(&(self.armed[at], at));
        self.armed[at] = timer;
        self.timers.insert((timer, at));
    }

    /// Lets the listener send and deliver what it can now.
    fn serve_listener(&mut self) {
        loop {
            let Self {
                listener,
                taken,
                out,
                ..
            } = self;
            out.clear();
            let reply = taken.by(|| listener.poll_reply(out));
            if let Some(reply) = reply {
                let datagram = (self.now + ONE_WAY, caller_at(reply.to), self.out.clone());
                self.down.push_back(datagram);
                continue;
            }
            let Some(id) = self.taken.by(|| self.listener.next_ready()) else {
                break;
            };
            self.serve_connection(id);
        }
        while self.taken.by(|| self.listener.poll_event()).is_some() {}
    }

    fn serve_connection(&mut self, id: ConnectionId) {
        let Self {
            now,
            listener,
            taken,
            received,
            out,
            down,
            ..
        } = self;
        loop {
            out.clear();
            let sent = taken.by(|| {
                let session = listener.session_mut(id)?;
                let transport = session.protocol_mut();
                while let Some(delivery) = transport.poll_delivery(*now) {
                    match delivery {
                        Delivery::Section(section) => received[usize::from(section.is_late)] += 1,
                        Delivery::Gap(gap) => received[2] += gap.count,
                    }
                }
                while transport.poll_event(*now).is_some() {}
                session.poll_transmit(*now, out)
            });
            match sent {
                Some(sent) => down.push_back((*now + ONE_WAY, caller_at(sent.to), out.clone())),
                None => break,
            }
        }
        taken.by(|| listener.settle(id));
    }

    /// Lets time pass until `until`.
    fn run(&mut self, until: Time) {
        loop {
            let first = |queue: &VecDeque<Flight>| queue.front().map_or(Time::MAX, |(at, ..)| *at);
            let timer = self.timers.first().map_or(Time::MAX, |&(at, _)| at);
            let next = first(&self.up).min(first(&self.down)).min(timer);
            let next = next.min(self.listener.next_timer());
            if next > until {
                self.now = self.now.max(until);
                return;
            }
            self.now = self.now.max(next);
            let now = self.now;
            while let Some((_, at, mut bytes)) = pop_due(&mut self.up, now) {
                let (listener, from) = (&mut self.listener, caller_address(at));
                let ecn = Ecn::NotCapable;
                self.taken
                    .by(|| listener.handle_datagram(now, from, ecn, &mut bytes));
            }
            if self.listener.next_timer() <= now {
                self.taken.by(|| self.listener.on_timer(now));
            }
            self.serve_listener();
            while let Some((_, at, mut bytes)) = pop_due(&mut self.down, now) {
                let from = listener_address();
                self.callers[at].handle_datagram(now, from, Ecn::NotCapable, &mut bytes);
                self.serve_caller(at);
            }
            while let Some(&(timer, at)) = self.timers.first()
                && timer <= now
            {
                self.callers[at].on_timer(now);
                self.serve_caller(at);
            }
        }
    }

    /// A section of a caller.
    fn submit(&mut self, at: usize, payload: &Bytes) -> Result<(), Failure> {
        let section = Outgoing {
            stream: StreamId(0),
            importance: Importance(0),
            source_time: self.now,
            deadline: self.now + LATENCY,
            needs: None,
            payload: payload.clone(),
        };
        let session = self.callers[at].session_mut();
        let transport = session.map(Session::protocol_mut).ok_or("not connected")?;
        transport.submit(self.now, section)?;
        self.serve_caller(at);
        Ok(())
    }
}

/// Runs a listener with so many callers, and reports.
pub(crate) fn run(plan: Plan) -> Result<(), Failure> {
    let options = Plan::options().build()?;
    let mut parameters = Vec::new();
    options.parameters().encode(&mut parameters)?;
    let mut world = World::new(&options, &parameters)?;
    for _ in 0..plan.peers {
        world.call(&options, &parameters)?;
        world.run(world.now + BETWEEN_CALLS);
    }
    world.run(world.now + Span::from_secs(1));
    let peers = world.listener.connections();
    let connected = world.taken.memory / peers.max(1) as isize;
    let payload = Bytes::from(vec![7; plan.bytes]);
    let interval = Span::from(plan.interval);
    let rounds = plan.seconds * 1_000 / interval.as_millis().max(1);
    let began = world.now;
    let mut submitted = 0;
    for round in 0..rounds {
        for at in 0..plan.peers {
            let share = interval.mul_f64(at as f64 / plan.peers as f64);
            world.run(began + interval * round + share);
            world.submit(at, &payload)?;
            submitted += 1;
        }
        // Handshakes and the search for the size of packets are over.
        if round * interval.as_millis() == 2_000 {
            world.taken.time = Duration::ZERO;
        }
    }
    let timed = submitted - (2_000 / interval.as_millis().max(1) + 1) * plan.peers as u64;
    let (time, streaming) = (world.taken.time, world.taken.memory);
    world.run(world.now + Span::from_secs(2));
    let [on_time, late, gaps] = world.received;
    println!(
        "{peers} simulated peers: {connected} bytes of memory per connected peer, {} per streaming peer; {:.2} us of the \
         listener per section; {submitted} sections: {on_time} on time, {late} late, {gaps} missing",
        streaming / peers.max(1) as isize,
        time.as_secs_f64() * 1e6 / timed as f64,
    );
    match on_time + late + gaps == submitted && peers == plan.peers {
        true => Ok(()),
        false => Err("the counts of the ends differ".into()),
    }
}
