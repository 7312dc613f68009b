//! The events of a relay, as messages and in the list of gaps.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use comity::PathSize;
use comity::causes::RefusedCaller;
use comity::parts::UDP_IPV6;
use comity_stream::{Event, Notice, Observer, plain};

use super::error::hint;
use super::gaps::SharedGaps;
use super::status::{Deadlines, Reporter};
use crate::clock::now;

/// The maximum number of individual notices of one kind.
const MAX_NOTICES: u64 = 20;

/// A notice within this time from the start concerns the whole source.
const AT_THE_BEGINNING: Duration = Duration::from_millis(500);

/// Reports events to `reporter`, and lists missing sections in `gaps`.
pub(crate) fn observer(
    reporter: Reporter,
    gaps: SharedGaps,
    began: Instant,
    deadlines: Deadlines,
) -> Observer {
    Observer::new(move |event| {
        match event {
        Event::Connected(connection) => reporter.connected(connection, deadlines),
        Event::Disconnected(connection, end) => reporter.disconnected(connection, end),
        Event::Redialling {
            was_connected,
            error,
        } => {
            let awaited = match was_connected {
                true => "no new connection yet",
                false => "no connection yet",
            };
            reporter.note(&format!("{awaited}, still calling: {error}{}", hint(error)));
        }
        Event::Refused {
            from,
            word,
            why,
            more,
        } => reporter.refused(plain(*from), word, &refusal(*why), *more),
        Event::PathSize(peer, size) => report_size(&reporter, *peer, *size),
        Event::LeftBehind { peer, max_bytes } => reporter.warn(&format!(
            "{peer} is more than {max_bytes} bytes behind another receiver; it was disconnected, so that the others \
             need not wait. It may call again; a larger sndbuf tolerates a longer backlog"
        )),
        Event::Missing(missing) => gaps.add(missing, &reporter),
        Event::Notice(notice, count) => report_notice(&reporter, notice, *count, began),
        Event::Undrained(error) => reporter.warn(&format!("{error}{}", hint(error))),
        _ => {}
    }
    })
}

fn report_size(reporter: &Reporter, peer: SocketAddr, size: PathSize) {
    let PathSize { datagram, max, .. } = size;
    match datagram < max {
        true => reporter.warn(&format!(
            "the path to {peer} carries datagrams of {datagram} bytes, but not of {max}: from now on, packets \
             are not larger. mtu={} in the URI starts with this size",
            datagram + UDP_IPV6
        )),
        false => reporter.note(&format!(
            "the path to {peer} carries datagrams of {max} bytes again"
        )),
    }
}

fn report_notice(reporter: &Reporter, notice: &Notice, count: u64, began: Instant) {
    let elapsed = now().saturating_duration_since(began);
    let text = match elapsed >= AT_THE_BEGINNING {
        // `comity check` reports the times of the stream instead.
        true => format!(
            "{:.1} s after the start: {}",
            elapsed.as_secs_f64(),
            notice.text
        ),
        false => notice.text.clone(),
    };
    match count {
        ..MAX_NOTICES => reporter.warn(&text),
        MAX_NOTICES => reporter.warn(&format!(
            "{text}; more notices of this kind are counted but not printed"
        )),
        _ => {}
    }
}

/// Why a caller was refused, and what to do about it.
fn refusal(why: Option<&RefusedCaller>) -> String {
    match why {
        None => "too many callers wait to be served; it may call again".into(),
        Some(RefusedCaller::Unproven) => {
            "its passphrase or key is wrong; both ends need the same passphrase=.., or each other's public keys".into()
        }
        Some(RefusedCaller::UnknownKey(key)) => {
            format!("its key {key} is not on the allow=.. list; add it there to let it in")
        }
        Some(why @ RefusedCaller::Pattern(_)) => {
            format!("{why}; both ends need the same kind: a passphrase, keys, or --insecure")
        }
        Some(RefusedCaller::Busy) => {
            "this listener serves another caller; it may call again when that one is done".into()
        }
        Some(why @ RefusedCaller::Stream { .. }) => {
            format!("{why}; both ends need the same streamid, or the caller none")
        }
        Some(why) => why.to_string(),
    }
}
