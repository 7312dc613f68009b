//! Virtual time for a caller and a listener with a path between them.
#![allow(
    unreachable_pub,
    reason = "each test binary has it as a private module"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use comity::session::{Caller, Listener};
use comity::transport::Transport;
use comity::{ConnectError, Connection, Endpoint};
use comity_units::Time;

/// A busy machine may take seconds to answer a call.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Turns a hang into a failure.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(120), what)
        .await
        .expect("somebody waits for ever")
}

/// Both ends of a call to this endpoint. If the call fails, this ends too: the endpoint accepts
/// nobody then.
pub async fn opened(
    call: impl Future<Output = Result<Connection, ConnectError>>,
    endpoint: &Endpoint,
) -> (Connection, Connection) {
    let accepted = async { Ok(endpoint.accept().await.expect("the endpoint is open")) };
    tokio::try_join!(call, accepted).expect("the call succeeds")
}

/// Datagrams in flight, ordered by arrival and then by departure.
pub type Flights<F> = BTreeMap<(Time, u64), F>;

/// The parts of a [`World`].
pub struct Parts<'a, F> {
    pub now: &'a mut Time,
    pub flights: &'a mut Flights<F>,
    pub caller: &'a mut Caller<Transport>,
    pub listener: &'a mut Listener<Transport>,
}

impl<F> Parts<'_, F> {
    /// Moves the clock to the next event: a datagram or a timer. Returns the datagrams that have
    /// arrived by then, in order. Returns `None` if nothing happens until `until`, and moves the
    /// clock there.
    fn step(&mut self, until: Time) -> Option<Vec<F>> {
        let flight = self.flights.keys().next().map_or(Time::MAX, |key| key.0);
        let timers = self.caller.next_timer().min(self.listener.next_timer());
        let next = flight.min(timers);
        if next > until {
            *self.now = until;
            return None;
        }
        // A late pacer requests a time in the past.
        *self.now = (*self.now).max(next);
        let later = self.flights.split_off(&(*self.now, u64::MAX));
        let arrived = std::mem::replace(self.flights, later);
        Some(arrived.into_values().collect())
    }

    /// Fires the timers that are due.
    fn ring(&mut self) {
        let now = *self.now;
        if self.caller.next_timer() <= now {
            self.caller.on_timer(now);
        }
        if self.listener.next_timer() <= now {
            self.listener.on_timer(now);
        }
    }
}

/// A caller and a listener with a path between them.
pub trait World {
    /// A datagram on its way.
    type Flight;

    fn parts(&mut self) -> Parts<'_, Self::Flight>;

    /// Delivers a datagram to its receiver.
    fn arrive(&mut self, flight: Self::Flight);

    /// Lets both ends send what they can now.
    fn settle(&mut self);

    /// Lets time pass until `until`.
    fn run(&mut self, until: Time) {
        self.settle();
        while let Some(arrived) = self.parts().step(until) {
            for flight in arrived {
                self.arrive(flight);
            }
            self.parts().ring();
            self.settle();
        }
    }
}
