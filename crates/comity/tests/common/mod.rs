//! Virtual time for a caller and a listener with a path between them.
#![allow(
    unreachable_pub,
    reason = "each test binary has it as a private module"
)]

use std::collections::BTreeMap;

use comity::Transport;
use comity::session::{Caller, Listener};
use comity_units::Time;

/// Datagrams in flight, ordered by arrival and then by departure.
pub type Flights<F> = BTreeMap<(Time, u64), F>;

/// Moves the clock to the next event: a datagram or a timer. Returns the datagrams that have
/// arrived by then, in order. Returns `None` if nothing happens until `until`, and moves the clock
/// there.
pub fn step<F>(
    now: &mut Time,
    until: Time,
    flights: &mut Flights<F>,
    caller: &Caller<Transport>,
    listener: &Listener<Transport>,
) -> Option<Vec<F>> {
    let flight = flights.keys().next().map_or(Time::MAX, |key| key.0);
    let next = flight.min(caller.next_timer()).min(listener.next_timer());
    if next > until {
        *now = until;
        return None;
    }
    // A late pacer requests a time in the past.
    *now = (*now).max(next);
    let later = flights.split_off(&(*now, u64::MAX));
    let arrived = std::mem::replace(flights, later);
    Some(arrived.into_values().collect())
}

/// Fires the timers that are due.
pub fn ring(now: Time, caller: &mut Caller<Transport>, listener: &mut Listener<Transport>) {
    if caller.next_timer() <= now {
        caller.on_timer(now);
    }
    if listener.next_timer() <= now {
        listener.on_timer(now);
    }
}
