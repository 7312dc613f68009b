//! Properties of a controller, in words.

use comity_congestion::table::Row;

/// What drives which transport.
pub(super) fn transports(row: &Row) -> &'static str {
    if row.drives_tcp() {
        "tcp, sections"
    } else {
        "sections"
    }
}

pub(super) fn receiver(row: &Row) -> &'static str {
    if row.has_meter() {
        "measures for the sender"
    } else {
        "acknowledges only"
    }
}

/// What becomes of lost bytes of sections where `reliability` is not given.
pub(super) fn losses(row: &Row) -> &'static str {
    match row.repeats_losses() {
        true => "retransmitted until the deadline (reliability timeline)",
        false => "not retransmitted, as in its paper (reliability none)",
    }
}

/// What stands before the first full stop that ends a sentence.
pub(super) fn first_sentence(text: &str) -> &str {
    let (first, _) = text.split_once(". ").unwrap_or((text, ""));
    first.trim_end_matches('.')
}
