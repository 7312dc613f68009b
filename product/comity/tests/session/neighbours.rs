//! A stranger in the network of honest callers, or on their path, sends a megabit per second of the
//! worst packets. Callers from addresses that have not failed connect within 3 s.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use comity::session::{
    CallerConfig, CallerCredentials, ConnectionId, Ecn, ListenerCredentials, Pattern, Randomness,
};
use comity_transport::wire::header::{self, Confirm, Initial, Packet};
use comity_units::{Seed, Span};

use super::network::{
    CALLER, LISTENER, Path, World, address, caller_config, listener_config, passphrase, shared,
};

/// Bytes of headers of UDP and IPv4.
const HEADERS: usize = 28;
/// The bytes of one millisecond at a megabit per second.
const BYTES_PER_MS: usize = 125;

/// The packets that a stranger sends.
#[derive(Clone, Copy, Debug)]
enum Habit {
    /// Only key exchanges.
    Exchanges,
    /// Each key exchange is followed by a wrong message 3.
    Guesses,
    /// Wrong messages 3 for a valid ticket.
    Confirms,
    /// Another pattern, which is refused at once.
    OtherPattern,
    /// Each address of its own guesses once.
    FreshGuesses,
    /// Tickets of many addresses, and wrong messages 3 for all of them at once.
    HoardedTickets,
    /// Cookies of many addresses, then a guess with each. Ignored guesses come again.
    HoardedCookies,
}

const HABITS: [Habit; 4] = [
    Habit::Exchanges,
    Habit::Guesses,
    Habit::Confirms,
    Habit::OtherPattern,
];

/// A stranger at these addresses.
struct Stranger {
    habit: Habit,
    addresses: Vec<SocketAddr>,
    cookies: BTreeMap<SocketAddr, Vec<u8>>,
    ticket: BTreeMap<SocketAddr, Vec<u8>>,
    pattern: Pattern,
    random: Randomness,
    at: usize,
    /// Bytes that it may still send.
    owed: isize,
    /// Cookies or tickets that it has collected.
    hoard: VecDeque<(SocketAddr, Vec<u8>)>,
    /// Tickets whose message 3 was ignored.
    ignored: VecDeque<(SocketAddr, Vec<u8>)>,
    /// Whether it uses what it has collected.
    spends: bool,
}

impl Stranger {
    fn act(&mut self, world: &mut World) {
        self.owed += BYTES_PER_MS as isize;
        while self.owed > 0 {
            let from = self.addresses[self.at % self.addresses.len()];
            self.at += 1;
            self.once(world, from);
        }
    }

    /// Sends a packet and returns the reply.
    fn send(
        &mut self,
        world: &mut World,
        from: SocketAddr,
        mut packet: Vec<u8>,
    ) -> Option<Vec<u8>> {
        self.owed -= (packet.len() + HEADERS) as isize;
        world.drain();
        let (now, listener) = (world.now, &mut world.listener);
        listener.handle_datagram(now, from, Ecn::NotCapable, &mut packet);
        let mut reply = Vec::new();
        listener.poll_reply(&mut reply)?;
        Some(reply)
    }

    fn initial(
        &mut self,
        world: &mut World,
        from: SocketAddr,
        pattern: Pattern,
    ) -> Option<Vec<u8>> {
        let message = [&share(&mut self.random)[..], &[1, 1, 0, 0, 0, 2]].concat();
        let cookie = self.cookies.get(&from).cloned().unwrap_or_default();
        let mut packet = Vec::new();
        Initial {
            source: ConnectionId::new(77),
            pattern,
            cookie: &cookie,
            message: if cookie.is_empty() { &[] } else { &message },
        }
        .encode(&mut packet)
        .expect("within the format");
        self.send(world, from, packet)
    }

    /// A Retry or an Answer for a new address.
    fn collect(&mut self, world: &mut World, from: SocketAddr) -> Option<Vec<u8>> {
        let reply = self.initial(world, from, self.pattern)?;
        match header::decode(&reply) {
            Ok(Packet::Retry(retry)) => {
                self.cookies.insert(from, retry.cookie.to_vec());
                Some(retry.cookie.to_vec())
            }
            Ok(Packet::Answer(answer)) => Some(answer.ticket.to_vec()),
            _ => None,
        }
    }

    /// Sends a wrong message 3. One that was ignored comes again.
    fn guess(&mut self, world: &mut World, from: SocketAddr, ticket: Vec<u8>) {
        if !self.confirm(world, from, &ticket) {
            self.ignored.push_back((from, ticket));
        }
    }

    fn hoards(&mut self, world: &mut World, from: SocketAddr) {
        match self.habit {
            Habit::HoardedCookies if self.spends => {
                // As many new guesses as the network has tokens for.
                let again = match self.at.is_multiple_of(3) {
                    true => None,
                    false => self.ignored.pop_front(),
                };
                if let Some((from, ticket)) = again {
                    self.guess(world, from, ticket);
                } else if let Some((from, _)) = self.hoard.pop_front() {
                    if let Some(ticket) = self.collect(world, from) {
                        self.guess(world, from, ticket);
                    }
                } else {
                    self.owed = 0;
                }
            }
            Habit::HoardedTickets if self.spends => {
                if let Some((from, ticket)) = self.hoard.pop_front() {
                    self.guess(world, from, ticket);
                } else if let Some((from, ticket)) = self.ignored.pop_front() {
                    self.guess(world, from, ticket);
                } else {
                    self.owed = 0;
                }
            }
            _ => {
                let Some(mut found) = self.collect(world, from) else {
                    return;
                };
                if !matches!(self.habit, Habit::HoardedCookies) {
                    match self.collect(world, from) {
                        Some(ticket) => found = ticket,
                        None => return,
                    }
                }
                match self.habit {
                    Habit::FreshGuesses => self.guess(world, from, found),
                    _ => self.hoard.push_back((from, found)),
                }
            }
        }
    }

    fn once(&mut self, world: &mut World, from: SocketAddr) {
        if let Habit::FreshGuesses | Habit::HoardedTickets | Habit::HoardedCookies = self.habit {
            return self.hoards(world, from);
        }
        if let Habit::Confirms = self.habit
            && let Some(ticket) = self.ticket.get(&from).cloned()
            && !self.at.is_multiple_of(1_000)
        {
            self.confirm(world, from, &ticket);
            return;
        }
        let pattern = match self.habit {
            Habit::OtherPattern if self.pattern == Pattern::IK => Pattern::CPace,
            Habit::OtherPattern => Pattern::IK,
            _ => self.pattern,
        };
        let reply = self.initial(world, from, pattern);
        match reply.as_deref().map(header::decode) {
            Some(Ok(Packet::Retry(retry))) => {
                self.cookies.insert(from, retry.cookie.to_vec());
            }
            Some(Ok(Packet::Answer(answer))) if !answer.ticket.is_empty() => {
                self.ticket.insert(from, answer.ticket.to_vec());
                if let Habit::Guesses = self.habit {
                    let ticket = answer.ticket.to_vec();
                    self.confirm(world, from, &ticket);
                }
            }
            _ => {}
        }
    }

    /// Sends a wrong message 3. Returns whether the listener has refused it.
    fn confirm(&mut self, world: &mut World, from: SocketAddr, ticket: &[u8]) -> bool {
        let mut packet = Vec::new();
        let confirm = Confirm {
            ticket,
            message: &self.random.bytes::<24>(),
        };
        confirm.encode(&mut packet).expect("within the format");
        self.send(world, from, packet).is_some()
    }
}

/// A CPace share whose secret is unknown.
fn share(random: &mut Randomness) -> [u8; 32] {
    let bytes = random.bytes();
    let point = curve25519_dalek::RistrettoPoint::from_uniform_bytes(&bytes);
    point.compress().to_bytes()
}

/// The addresses of the stranger.
#[derive(Clone, Copy, Debug)]
enum Reach {
    /// One address.
    One,
    /// All of a /24 except those of the honest callers.
    All,
    /// A new address of the /64 for each packet.
    Fresh,
}

fn addresses(reach: Reach) -> Vec<SocketAddr> {
    match reach {
        Reach::One => vec![([198, 51, 100, 66], 6).into()],
        Reach::All => (1..200_u8)
            .map(|host| ([198, 51, 100, host], 6).into())
            .collect(),
        Reach::Fresh => (0..60_000_u16)
            .map(|host| ([0x2001, 0xdb8, 0, 0, 0, 1, 0, host], 6).into())
            .collect(),
    }
}

/// Ten honest callers and a stranger that has been active for `before`.
fn callers_that_are_in(
    seed: u64,
    (listener, caller): (ListenerCredentials, CallerCredentials),
    (reach, habit): (Reach, Habit),
    delay_ms: u64,
) -> (usize, usize) {
    let path = Path {
        delay: Span::from_millis(delay_ms),
        ..Path::GOOD
    };
    let mut world = World::new(seed, path, listener_config(listener));
    let mut stranger = Stranger {
        habit,
        addresses: addresses(reach),
        cookies: BTreeMap::new(),
        ticket: BTreeMap::new(),
        pattern: caller.pattern(),
        random: Randomness::seeded(Seed::new(seed)),
        at: 0,
        owed: 0,
        hoard: VecDeque::new(),
        ignored: VecDeque::new(),
        spends: false,
    };
    let count = 10;
    for at_ms in 0..15_000_u64 {
        stranger.spends = at_ms >= 8_000;
        stranger.act(&mut world);
        if at_ms >= 8_000 && at_ms % 400 == 0 && world.callers.len() < count {
            let host = 210 + world.callers.len();
            let from = match reach {
                Reach::Fresh => format!("[2001:db8::ffff:{host}]:1"),
                _ => format!("198.51.100.{host}:1"),
            };
            let config = CallerConfig {
                timeout: Span::from_secs(3),
                ..caller_config(caller.clone())
            };
            world.call(&from, config);
        }
        world.run_for(Span::from_millis(1));
    }
    let inside = { world.callers.iter() }.filter(|(_, caller)| caller.session().is_some());
    (inside.count(), world.callers.len())
}

fn by_passphrase() -> (ListenerCredentials, CallerCredentials) {
    (
        ListenerCredentials::Passphrase(passphrase(7)),
        CallerCredentials::Passphrase(passphrase(7)),
    )
}

fn by_shared_key() -> (ListenerCredentials, CallerCredentials) {
    (
        ListenerCredentials::Shared(shared(7)),
        CallerCredentials::Shared(shared(7)),
    )
}

#[test]
fn a_stranger_does_not_exclude_its_neighbours() {
    for (seed, credentials) in [(1, by_passphrase()), (2, by_shared_key())] {
        for reach in [Reach::One, Reach::All, Reach::Fresh] {
            for habit in HABITS {
                let attack = (reach, habit);
                let (inside, all) = callers_that_are_in(seed, credentials.clone(), attack, 20);
                let pattern = credentials.1.pattern();
                assert_eq!((inside, all), (10, 10), "{pattern:?} {attack:?}");
            }
        }
    }
}

/// A stranger that guesses from new addresses of the /64, at once or with what it has collected for
/// 8 s.
#[test]
fn a_stranger_that_collects_tickets_does_not_exclude_its_neighbours() {
    for habit in [
        Habit::FreshGuesses,
        Habit::HoardedTickets,
        Habit::HoardedCookies,
    ] {
        for (seed, delay_ms) in [(1, 20), (2, 100)] {
            let attack = (Reach::Fresh, habit);
            let (inside, all) = callers_that_are_in(seed, by_passphrase(), attack, delay_ms);
            assert_eq!((inside, all), (10, 10), "{attack:?} {delay_ms} ms");
        }
    }
}

/// Strangers of all kinds at round trips of up to 300 ms.
#[test]
fn random_strangers_do_not_exclude_their_neighbours() {
    let mut random = Randomness::seeded(Seed::new(77));
    for seed in 0..12 {
        let [reach, habit, delay] = random.bytes();
        let reach = [Reach::One, Reach::All, Reach::Fresh][usize::from(reach) % 3];
        let habit = HABITS[usize::from(habit) % 4];
        let delay_ms = 5 + u64::from(delay) * 145 / 255;
        let (inside, all) = callers_that_are_in(seed, by_passphrase(), (reach, habit), delay_ms);
        assert_eq!(
            (inside, all),
            (10, 10),
            "{seed}: {reach:?} {habit:?} {delay_ms} ms"
        );
    }
}

/// An attacker on the path of a caller answers each of its tickets with wrong messages 3, in the
/// caller's name and before the caller.
#[test]
fn forged_proofs_do_not_exclude_the_real_caller() {
    for credentials in [by_passphrase(), by_shared_key()] {
        for round in 0..20 {
            let mut world = World::new(round, Path::GOOD, listener_config(credentials.0.clone()));
            let mut calls = Vec::new();
            for _ in 0..10 {
                let config = CallerConfig {
                    timeout: Span::from_secs(3),
                    ..caller_config(credentials.1.clone())
                };
                calls.push(world.call(CALLER, config));
                let (mut seen, start) = (world.log.len(), world.now);
                while world.now < start + Span::from_millis(400) {
                    world.run_for(Span::from_millis(1));
                    let replies: Vec<_> = world.log[seen..].to_vec();
                    seen = world.log.len();
                    for reply in replies {
                        let Ok(Packet::Answer(answer)) = header::decode(&reply.bytes) else {
                            continue;
                        };
                        if answer.ticket.is_empty() || reply.from != address(LISTENER) {
                            continue;
                        }
                        for number in 0..5_u8 {
                            let mut packet = Vec::new();
                            let confirm = Confirm {
                                ticket: answer.ticket,
                                message: &[number; 40],
                            };
                            confirm.encode(&mut packet).expect("within the format");
                            let (now, listener) = (world.now, &mut world.listener);
                            let from = address(CALLER);
                            listener.handle_datagram(now, from, Ecn::NotCapable, &mut packet);
                        }
                    }
                }
            }
            for call in calls {
                let failed = world.failure(call);
                assert!(
                    world.callers[call].1.session().is_some(),
                    "{call}: {failed:?}"
                );
            }
            // Each ticket counts as refused once.
            assert!(world.listener.statistics().refused <= 20);
        }
    }
}
