//! The link that needs a wake-up when a packet leaves.

use alloc::boxed::Box;

use comity_units::{DataSize, Rate, Span, Time};

use crate::clock::{Clock, work_of};
use crate::codel::Codel;
use crate::config::{LinkConfig, LossPlace};
use crate::error::ConfigError;
use crate::far_end::FarEnd;
use crate::fq_codel::FqCodel;

use crate::loss::Losses;
use crate::outcome::{Backlog, DropCause, Packet};
use crate::pie::Pie;
use crate::profile::Server;
use crate::queue::{Limit, Queue};
use crate::random::LinkSeed;
use crate::red::{Found, Red, Verdict};
use crate::waiting::{Controlled, Decision, Decisions, Fifo, Waiting};

/// A one-way link whose packets wait in a real queue until they are sent.
///
/// Required if later events decide about a packet: CoDel, FQ-CoDel, PIE, and rates and delays set
/// at run time. With the same configuration, seed and offers, its outcomes equal those of an
/// [`AnalyticLink`](crate::AnalyticLink).
///
/// The host offers packets, each with a token of its own. It reads
/// [`next_wakeup`](Self::next_wakeup), and then calls [`poll`](Self::poll), which returns the
/// tokens, until the result is `None`. Times must not decrease over all calls. A late host loses
/// nothing: packets leave at their proper times.
#[derive(Clone, Debug)]
pub struct QueuedLink<T: Copy> {
    server: Server,
    largest: u32,
    losses: Losses,
    offered: u64,
    discipline: Discipline<T>,
    limit: Limit,
    /// The waiting packets, unless FQ-CoDel holds them.
    fifo: Fifo<T>,
    decided: Decisions<T>,
    service: Option<Service<T>>,
    far_end: FarEnd,
}

#[derive(Clone, Debug)]
enum Discipline<T> {
    Codel(Codel),
    DropTail,
    FqCodel(Box<FqCodel<T>>),
    Pie(Box<Pie>),
    Red(Red),
}

/// The packet in transmission.
#[derive(Clone, Copy, Debug)]
struct Service<T> {
    packet: Waiting<T>,
    start: Time,
    departure: Time,
    /// The remaining work at `from`.
    work: u128,
    from: Time,
}

impl<T: Copy> QueuedLink<T> {
    /// Creates an unused link. Every random stream is named below `seed`.
    ///
    /// # Errors
    /// If the configuration is invalid.
    pub fn new(config: &LinkConfig, seed: impl Into<LinkSeed>) -> Result<Self, ConfigError> {
        let seed: LinkSeed = seed.into();
        config.validate()?;
        let discipline = match &config.queue {
            Queue::DropTail(_) => Discipline::DropTail,
            Queue::Red(red) => Discipline::Red(Red::new(red, seed.own)),
            Queue::CoDel(codel) => Discipline::Codel(Codel::new(codel)),
            Queue::FqCodel(config) => Discipline::FqCodel(Box::new(FqCodel::new(config, seed.own))),
            Queue::Pie(pie) => Discipline::Pie(Box::new(Pie::new(pie, seed.own))),
        };
        Ok(Self {
            server: Server::new(&config.rate),
            largest: config.largest_packet(),
            losses: Losses::new(&config.losses, LossPlace::BeforeQueue, seed),
            offered: 0,
            discipline,
            limit: config.queue.limit(),
            fifo: Fifo::default(),
            decided: Decisions::default(),
            service: None,
            far_end: FarEnd::new(config, seed),
        })
    }

    /// Offers a packet. [`poll`](Self::poll) returns the token when the fate is decided. With
    /// FQ-CoDel the fate is decided at once if the limit is exceeded and this packet is dropped for
    /// it.
    ///
    /// # Errors
    /// The cause, if the packet is dropped at the offer; its token is not returned then.
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
        let (packets, bytes) = self.held();
        let has_room = self.limit.has_room(packets, bytes, packet.bytes);
        let verdict = match &mut self.discipline {
            Discipline::Codel(_) | Discipline::DropTail | Discipline::FqCodel(_) => Verdict::Pass,
            Discipline::Pie(pie) if has_room => pie.arrive(now, self.fifo.bytes(), packet),
            Discipline::Pie(pie) => {
                pie.overflow();
                Verdict::Pass
            }
            Discipline::Red(red) => {
                let idle = match self.service {
                    Some(_) => None,
                    None => now
                        .since(self.server.clock.free_at())
                        .map(|idle| (idle, self.server.rate_at(now))),
                };
                let found = Found {
                    packets: self.fifo.packets(),
                    bytes: self.fifo.bytes(),
                    idle,
                };
                let verdict = red.arrive(&found, packet);
                if verdict != Verdict::Drop && !has_room {
                    red.overflow();
                }
                verdict
            }
        };
        if verdict == Verdict::Drop {
            return Err(DropCause::EarlyDrop);
        }
        let waiting = Waiting {
            token,
            packet,
            number,
            since: now,
            marked: verdict == Verdict::Mark,
        };
        if matches!(self.discipline, Discipline::FqCodel(_)) {
            self.share(now, waiting)?;
        } else if has_room {
            self.fifo.push(waiting);
        } else {
            return Err(DropCause::QueueFull);
        }
        if self.service.is_none() {
            self.server.begin(now);
            self.serve_next(now);
        }
        Ok(())
    }

    /// When [`poll`](Self::poll) next has a decision, unless something else happens first.
    pub fn next_wakeup(&self) -> Option<Time> {
        let decided = self.decided.first();
        decided
            .or_else(|| self.service.as_ref().map(|service| service.departure))
            .filter(|time| !time.is_never())
    }

    /// The next packet with a fate decided by `now`, in the order of the decisions.
    pub fn poll(&mut self, now: Time) -> Option<Decision<T>> {
        self.advance(now);
        self.decided.take()
    }

    /// Changes the rate for good, replacing any profile. The rest of a packet in transmission
    /// continues at the new rate; [`Rate::ZERO`] holds it until the next change.
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

    /// Changes the propagation delay for good, replacing any profile, for packets that leave after
    /// `now`. Unless the jitter allows reordering, they do not overtake packets in flight.
    pub fn set_delay(&mut self, now: Time, delay: Span) {
        self.advance(now);
        self.far_end.set_delay(delay);
    }

    /// Whether arrivals, duplicates included, are in the order of departure from the queue. That is
    /// the order of the offers; FQ-CoDel keeps it only within a flow.
    pub fn keeps_order(&self) -> bool {
        self.far_end.keeps_order()
    }

    /// The unsent backlog at `now`.
    pub fn backlog(&mut self, now: Time) -> Backlog {
        self.advance(now);
        let (packets, bytes) = self.held();
        let packets = u32::try_from(packets).unwrap_or(u32::MAX);
        Backlog {
            packets: Some(packets),
            bytes: DataSize::new(bytes),
        }
    }

    /// The average queue of random early detection, in packets or bytes as configured, after the
    /// last offer; `None` with other queues.
    pub fn average_queue(&self) -> Option<f64> {
        match &self.discipline {
            Discipline::Red(red) => Some(red.average()),
            Discipline::Codel(_)
            | Discipline::DropTail
            | Discipline::FqCodel(_)
            | Discipline::Pie(_) => None,
        }
    }

    /// The drop probability of PIE at `now`; `None` with other queues.
    pub fn drop_probability(&mut self, now: Time) -> Option<f64> {
        self.advance(now);
        match &mut self.discipline {
            Discipline::Pie(pie) => Some(pie.probability_at(now)),
            Discipline::Codel(_)
            | Discipline::DropTail
            | Discipline::FqCodel(_)
            | Discipline::Red(_) => None,
        }
    }

    /// Adds a packet to the queue of its flow. At the limit, other packets or this one are dropped.
    fn share(&mut self, now: Time, packet: Waiting<T>) -> Result<(), DropCause> {
        if !self.limit.has_room(0, 0, packet.packet.bytes) {
            return Err(DropCause::QueueFull);
        }
        if let Discipline::FqCodel(queues) = &mut self.discipline {
            queues.push(packet);
        }
        loop {
            let (packets, bytes) = self.held();
            match &mut self.discipline {
                Discipline::FqCodel(queues) if self.limit.is_exceeded(packets, bytes) => {
                    queues.drop_from_longest(now, &mut self.decided);
                }
                _ => return Ok(()),
            }
        }
    }

    /// Packets and bytes queued or in service.
    fn held(&self) -> (usize, u64) {
        let in_service = self
            .service
            .as_ref()
            .map(|service| u64::from(service.packet.packet.bytes));
        let (packets, bytes) = match &self.discipline {
            Discipline::FqCodel(queues) => (queues.packets(), queues.bytes()),
            Discipline::Codel(_)
            | Discipline::DropTail
            | Discipline::Pie(_)
            | Discipline::Red(_) => (self.fifo.packets(), self.fifo.bytes()),
        };
        (
            packets + usize::from(in_service.is_some()),
            bytes + in_service.unwrap_or(0),
        )
    }

    /// Processes all departures by `now`.
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
            self.decided.push(departure, packet.token, outcome);
            self.serve_next(departure);
        }
    }

    /// Starts the service of the next packet at `now`, if the link is free.
    fn serve_next(&mut self, now: Time) {
        let next = match &mut self.discipline {
            Discipline::Codel(codel) => codel.dequeue(
                now,
                &mut Controlled {
                    fifo: &mut self.fifo,
                    elsewhere: 0,
                    decided: &mut self.decided,
                    now,
                },
            ),
            Discipline::DropTail | Discipline::Red(_) => self.fifo.take(),
            Discipline::FqCodel(queues) => queues.dequeue(now, &mut self.decided),
            Discipline::Pie(pie) => {
                let next = self.fifo.take();
                if let Some(next) = &next {
                    pie.depart(now, next.since, self.fifo.packets());
                }
                next
            }
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
