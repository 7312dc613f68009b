//! The last loss episode reported to the controller, and the losses that belong to it.

use comity_units::Time;

/// One reaction of the controller, and the losses that belong to it: those of packets that left
/// after the previous reaction and before this one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Episode {
    /// When it began.
    began_at: Option<Time>,
    /// When the previous one began.
    before: Option<Time>,
    /// The number of packets lost in it, without spurious losses.
    lost: u64,
    /// Whether the controller is still in recovery: no packet that left after the episode began is
    /// acknowledged yet.
    is_open: bool,
    /// The departure time of the newest packet acknowledged so far.
    acknowledged_sent_at: Time,
}

/// The effect of an acknowledgement on an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// There is no open episode.
    None,
    /// The acknowledgement has only packets that left before the episode began.
    Repairing,
    /// The acknowledgement is the first with a packet that left after the episode began.
    Recovered,
}

impl Episode {
    /// No packet is lost yet, and no packet that left before `now` counts as acknowledged.
    pub(super) fn from(now: Time) -> Self {
        Self {
            acknowledged_sent_at: now,
            ..Self::default()
        }
    }

    /// Whether there was an episode.
    pub(super) const fn has_begun(&self) -> bool {
        self.began_at.is_some()
    }

    /// The departure time of the newest packet acknowledged so far.
    pub(super) const fn acknowledged_sent_at(&self) -> Time {
        self.acknowledged_sent_at
    }

    /// Whether the loss of a packet that left at `sent_at` begins a new episode.
    pub(super) fn is_over_for(&self, sent_at: Time) -> bool {
        self.began_at.is_none_or(|began_at| sent_at > began_at)
    }

    /// Whether the loss of a packet that left at `sent_at` belongs to this episode.
    fn has(&self, sent_at: Time) -> bool {
        self.began_at.is_some_and(|began_at| sent_at <= began_at)
            && self.before.is_none_or(|before| sent_at > before)
    }

    pub(super) const fn begin(&mut self, now: Time) {
        self.before = self.began_at.replace(now);
        self.lost = 0;
        self.is_open = true;
    }

    pub(super) fn on_lost(&mut self, sent_at: &[Time]) {
        let lost = sent_at.iter().filter(|sent_at| self.has(**sent_at));
        self.lost += lost.count() as u64;
    }

    /// Packets that had been declared lost arrived. Returns whether no loss of this episode
    /// remains.
    pub(super) fn on_late(&mut self, sent_at: &[Time]) -> bool {
        let late = sent_at.iter().filter(|sent_at| self.has(**sent_at));
        let before = self.lost;
        self.lost = before.saturating_sub(late.count() as u64);
        before > 0 && self.lost == 0
    }

    /// A packet that left at `sent_at` was acknowledged. Returns the departure time of the newest
    /// packet acknowledged before it.
    pub(super) fn on_acknowledged(&mut self, sent_at: Time) -> Time {
        let before = self.acknowledged_sent_at;
        self.acknowledged_sent_at = before.max(sent_at);
        before
    }

    /// The newest packet of an acknowledgement left at `sent_at`.
    pub(super) fn on_progress(&mut self, sent_at: Time) -> Progress {
        if !self.is_open {
            return Progress::None;
        }
        self.is_open = !self.is_over_for(sent_at);
        match self.is_open {
            true => Progress::Repairing,
            false => Progress::Recovered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn losses_of_packets_before_the_reaction_belong_to_its_episode() {
        let mut episode = Episode::default();
        assert!(episode.is_over_for(at(10)) && !episode.has_begun());
        episode.begin(at(100));
        assert!(!episode.is_over_for(at(100)) && episode.is_over_for(at(101)));
    }

    #[test]
    fn an_episode_is_spurious_once_all_its_losses_arrived_late() {
        let mut episode = Episode::default();
        episode.begin(at(100));
        episode.begin(at(200));
        // The first belongs to the previous episode.
        episode.on_lost(&[at(90), at(110), at(120)]);
        assert!(!episode.on_late(&[at(90)]));
        assert!(!episode.on_late(&[at(110)]));
        assert!(episode.on_late(&[at(120)]));
        assert!(!episode.on_late(&[at(120)]), "only once");
    }

    #[test]
    fn an_episode_ends_with_the_first_acknowledgement_of_a_later_packet() {
        let mut episode = Episode::default();
        assert_eq!(episode.on_progress(at(1)), Progress::None);
        episode.begin(at(100));
        assert_eq!(episode.on_progress(at(100)), Progress::Repairing);
        assert_eq!(episode.on_progress(at(101)), Progress::Recovered);
        assert_eq!(episode.on_progress(at(102)), Progress::None);
    }

    #[test]
    fn the_newest_acknowledged_packet_is_the_one_that_left_last() {
        let mut episode = Episode::from(at(50));
        assert_eq!(episode.on_acknowledged(at(70)), at(50));
        assert_eq!(episode.on_acknowledged(at(60)), at(70));
        assert_eq!(episode.acknowledged_sent_at(), at(70));
    }
}
