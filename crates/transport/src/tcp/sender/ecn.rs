//! Explicit congestion notification: how a sender marks its packets and reacts to the echo of a
//! mark.

use comity_congestion::recovery::Recovery;
use comity_congestion::{Event, Loss, LossCause};
use comity_units::{Bytes, Time};

use super::super::config::Config;
use super::super::segment::Flags;
use super::flight::Flight;
use super::stream::{Acknowledgement, Outgoing, Stream};
use super::transfer::Transfer;
use crate::datagram::Ecn;

/// The ECN state of departing segments.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// The window was reduced for a mark, and the next new data reports it (CWR).
    owes_notice: bool,
    /// The last segment carries new data, and reports the reduction.
    is_capable: bool,
    is_notice: bool,
}

impl Marks {
    /// Records a departing segment. Only new data is sent as ECN-capable, neither retransmissions
    /// nor segments without payload (RFC 3168, sections 6.1.4 and 6.1.5).
    pub(super) const fn on_sent(&mut self, is_new: bool) {
        self.is_capable = is_new;
        self.is_notice = is_new && self.owes_notice;
        self.owes_notice &= !is_new;
    }

    pub(super) fn of_last(&self) -> (Ecn, Flags) {
        let codepoint = if self.is_capable {
            Ecn::Capable0
        } else {
            Ecn::NotCapable
        };
        let flags = if self.is_notice {
            Flags::CWR
        } else {
            Flags::NONE
        };
        (codepoint, flags)
    }
}

impl Transfer {
    /// Reacts to the echo of a mark as to a loss, once for the data of one window (RFC 3168,
    /// section 6.1.2).
    pub(super) fn on_echo(
        &mut self,
        flight: Option<&mut Flight>,
        stream: &Stream,
        now: Time,
        ack: &Acknowledgement<'_>,
        config: &Config,
    ) {
        let is_news = stream.una > self.reduced_until && stream.una > 0;
        if !config.ecn || !ack.has_echo || !is_news || self.recovery.is_recovering() {
            return;
        }
        let loss = Loss {
            now,
            sent_at: now,
            lost: Bytes::ZERO,
            in_flight: Bytes::new(stream.in_flight()),
            window: Bytes::new(self.window.min(stream.peer_window)),
            cause: LossCause::Mark,
            restart: false,
        };
        self.marks.owes_notice = true;
        self.statistics.marks += 1;
        if let Some(flight) = flight {
            self.reduce(flight, stream, &loss, config);
        } else {
            self.controller.on_event(Event::Loss(&loss));
            self.obey();
            self.reduced_until = stream.max;
        }
    }

    /// Records the ECN state of a departing segment; `max` is where new data began.
    #[inline]
    pub(super) fn mark(&mut self, outgoing: Outgoing, max: u64, config: &Config) {
        if config.ecn {
            self.marks
                .on_sent(outgoing.length > 0 && outgoing.start >= max);
        }
    }
}
