//! The checker of transport streams against streams whose faults and intervals are known.

mod damage;
mod multiplex;
mod others;
#[path = "../tools/mod.rs"]
mod tools;

use comity_media::check::{Checker, Errors, Indicator, Report, Timing};
use comity_units::{Span, Time};

/// The report about a stored stream.
fn check(bytes: &[u8]) -> Report {
    check_in(bytes.chunks(1_316))
}

fn check_in<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Report {
    let mut checker = Checker::new(Timing::Clock);
    for piece in pieces {
        checker.push(piece);
    }
    checker.finish();
    checker.report()
}

/// The report about a live stream whose datagrams arrive after these times, in nanoseconds.
fn check_live(bytes: &[u8], arrival: impl Fn(u64) -> u64) -> Report {
    let mut checker = Checker::new(Timing::Arrival);
    for (number, datagram) in (0..).zip(bytes.chunks(1_316)) {
        checker.push_arrived(datagram, Time::from_nanos(arrival(number)));
    }
    checker.finish();
    checker.report()
}

/// The indicators that have errors, with their counts.
fn found(errors: &Errors) -> Vec<(Indicator, u64)> {
    let counts = Indicator::ALL.map(|indicator| (indicator, errors.of(indicator).count));
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

fn is_near(value: Span, expected_us: u64, within_us: u64) -> bool {
    value.abs_diff(Span::from_micros(expected_us)) <= Span::from_micros(within_us)
}
