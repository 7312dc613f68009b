//! The faults and their times.

use comity_units::{Span, Time};

use crate::side::Side;
use crate::world::World;

/// The path between the ends. All times are those of the world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) loss: f64,
    pub(crate) duplication: f64,
    pub(crate) delay: Span,
    /// The largest extra delay: longer than the gaps between packets, it reorders them.
    pub(crate) jitter: Span,
    /// The largest datagram. Longer ones are lost.
    pub(crate) size: usize,
    /// No datagram arrives before this time.
    pub(crate) outage_until: Time,
}

impl Link {
    pub(crate) const GOOD: Self = Self {
        loss: 0.0,
        duplication: 0.0,
        delay: Span::from_millis(20),
        jitter: Span::ZERO,
        size: 1_472,
        outage_until: Time::ZERO,
    };
}

/// A kind of fault, and the shortest and longest time from one to the next, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Path,
    Outage,
    Move,
    Suspended,
    Killed,
    Idle,
}

const FAULTS: [(Fault, u64, u64); 6] = [
    (Fault::Path, 5, 60),
    (Fault::Outage, 60, 300),
    (Fault::Move, 60, 400),
    (Fault::Suspended, 30, 200),
    (Fault::Killed, 200, 900),
    (Fault::Idle, 200, 1_200),
];

/// When each kind of fault is due.
#[derive(Debug)]
pub(crate) struct Faults([Time; FAULTS.len()]);

impl Faults {
    pub(crate) fn new(world: &mut World) -> Self {
        Self(FAULTS.map(|(_, shortest, longest)| {
            world.now() + Span::from_millis(world.between(shortest * 1_000, longest * 1_000))
        }))
    }

    /// Injects the faults that are due. Returns the time until which the applications are idle.
    pub(crate) fn inject(&mut self, world: &mut World) -> Time {
        let mut idle_until = Time::ZERO;
        for (due, (fault, shortest, longest)) in self.0.iter_mut().zip(FAULTS) {
            if world.now() < *due {
                continue;
            }
            let pause = world.between(shortest * 1_000, longest * 1_000);
            *due = world.now() + Span::from_millis(pause);
            match fault {
                Fault::Path => {
                    let size = world.between(1_232, 1_472) as usize;
                    world.link = Link {
                        loss: [0.0, 0.001, 0.02, 0.2][world.between(0, 3) as usize],
                        duplication: [0.0, 0.05][world.between(0, 1) as usize],
                        delay: Span::from_millis(world.between(2, 120)),
                        jitter: Span::from_millis([0, 5, 60][world.between(0, 2) as usize]),
                        size,
                        outage_until: world.link.outage_until,
                    };
                }
                // Some are longer than the silence that ends a connection.
                Fault::Outage => {
                    let length = world.span(100, 9_000);
                    world.link.outage_until = world.now() + length;
                }
                Fault::Move => world.relocate(),
                Fault::Suspended => {
                    let length = world.span(50, 12_000);
                    let side = world.either();
                    world.suspend(side, length);
                }
                Fault::Killed => {
                    let side = world.either();
                    match side {
                        Side::Caller => world.restart_caller(),
                        Side::Listener => world.restart_listener(),
                    }
                }
                Fault::Idle => idle_until = world.now() + world.span(1_000, 300_000),
            }
        }
        idle_until
    }
}
