//! The link whose decisions fall when a packet is handed over.

use alloc::boxed::Box;

use comity_units::{Bytes, Seed, Span, Time};

use crate::clock::{Clock, WORK_PER_BYTE};
use crate::config::{ConfigError, DelayProfile, Jitter, LinkConfig, LossPlace, Queue};
use crate::far_end::FarEnd;
use crate::loss::Losses;
use crate::outcome::{Backlog, DropCause, Outcome, Packet, Passage};
use crate::profile::{Profile, Server};
use crate::red::{Found, Red, Verdict};
use crate::ring::Ring;

/// A one-way link that decides the fate of a packet, to the nanosecond of its arrival, when the packet is
/// handed over.
///
/// There is no event for the end of a transmission: the link is a virtual clock that says when it is
/// free again, and, where a limit asks for it, a ring of the departures still to come. That is possible
/// because nothing that happens later changes the fate of a packet in a first-in-first-out queue with
/// drop-tail or RED. Where something does (controlled delay, rates set at run time), use a
/// [`ServedLink`](crate::ServedLink), which gives the same outcomes otherwise.
///
/// ```text
/// start     = max(now, departure of the packet before)
/// departure = start + 8 · bytes / rate          exactly; reported rounded up to a nanosecond
/// arrival   = departure + delay
/// ```
///
/// A plain link (constant rate and delay, drop-tail, nothing random) does this and nothing else; all
/// other properties are behind one pointer.
#[derive(Clone, Debug)]
pub struct ClockedLink {
    clock: Clock,
    delay: Span,
    ring: Ring,
    extras: Option<Box<Extras>>,
}

/// What a plain link does not have.
#[derive(Clone, Debug)]
struct Extras {
    profile: Option<Profile>,
    losses: Losses,
    offered: u64,
    red: Option<Red>,
    far_end: FarEnd,
}

impl ClockedLink {
    /// A link that has never carried a packet. Every random stream is named below `seed`.
    ///
    /// # Errors
    /// When the configuration is not valid, and for controlled delay.
    pub fn new(config: &LinkConfig, seed: Seed) -> Result<Self, ConfigError> {
        config.validate()?;
        let (limit, red) = match &config.queue {
            Queue::DropTail(limit) => (*limit, None),
            Queue::Red(red) => (red.limit, Some(Red::new(red, seed))),
            Queue::CoDel(_) => return Err(ConfigError::NeedsServedLink),
        };
        let Server { clock, profile } = Server::new(&config.rate);
        let delay = match config.delay {
            DelayProfile::Constant(delay) => Some(delay),
            DelayProfile::Steps(_) => None,
        };
        let is_plain = profile.is_none()
            && red.is_none()
            && config.losses.is_empty()
            && config.jitter == Jitter::None
            && config.duplication == 0.0
            && delay.is_some();
        let ring = Ring::new(limit, red.is_some());
        let extras = (!is_plain).then(|| {
            Box::new(Extras {
                profile,
                losses: Losses::new(&config.losses, LossPlace::BeforeQueue, seed),
                offered: 0,
                red,
                far_end: FarEnd::new(config, seed),
            })
        });
        Ok(Self {
            clock,
            delay: delay.unwrap_or_default(),
            ring,
            extras,
        })
    }

    /// Hands a packet over and says what becomes of it. `now` must not decrease from call to call.
    #[inline]
    pub fn offer(&mut self, now: Time, packet: Packet) -> Outcome {
        if let Some(extras) = self.extras.as_deref_mut() {
            return extras.offer(&mut self.clock, &mut self.ring, now, packet);
        }
        let is_tracked = self.ring.is_tracked();
        if is_tracked {
            if now >= self.clock.free_at() {
                self.ring.clear();
            } else {
                self.ring.expire(now);
            }
            if !self.ring.has_room(packet.bytes) {
                return Outcome::Dropped(DropCause::QueueFull);
            }
        }
        let start = self.clock.begin(now);
        let departure = self.clock.transmit(packet.bytes);
        if is_tracked {
            self.ring.push(departure, packet.bytes);
        }
        let arrival = departure + self.delay;
        Outcome::Carried(Passage {
            start,
            departure,
            arrival,
            marked: false,
            duplicate: None,
        })
    }

    /// Whether arrivals, second copies included, come in the order of the offers.
    pub fn keeps_order(&self) -> bool {
        self.extras
            .as_ref()
            .is_none_or(|extras| extras.far_end.keeps_order())
    }

    /// What the link still has to send at `now`, which must not be before the last offer.
    pub fn backlog(&mut self, now: Time) -> Backlog {
        if self.ring.is_tracked() {
            self.ring.expire(now);
            let packets = u32::try_from(self.ring.packets()).unwrap_or(u32::MAX);
            return Backlog {
                packets: Some(packets),
                bytes: Bytes::new(self.ring.bytes()),
            };
        }
        let end = self.clock.free_at();
        if end <= now {
            return Backlog {
                packets: None,
                bytes: Bytes::ZERO,
            };
        }
        if end.is_never() {
            return Backlog {
                packets: None,
                bytes: Bytes::MAX,
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
            bytes: Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX)),
        }
    }

    /// The average queue of random early detection, in packets or bytes as configured, after the last
    /// offer; `None` with other queues.
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
