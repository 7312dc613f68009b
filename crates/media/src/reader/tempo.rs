//! The time of a program: by its time stamps, or by what takes their place where they do not tell it.

use comity_units::{Bytes, Rate, Span, Time};

use crate::section::{Found, Notice, TimeSource};
use crate::timeline::{Mark, Placed, Timeline};

/// How many units in a row must be without a time stamp that moves before the stamps are given up.
const UNITS: u64 = 8;
/// For how long, by the clock references or by the arrivals, stamps that have moved must stand still before they are
/// given up: the standard lets them be 700 ms apart.
const STILL: Span = Span::from_secs(1);
/// For how long where no stamp was ever seen, or every unit has one that does not move; and for how long by the
/// assumed rate.
const SOON: Span = Span::from_millis(250);
/// How many clock references in a row must be the same before they are given up, until they move again.
const SAMPLES: u64 = 8;
/// How many bytes may come between two clock references: four times the 100 ms of the standard at 80 Mb/s.
const WITHOUT_REFERENCE: u64 = 4 << 20;
/// How far stamps that were given up must move, without standing still, before they are believed again.
const REGAINED: Span = Span::from_secs(1);

/// What there is to measure time by while no stamp does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Yardstick {
    /// Bytes of the source so far.
    pub(super) bytes: u64,
    /// When the latest bytes came, of a source that says so.
    pub(super) arrival: Option<Time>,
}

impl Yardstick {
    /// How long it has been since `earlier`: by the arrivals, or else by the bytes.
    pub(super) fn since(&self, earlier: &Self, rate: Rate) -> Span {
        match (self.arrival, earlier.arrival) {
            (Some(arrival), Some(earlier)) => arrival.saturating_since(earlier),
            _ => rate.transmission_time(Bytes::new(self.bytes.saturating_sub(earlier.bytes))),
        }
    }

    pub(super) fn time_source(&self, rate: Rate) -> TimeSource {
        match self.arrival {
            Some(_) => TimeSource::Arrival,
            None => TimeSource::Rate(rate),
        }
    }
}

/// The clock references of one program.
#[derive(Debug, Default)]
pub(super) struct References {
    timeline: Timeline,
    mark: Option<Mark>,
    /// Where the latest that moved was, or the first, and how many came since that did not.
    moved: Option<Yardstick>,
    unmoved: u64,
    have_moved: bool,
}

impl References {
    pub(super) fn on_reference(&mut self, stamp: u64, yardstick: Yardstick) {
        let before = self.timeline.now();
        self.mark = Some(self.timeline.place(stamp, self.mark).mark);
        let has_moved = self.timeline.now() > before;
        self.have_moved |= has_moved;
        if self.moved.is_none() || has_moved {
            self.moved = Some(yardstick);
            self.unmoved = 0;
        } else {
            self.unmoved += 1;
        }
    }

    pub(super) fn now(&self) -> Time {
        self.timeline.now()
    }

    /// So much time has passed without any.
    pub(super) fn resume_behind(&mut self, passed: Span) {
        self.timeline.resume_at(self.timeline.now() + passed);
    }

    /// Where they moved last.
    pub(super) fn moved(&self) -> Option<Yardstick> {
        self.moved
    }

    /// Whether time can be told by them.
    pub(super) fn are_alive(&self, yardstick: &Yardstick, rate: Rate) -> bool {
        let Some(moved) = &self.moved else {
            return false;
        };
        let waited = yardstick.since(moved, rate);
        // One alone, or one again and again, is none.
        let stand = waited >= SOON && (self.unmoved >= SAMPLES || !self.have_moved);
        let stay_away = match yardstick.arrival {
            Some(_) => waited >= STILL,
            None => yardstick.bytes.saturating_sub(moved.bytes) >= WITHOUT_REFERENCE,
        };
        !stand && !stay_away
    }
}

/// How far the time stamps of one stream have come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    mark: Option<Mark>,
    /// The furthest place, which counts from the beginning with this number; and the time of the program then.
    furthest: Option<(u64, Time, Time)>,
    has_told_still: bool,
}

/// Where a unit lies in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timed {
    pub(super) time: Time,
    pub(super) is_jump: bool,
    /// Whether its own time stamps told it.
    pub(super) by_stamp: bool,
}

#[derive(Clone, Copy, Debug)]
enum Basis {
    Stamps,
    Other(Substitute),
}

/// What tells the time instead of the stamps: `time` was when the yardsticks stood here.
#[derive(Clone, Copy, Debug)]
struct Substitute {
    is_reference: bool,
    time: Time,
    reference: Time,
    yardstick: Yardstick,
    /// Where the stamps were when they began to move again.
    moves_since: Option<Time>,
}

/// The clock of one program.
///
/// It goes by the decoding times as long as those move. Where they are missing or stand still, it goes on from
/// where they moved last: by the program's clock references; where those do not move either, by the arrivals
/// of a live source, or by the bytes of a stored one at an assumed rate. It never goes back.
#[derive(Debug)]
pub(super) struct Tempo {
    pid: u16,
    rate: Rate,
    stamps: Timeline,
    /// How often the places of the stamps were begun anew.
    beginnings: u64,
    pub(super) references: References,
    basis: Basis,
    /// Where the stamps moved last, and what came since that did not move.
    moved: Option<(Yardstick, Time)>,
    has_moved: bool,
    unmoved: u64,
    unstamped: u64,
}

impl Tempo {
    /// The clock of the program whose map has this PID.
    pub(super) fn new(pid: u16, rate: Rate) -> Self {
        Self {
            pid,
            rate,
            stamps: Timeline::default(),
            beginnings: 0,
            references: References::default(),
            basis: Basis::Stamps,
            moved: None,
            has_moved: false,
            unmoved: 0,
            unstamped: 0,
        }
    }

    /// The furthest time so far: that of what carries no time stamp.
    pub(super) fn now(&self, yardstick: &Yardstick) -> Time {
        match &self.basis {
            Basis::Stamps => self.stamps.now(),
            Basis::Other(substitute) => self.substituted(substitute, yardstick),
        }
    }

    /// The source has come to `time` without the program, whose times go on from there when they jump or have stayed
    /// behind.
    pub(super) fn resume_at(&mut self, time: Time, yardstick: &Yardstick) {
        let passed = time.saturating_since(self.now(yardstick));
        self.references.resume_behind(passed);
        self.stamps.resume_at(self.stamps.now() + passed);
    }

    fn substituted(&self, substitute: &Substitute, yardstick: &Yardstick) -> Time {
        substitute.time
            + match substitute.is_reference {
                true => self.references.now().saturating_since(substitute.reference),
                false => yardstick.since(&substitute.yardstick, self.rate),
            }
    }

    /// Places the next unit of the stream with this PID; says what is worth knowing of it.
    pub(super) fn place(
        &mut self,
        stream: (u16, &mut Progress),
        stamp: Option<u64>,
        yardstick: &Yardstick,
        mut tell: impl FnMut(Notice),
    ) -> Timed {
        let (pid, progress) = stream;
        let mut placed = stamp.map(|stamp| self.stamps.place(stamp, progress.mark));
        let has_moved = placed.is_some_and(|placed| self.advance(progress, placed));
        self.count(stamp.is_some(), has_moved, yardstick);
        if self.choose(has_moved, yardstick, &mut tell) {
            placed = stamp.map(|stamp| self.stamps.place(stamp, None));
            placed.map(|placed| self.advance(progress, placed));
        }
        let is_jump = placed.is_some_and(|placed| placed.is_jump);
        match (&self.basis, placed) {
            // A stream's own stamps may stand while those of the others go on.
            (Basis::Stamps, Some(placed)) if !self.lags(progress) => Timed {
                time: placed.time,
                is_jump,
                by_stamp: true,
            },
            (Basis::Stamps, Some(_)) => {
                if !core::mem::replace(&mut progress.has_told_still, true) {
                    tell(Notice::Untimed {
                        pid,
                        found: Found::Still,
                        by: TimeSource::OtherStreams,
                    });
                }
                Timed {
                    time: self.stamps.now(),
                    is_jump,
                    by_stamp: false,
                }
            }
            _ => Timed {
                time: self.now(yardstick),
                is_jump: false,
                by_stamp: false,
            },
        }
    }

    /// Notes where a stamp lies; whether it is further than any of its stream.
    fn advance(&self, progress: &mut Progress, placed: Placed) -> bool {
        progress.mark = Some(placed.mark);
        let has_moved = progress
            .furthest
            .is_none_or(|(beginning, place, _)| beginning < self.beginnings || placed.time > place);
        if has_moved {
            progress.furthest = Some((self.beginnings, placed.time, self.stamps.now()));
        }
        has_moved
    }

    /// Whether the program has gone on for a while since the stamps of this stream moved.
    fn lags(&self, progress: &Progress) -> bool {
        progress
            .furthest
            .is_some_and(|(_, _, then)| self.stamps.now().saturating_since(then) >= STILL)
    }

    fn count(&mut self, has_stamp: bool, has_moved: bool, yardstick: &Yardstick) {
        if has_moved || self.moved.is_none() {
            // A first stamp alone does not move yet.
            self.has_moved |= self.stamps.now() > Time::ZERO;
            self.moved = Some((*yardstick, self.references.now()));
            (self.unmoved, self.unstamped) = (0, 0);
        }
        if !has_moved {
            self.unmoved += 1;
            self.unstamped += u64::from(!has_stamp);
        }
    }

    /// Chooses what the clock goes by from here on; whether it goes by the stamps again.
    fn choose(
        &mut self,
        has_moved: bool,
        yardstick: &Yardstick,
        tell: &mut impl FnMut(Notice),
    ) -> bool {
        let are_alive = self.references.are_alive(yardstick, self.rate);
        match self.basis {
            Basis::Stamps => {
                let Some((moved, reference)) = self.moved else {
                    return false;
                };
                if self.unmoved < UNITS || !self.stand(&moved, reference, are_alive, yardstick) {
                    return false;
                }
                self.basis = Basis::Other(Substitute {
                    is_reference: are_alive,
                    time: self.stamps.now(),
                    reference,
                    yardstick: moved,
                    moves_since: None,
                });
                self.tell_untimed(are_alive, yardstick, tell);
            }
            Basis::Other(mut substitute) => {
                if has_moved {
                    let since = *substitute.moves_since.get_or_insert(self.stamps.now());
                    if self.stamps.now().saturating_since(since) >= REGAINED {
                        let now = self.substituted(&substitute, yardstick);
                        self.stamps.begin_at(now);
                        self.beginnings += 1;
                        self.basis = Basis::Stamps;
                        tell(Notice::TimedAgain { pid: self.pid });
                        return true;
                    }
                } else if self.unmoved >= UNITS {
                    substitute.moves_since = None;
                }
                if substitute.is_reference != are_alive {
                    substitute.time = self.substituted(&substitute, yardstick);
                    substitute.reference = self.references.now();
                    substitute.yardstick = self.references.moved().unwrap_or(*yardstick);
                    substitute.is_reference = are_alive;
                    self.tell_untimed(are_alive, yardstick, tell);
                }
                self.basis = Basis::Other(substitute);
            }
        }
        false
    }

    /// Whether the stamps have stood still for so long that they do not tell the time.
    fn stand(
        &self,
        moved: &Yardstick,
        reference: Time,
        are_alive: bool,
        yardstick: &Yardstick,
    ) -> bool {
        let is_certain = !self.has_moved || self.unstamped == 0;
        let long = if is_certain { SOON } else { STILL };
        let waited = yardstick.since(moved, self.rate);
        match (are_alive, yardstick.arrival) {
            (true, _) => self.references.now().saturating_since(reference) >= long,
            (false, Some(_)) => waited >= long,
            (false, None) => waited >= SOON,
        }
    }

    fn tell_untimed(
        &self,
        by_reference: bool,
        yardstick: &Yardstick,
        tell: &mut impl FnMut(Notice),
    ) {
        let found = match self.unstamped == self.unmoved {
            true => Found::Missing,
            false => Found::Still,
        };
        let by = match by_reference {
            true => TimeSource::ClockReference,
            false => yardstick.time_source(self.rate),
        };
        let pid = self.pid;
        tell(Notice::Untimed { pid, found, by });
    }
}
