//! What the windows alone say, which is all there is to say for most segments.

use comity_units::Time;

use super::stream::{Outgoing, Stream};
use super::transfer::Transfer;
use crate::tcp::config::Config;

/// What a glance at the windows shows.
enum Glance {
    /// There is nothing to send, or no room for it.
    Nothing,
    /// This leaves.
    Segment(Outgoing),
    /// More than the windows has to be asked.
    Unclear,
}

impl Transfer {
    /// What to send now, if anything. A zero-length answer without a FIN is a window probe.
    #[inline]
    pub(super) fn poll(
        &mut self,
        stream: &mut Stream,
        now: Time,
        config: &Config,
    ) -> Option<Outgoing> {
        match self.glance(stream, now, config) {
            Glance::Nothing => None,
            Glance::Segment(outgoing) => {
                self.burst += 1;
                self.sent(stream, now, outgoing, config)
            }
            Glance::Unclear if stream.line.is_some() || self.may_have_something(stream) => {
                self.poll_with_care(stream, now, config)
            }
            Glance::Unclear => None,
        }
    }

    /// Whether everything was sent and nothing is to be sent again.
    #[inline]
    pub(super) fn is_idle(&self, stream: &Stream) -> bool {
        stream.next >= stream.stream_end() && self.is_quiet && !(self.resend_first | self.probe)
    }

    /// Reads the windows where nothing else has a say. It does not change anything, and
    /// [`Transfer::poll_with_care`] would not either where it says "nothing".
    #[inline]
    fn glance(&self, stream: &Stream, now: Time, config: &Config) -> Glance {
        let windows_decide = self.is_quiet
            && !(self.resend_first | self.probe)
            && self.release_edge == 0
            && self.pace.is_none()
            && config.max_burst.is_none()
            && stream
                .line
                .as_ref()
                .is_none_or(|line| line.is_quiet(now, stream.una))
            && stream.next == stream.max;
        if !windows_decide {
            return Glance::Unclear;
        }
        let outgoing = stream.segment_at(stream.next, stream.stream_end(), config);
        if outgoing.is_empty() {
            return Glance::Nothing;
        }
        let window = self.window.min(stream.peer_window);
        if outgoing.end_of_data() <= stream.una.saturating_add(window) {
            return Glance::Segment(outgoing);
        }
        // A part of a segment may fit into the peer's window, and a window that stays closed is to be probed.
        let room = stream.room_at(stream.next);
        let is_partial = room > 0 && room >= stream.peer_window_max / 2;
        let is_held = self.window < stream.peer_window;
        if is_held || stream.una < stream.next && !is_partial {
            return Glance::Nothing;
        }
        Glance::Unclear
    }
}
