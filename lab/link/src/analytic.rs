//! The link that decides at the offer of a packet.

use alloc::boxed::Box;

use comity_units::{DataSize, Span, Time};

use crate::clock::{Clock, WORK_PER_BYTE};
use crate::config::{DelayProfile, Jitter, LinkConfig, LossPlace};
use crate::error::ConfigError;
use crate::far_end::FarEnd;
use crate::loss::Losses;
use crate::outcome::{Backlog, DropCause, Outcome, Packet, Passage};
use crate::profile::{Profile, Server};
use crate::queue::{Limit, Queue};
use crate::random::LinkSeed;
use crate::red::{Found, Red, Verdict};
use crate::ring::{Records, Ring};

/// A one-way link that decides the fate of a packet when it is offered, with an arrival exact to
/// the nanosecond.
///
/// It has no event for the end of a transmission. A virtual clock holds the time when the link is
/// free again; if a limit requires it, a ring holds the future departures. This works because later
/// events do not change the fate of a packet in a first-in-first-out queue with drop-tail or RED.
/// Use a [`QueuedLink`](crate::QueuedLink) if they do (CoDel, FQ-CoDel, rates set at run time); its
/// outcomes are otherwise the same.
///
/// ```text
/// start     = max(now, departure of the packet before)
/// departure = start + 8 · bytes / rate          exactly; reported rounded up to a nanosecond
/// arrival   = departure + delay
/// ```
///
/// A plain link (constant rate and delay, drop-tail, nothing random) needs only this; all other
/// properties are behind one pointer.
///
/// # Room without counting
/// If all packets since the link was idle have one size, `n` of them keep it busy for more than `n
/// − 1` service times. A shorter backlog therefore implies fewer packets:
///
/// ```text
/// free_at − now ≤ (limit − 1) · service   ⟹   packets in the link < limit
/// ```
///
/// Above that bound, a division of the clock's backlog gives their number. Departures are recorded
/// only when a second size joins a busy link, until the link is idle or all its packets have one
/// size again.
#[derive(Clone, Debug)]
pub struct AnalyticLink {
    clock: Clock,
    delay: Span,
    /// While the backlog is below this, a packet of the last size is always admitted and carried.
    /// Zero if the clock alone cannot decide.
    room: u64,
    ring: Ring,
    extras: Option<Box<Extras>>,
}

/// The properties beyond a plain link.
#[derive(Clone, Debug)]
struct Extras {
    profile: Option<Profile>,
    largest: u32,
    losses: Losses,
    offered: u64,
    red: Option<Red>,
    far_end: FarEnd,
}

impl AnalyticLink {
    /// Creates an unused link. Every random stream is named below `seed`.
    ///
    /// # Errors
    /// If the configuration is invalid, or its queue needs a [`QueuedLink`](crate::QueuedLink).
    pub fn new(config: &LinkConfig, seed: impl Into<LinkSeed>) -> Result<Self, ConfigError> {
        let seed: LinkSeed = seed.into();
        config.validate()?;
        let (limit, red) = match &config.queue {
            Queue::DropTail(limit) => (*limit, None),
            Queue::Red(red) => (red.limit, Some(Red::new(red, seed.own))),
            Queue::CoDel(_) | Queue::FqCodel(_) | Queue::Pie(_) => {
                return Err(ConfigError::NeedsQueuedLink);
            }
        };
        let Server { clock, profile } = Server::new(&config.rate);
        let delay = match config.delay {
            DelayProfile::Constant(delay) => Some(delay),
            DelayProfile::Steps(_) => None,
        };
        let is_plain = profile.is_none()
            && config.mtu.is_none()
            && red.is_none()
            && config.losses.is_empty()
            && config.jitter == Jitter::None
            && config.duplication == 0.0
            && delay.is_some();
        let records = match (&limit, is_plain) {
            (Limit::Unlimited, _) if red.is_none() => Records::Nothing,
            (_, true) => Records::Implied,
            (_, false) => Records::Departures,
        };
        let ring = Ring::new(limit, records);
        let extras = (!is_plain).then(|| {
            Box::new(Extras {
                profile,
                largest: config.largest_packet(),
                losses: Losses::new(&config.losses, LossPlace::BeforeQueue, seed),
                offered: 0,
                red,
                far_end: FarEnd::new(config, seed),
            })
        });
        Ok(Self {
            clock,
            delay: delay.unwrap_or_default(),
            room: 0,
            ring,
            extras,
        })
    }

    /// The passage of a packet that has the size of the previous one and is certainly admitted: the
    /// result of [`AnalyticLink::offer`] at a lower cost. `None`, without an effect, for every
    /// other packet. `now` must not decrease from call to call.
    #[inline]
    pub fn offer_another(&mut self, now: Time, bytes: u32) -> Option<Passage> {
        if bytes != self.clock.size() || self.clock.backlog(now) >= self.room {
            return None;
        }
        let (start, departure) = self.clock.send_another(now)?;
        Some(self.passage(start, departure))
    }

    /// Offers a packet and returns its fate. `now` must not decrease from call to call.
    pub fn offer(&mut self, now: Time, packet: Packet) -> Outcome {
        if let Some(extras) = self.extras.as_deref_mut() {
            return extras.offer(&mut self.clock, &mut self.ring, now, packet);
        }
        if self.ring.records() != Records::Nothing && !self.make_room(now, packet.bytes) {
            return Outcome::Dropped(DropCause::QueueFull);
        }
        if packet.bytes != self.clock.size() {
            self.clock.prepare(packet.bytes);
            self.ring.change_size();
        }
        let ends = self.clock.service() < u64::MAX;
        let another = if ends {
            self.clock.send_another(now)
        } else {
            None
        };
        let (start, departure) = another.unwrap_or_else(|| {
            // The clock saturates at the end of time and then no longer determines earlier
            // departures.
            self.keep_records(now);
            (self.clock.begin(now), self.clock.transmit(packet.bytes))
        });
        if self.ring.is_tracked() {
            self.ring.push(departure, packet.bytes);
            if self.ring.is_uniform() && !departure.is_never() {
                self.ring.imply();
            }
        }
        self.room = if self.ring.is_tracked() {
            0
        } else {
            match self.ring.limit().packets_of(packet.bytes) {
                0 => 0,
                limit => (limit - 1)
                    .saturating_mul(self.clock.service())
                    .saturating_add(1),
            }
        };
        Outcome::Carried(self.passage(start, departure))
    }

    #[inline]
    fn passage(&self, start: Time, departure: Time) -> Passage {
        Passage {
            start,
            departure,
            arrival: departure + self.delay,
            marked: false,
            duplicate: None,
        }
    }

    /// Whether a packet finds room at `now`. Keeps records if the packet requires them, and
    /// restarts them on an idle link.
    fn make_room(&mut self, now: Time, bytes: u32) -> bool {
        if now >= self.clock.free_at() {
            self.ring.imply();
        } else if bytes != self.clock.size() {
            self.keep_records(now);
        }
        let (packets, held) = self.held(now);
        self.ring.limit().has_room(packets, held, bytes)
    }

    /// Records departures from now on, if the limit requires them.
    fn keep_records(&mut self, now: Time) {
        if self.ring.records() == Records::Implied {
            let count = self.clock.packets_left(now);
            self.ring
                .record(self.clock.last_departures(count), self.clock.size());
            // Even if this packet is dropped, the next one must enter the records.
            self.room = 0;
        }
    }

    /// Packets and bytes in the link at `now`, if records or the clock determine them.
    fn held(&mut self, now: Time) -> (usize, u64) {
        if self.ring.is_tracked() {
            self.ring.expire(now);
            return (self.ring.packets(), self.ring.bytes());
        }
        let packets = self.clock.packets_left(now);
        let bytes = packets.saturating_mul(u64::from(self.clock.size()));
        (usize::try_from(packets).unwrap_or(usize::MAX), bytes)
    }

    /// Whether arrivals, duplicates included, are in the order of the offers.
    pub fn keeps_order(&self) -> bool {
        self.extras
            .as_ref()
            .is_none_or(|extras| extras.far_end.keeps_order())
    }

    /// The unsent backlog at `now`, which must not be before the last offer.
    pub fn backlog(&mut self, now: Time) -> Backlog {
        if self.ring.records() != Records::Nothing {
            let (packets, bytes) = self.held(now);
            return Backlog {
                packets: Some(u32::try_from(packets).unwrap_or(u32::MAX)),
                bytes: DataSize::new(bytes),
            };
        }
        let end = self.clock.free_at();
        if end <= now {
            return Backlog {
                packets: None,
                bytes: DataSize::ZERO,
            };
        }
        if end.is_never() {
            return Backlog {
                packets: None,
                bytes: DataSize::MAX,
            };
        }
        let (capacity, unused) = match self
            .extras
            .as_ref()
            .and_then(|extras| extras.profile.as_ref())
        {
            None => (
                self.clock.capacity(now, end),
                u128::from(self.clock.slack()),
            ),
            Some(profile) => (profile.capacity(now, end), profile.credit(&self.clock)),
        };
        let bytes = capacity
            .saturating_sub(unused)
            .div_ceil(u128::from(WORK_PER_BYTE));
        Backlog {
            packets: None,
            bytes: DataSize::new(u64::try_from(bytes).unwrap_or(u64::MAX)),
        }
    }

    /// The average queue of random early detection, in packets or bytes as configured, after the
    /// last offer; `None` with other queues.
    pub fn average_queue(&self) -> Option<f64> {
        self.extras
            .as_ref()
            .and_then(|extras| extras.red.as_ref())
            .map(Red::average)
    }
}

impl Extras {
    #[inline(never)]
    fn offer(&mut self, clock: &mut Clock, ring: &mut Ring, now: Time, packet: Packet) -> Outcome {
        let number = self.offered;
        self.offered += 1;
        if packet.bytes > self.largest {
            return Outcome::Dropped(DropCause::TooLarge);
        }
        if self.losses.strike(now, number) {
            return Outcome::Dropped(DropCause::Loss);
        }
        if ring.is_tracked() {
            ring.expire(now);
        }
        let mut marked = false;
        if let Some(red) = &mut self.red {
            let idle = now.since(clock.free_at()).map(|idle| {
                (
                    idle,
                    self.profile
                        .as_ref()
                        .map_or(clock.rate(), |p| p.rate_at(clock, now)),
                )
            });
            let (packets, bytes) = ring.waiting();
            match red.arrive(
                &Found {
                    packets,
                    bytes,
                    idle,
                },
                packet,
            ) {
                Verdict::Drop => return Outcome::Dropped(DropCause::EarlyDrop),
                Verdict::Mark => marked = true,
                Verdict::Pass => {}
            }
        }
        if !ring.has_room(packet.bytes) {
            if let Some(red) = &mut self.red {
                red.overflow();
            }
            return Outcome::Dropped(DropCause::QueueFull);
        }
        let (start, departure) = match &mut self.profile {
            None => (clock.begin(now), clock.transmit(packet.bytes)),
            Some(profile) => (
                profile.begin(clock, now),
                profile.transmit(clock, packet.bytes),
            ),
        };
        if ring.is_tracked() {
            ring.push(departure, packet.bytes);
        }
        self.far_end.deliver(start, departure, marked, number)
    }
}
