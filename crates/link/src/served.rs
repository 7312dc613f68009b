//! The link that has to be woken when a packet leaves.

use alloc::collections::VecDeque;

use comity_units::{Bytes, Rate, Seed, Span, Time};

use crate::clock::{Clock, work_of};
use crate::codel::{Codel, Store};
use crate::config::{ConfigError, Limit, LinkConfig, LossPlace, Queue};
use crate::far_end::FarEnd;
use crate::loss::Losses;
use crate::outcome::{Backlog, DropCause, Outcome, Packet};
use crate::profile::Server;
use crate::red::{Found, Red, Verdict};

/// A one-way link whose packets wait in a real queue until they are sent.
///
/// Needed where something after the hand-over decides about a packet: controlled delay, and rates and
/// delays that are set at run time. With the same configuration, seed and offers the outcomes are those of
/// a [`ClockedLink`](crate::ClockedLink).
///
/// The host offers packets, each with a token of its own by which the link hands it back, asks for
/// [`next_wakeup`](Self::next_wakeup), and then calls [`poll`](Self::poll) until it answers `None`. Times
/// must not decrease over all calls. A late host loses nothing: packets leave when they should have.
#[derive(Clone, Debug)]
pub struct ServedLink<T: Copy> {
    server: Server,
    largest: u32,
    losses: Losses,
    offered: u64,
    discipline: Discipline,
    limit: Limit,
    line: Line<T>,
    service: Option<Service<T>>,
    far_end: FarEnd,
}

/// A packet that the link hands back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served<T> {
    /// The host's own token.
    pub token: T,
    /// What became of it.
    pub outcome: Outcome,
}

#[derive(Clone, Debug)]
enum Discipline {
    Codel(Codel),
    DropTail,
    Red(Red),
}

/// The packets that wait, and those that are done and not yet handed back.
#[derive(Clone, Debug)]
struct Line<T> {
    waiting: VecDeque<Waiting<T>>,
    bytes: u64,
    done: VecDeque<(Time, Served<T>)>,
    /// The time at which packets are being taken out.
    now: Time,
}

#[derive(Clone, Copy, Debug)]
struct Waiting<T> {
    token: T,
    packet: Packet,
    number: u64,
    since: Time,
    marked: bool,
}

/// The packet in transmission.
#[derive(Clone, Copy, Debug)]
struct Service<T> {
    packet: Waiting<T>,
    start: Time,
    departure: Time,
    /// The work that was still to be done at `from`.
    work: u128,
    from: Time,
}

impl<T: Copy> ServedLink<T> {
    /// A link that has never carried a packet. Every random stream is named below `seed`.
    ///
    /// # Errors
    /// When the configuration is not valid.
    pub fn new(config: &LinkConfig, seed: Seed) -> Result<Self, ConfigError> {
        config.validate()?;
        let (limit, discipline) = match &config.queue {
            Queue::DropTail(limit) => (*limit, Discipline::DropTail),
            Queue::Red(red) => (red.limit, Discipline::Red(Red::new(red, seed))),
            Queue::CoDel(codel) => (codel.limit, Discipline::Codel(Codel::new(codel))),
        };
        Ok(Self {
            server: Server::new(&config.rate),
            largest: config.largest_packet(),
            losses: Losses::new(&config.losses, LossPlace::BeforeQueue, seed),
            offered: 0,
            discipline,
            limit,
            line: Line {
                waiting: VecDeque::new(),
                bytes: 0,
                done: VecDeque::new(),
                now: Time::ZERO,
            },
            service: None,
            far_end: FarEnd::new(config, seed),
        })
    }

    /// Hands a packet over. The token comes back from [`poll`](Self::poll) when its fate is decided.
    ///
    /// # Errors
    /// Why the packet was refused; the token does not come back then.
    pub fn offer(&mut self, now: Time, packet: Packet, token: T) -> Result<(), DropCause> {
        self.advance(now);
        let number = self.offered;
        self.offered += 1;
        if packet.bytes > self.largest {
            return Err(DropCause::TooLarge);
        }
        if self.losses.strike(now, number) {
            return Err(DropCause::Loss);
        }
        let mut marked = false;
        if let Discipline::Red(red) = &mut self.discipline {
            let idle = match self.service {
                Some(_) => None,
                None => now
                    .since(self.server.clock.free_at())
                    .map(|idle| (idle, self.server.rate_at(now))),
            };
            let found = Found {
                packets: self.line.waiting.len(),
                bytes: self.line.bytes,
                idle,
            };
            match red.arrive(&found, packet) {
                Verdict::Drop => return Err(DropCause::EarlyDrop),
                Verdict::Mark => marked = true,
                Verdict::Pass => {}
            }
        }
        let (packets, bytes) = self.held();
        if !self.limit.has_room(packets, bytes, packet.bytes) {
            if let Discipline::Red(red) = &mut self.discipline {
                red.overflow();
            }
            return Err(DropCause::QueueFull);
        }
        self.line.push(Waiting {
            token,
            packet,
            number,
            since: now,
            marked,
        });
        if self.service.is_none() {
            self.server.begin(now);
            self.serve_next(now);
        }
        Ok(())
    }

    /// When [`poll`](Self::poll) has something to hand back, if nothing else happens before.
    pub fn next_wakeup(&self) -> Option<Time> {
        let done = self.line.done.front().map(|&(at, _)| at);
        done.or_else(|| self.service.as_ref().map(|service| service.departure))
            .filter(|time| !time.is_never())
    }

    /// The next packet whose fate is decided by `now`, in the order of the decisions.
    pub fn poll(&mut self, now: Time) -> Option<Served<T>> {
        self.advance(now);
        self.line.done.pop_front().map(|(_, served)| served)
    }

    /// Changes the rate for good, in place of any profile. A packet in transmission goes on at the new
    /// rate with what is left of it; [`Rate::ZERO`] holds it until the next change.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.advance(now);
        let server = &mut self.server;
        match &mut self.service {
            None => server.clock = Clock::free_since(rate, server.clock.free_at()),
            Some(service) => {
                let done = server.capacity(service.from, now);
                service.work = service.work.saturating_sub(done);
                service.from = now;
                server.clock = Clock::free_since(rate, now);
                service.departure = server.clock.transmit_work(service.work);
            }
        }
        server.profile = None;
    }

    /// Changes the propagation delay for good, in place of any profile, for packets that leave after
    /// `now`. Unless the jitter allows reordering, they do not overtake those on the way.
    pub fn set_delay(&mut self, now: Time, delay: Span) {
        self.advance(now);
        self.far_end.set_delay(delay);
    }

    /// Whether arrivals, second copies included, come in the order of the offers.
    pub fn keeps_order(&self) -> bool {
        self.far_end.keeps_order()
    }

    /// What the link still has to send at `now`.
    pub fn backlog(&mut self, now: Time) -> Backlog {
        self.advance(now);
        let (packets, bytes) = self.held();
        let packets = u32::try_from(packets).unwrap_or(u32::MAX);
        Backlog {
            packets: Some(packets),
            bytes: Bytes::new(bytes),
        }
    }

    /// The average queue of random early detection, in packets or bytes as configured, after the last
    /// offer; `None` with other queues.
    pub fn average_queue(&self) -> Option<f64> {
        match &self.discipline {
            Discipline::Red(red) => Some(red.average()),
            Discipline::Codel(_) | Discipline::DropTail => None,
        }
    }

    /// Packets and bytes queued or in service.
    fn held(&self) -> (usize, u64) {
        let in_service = self
            .service
            .as_ref()
            .map(|service| u64::from(service.packet.packet.bytes));
        (
            self.line.waiting.len() + usize::from(in_service.is_some()),
            self.line.bytes + in_service.unwrap_or(0),
        )
    }

    /// Lets everything leave that leaves by `now`.
    fn advance(&mut self, now: Time) {
        while let Some(service) = self.service
            && service.departure <= now
            && !service.departure.is_never()
        {
            let Service {
                packet,
                start,
                departure,
                ..
            } = service;
            let outcome = self
                .far_end
                .deliver(start, departure, packet.marked, packet.number);
            self.line.done.push_back((
                departure,
                Served {
                    token: packet.token,
                    outcome,
                },
            ));
            self.serve_next(departure);
        }
    }

    /// Takes the next packet into service at `now`, when the link is free.
    fn serve_next(&mut self, now: Time) {
        self.line.now = now;
        let next = match &mut self.discipline {
            Discipline::Codel(codel) => codel.dequeue(now, &mut self.line),
            Discipline::DropTail | Discipline::Red(_) => self.line.take(),
        };
        self.service = next.map(|packet| {
            let work = work_of(packet.packet.bytes).saturating_sub(self.server.credit());
            let departure = self.server.transmit(packet.packet.bytes);
            Service {
                packet,
                start: now,
                departure,
                work,
                from: now,
            }
        });
    }
}

impl<T> Line<T> {
    fn push(&mut self, packet: Waiting<T>) {
        self.bytes += u64::from(packet.packet.bytes);
        self.waiting.push_back(packet);
    }
}

impl<T> Store for Line<T> {
    type Entry = Waiting<T>;

    fn take(&mut self) -> Option<Waiting<T>> {
        let first = self.waiting.pop_front()?;
        self.bytes -= u64::from(first.packet.bytes);
        Some(first)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn since(entry: &Waiting<T>) -> Time {
        entry.since
    }

    fn mark(entry: &mut Waiting<T>) -> bool {
        entry.marked |= entry.packet.ecn_capable;
        entry.packet.ecn_capable
    }

    fn discard(&mut self, entry: Waiting<T>) {
        let outcome = Outcome::Dropped(DropCause::EarlyDrop);
        self.done.push_back((
            self.now,
            Served {
                token: entry.token,
                outcome,
            },
        ));
    }
}
