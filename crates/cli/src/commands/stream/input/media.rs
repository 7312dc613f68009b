//! Bytes of media as sections with their times.

use std::time::{Duration, Instant};

use comity_media::{Event, MediaSection, Notice, Reader, ReaderConfig, SourceClock};
use comity_units::{Span, Time};
use tokio::time::sleep_until;

use super::super::now;
use super::super::passing::{Due, Passage, Passing};
use super::super::trouble::Trouble;
use super::feed::{Feed, Piece};

/// Reads media from a [`Feed`]: a file at its own pace, what is live as it comes.
#[derive(Debug)]
pub(crate) struct MediaInput {
    feed: Feed,
    reader: Reader,
    has_ended: bool,
    pace: Pace,
    /// Read, and not yet due.
    pending: Option<Passing>,
    /// Bytes read.
    pub(crate) bytes: u64,
}

#[derive(Debug)]
enum Pace {
    /// A file, read `speed` times as fast as it plays, from `start` on.
    Stored {
        start: Option<Instant>,
        speed: f64,
    },
    Live {
        epoch: Instant,
        clock: SourceClock,
    },
}

impl MediaInput {
    /// What is live.
    pub(crate) fn live(feed: Feed) -> Self {
        Self::new(
            feed,
            Pace::Live {
                epoch: now(),
                clock: SourceClock::live(),
            },
        )
    }

    /// What is stored, to be read `speed` times as fast as it plays.
    pub(crate) fn stored(feed: Feed, speed: f64) -> Self {
        Self::new(feed, Pace::Stored { start: None, speed })
    }

    fn new(feed: Feed, pace: Pace) -> Self {
        Self {
            feed,
            reader: Reader::new(ReaderConfig::default()),
            has_ended: false,
            pace,
            pending: None,
            bytes: 0,
        }
    }

    /// The next section, when it is due; `None` when the source has ended. A call that is dropped before it is
    /// ready loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Option<Passage>, Trouble> {
        loop {
            if let Some(pending) = &self.pending {
                if self.is_stored() {
                    sleep_until(pending.source_time.into()).await;
                }
                return Ok(self.pending.take().map(Passage::Section));
            }
            match self.reader.poll() {
                Some(Event::Section(section)) => {
                    self.pending = Some(self.pace.lay(section));
                    continue;
                }
                Some(Event::Notice(notice)) => return Ok(Some(Passage::Notice(said(&notice)))),
                None if self.has_ended => return Ok(None),
                None => {}
            }
            match self.feed.recv().await {
                Some(Piece::Bytes(bytes)) => {
                    self.bytes += bytes.len() as u64;
                    self.reader.push(&bytes);
                }
                Some(Piece::Notice(notice)) => return Ok(Some(Passage::Notice(notice))),
                Some(Piece::Failed(trouble)) => {
                    // What was read before it still counts.
                    self.reader.finish();
                    self.has_ended = true;
                    return Err(trouble);
                }
                Some(Piece::End) | None => {
                    self.reader.finish();
                    self.has_ended = true;
                }
            }
        }
    }

    /// Takes what a live source has given so far for all that it gives: what is held then comes out at once. Of a
    /// file, the rest is left.
    pub(crate) fn cut(&mut self) {
        if self.has_ended {
            return;
        }
        self.has_ended = true;
        if self.is_stored() {
            self.pending = None;
            self.reader = Reader::new(ReaderConfig::default());
            return;
        }
        while let Ok(Piece::Bytes(bytes)) = self.feed.try_recv() {
            self.bytes += bytes.len() as u64;
            self.reader.push(&bytes);
        }
        self.reader.finish();
    }

    const fn is_stored(&self) -> bool {
        matches!(self.pace, Pace::Stored { .. })
    }
}

impl Pace {
    /// Puts a section on this host's clock.
    fn lay(&mut self, section: MediaSection) -> Passing {
        let deadline = Duration::from(section.deadline);
        let (source_time, deadline) = match self {
            Self::Stored { start, speed } => {
                let start = *start.get_or_insert_with(now);
                let after = Duration::from(section.source_time.saturating_since(Time::ZERO));
                (start + after.div_f64(*speed), deadline.div_f64(*speed))
            }
            Self::Live { epoch, clock } => {
                let arrival = Time::ZERO + Span::from(now().saturating_duration_since(*epoch));
                clock.on_section(arrival, &section);
                let available = clock.available(section.source_time);
                (
                    *epoch + Duration::from(available.saturating_since(Time::ZERO)),
                    deadline,
                )
            }
        };
        Passing {
            stream: section.stream,
            number: section.number,
            importance: section.importance.0,
            source_time,
            due: Due::AfterLatency(deadline),
            needs: section.needs,
            payload: section.payload.clone(),
            media: Some(section),
        }
    }
}

/// What a notice means for who sends the source.
fn said(notice: &Notice) -> String {
    match *notice {
        Notice::UnknownFormat => "the input is no video that is known here (neither a transport stream nor MPEG-1 or \
             MPEG-2 video): it is sent in slices of 20 ms as if it had 4 Mb/s, without knowing what \
             matters in it"
            .into(),
        Notice::NoProgram { bytes } => format!(
            "the transport stream has no program map in its first {bytes} bytes: it is sent in slices, \
             without knowing what matters in it"
        ),
        Notice::NoPictures { bytes } => format!(
            "the video has no picture in {bytes} bytes where one has to be: from there on it is sent in slices"
        ),
        Notice::UnsupportedCodec { pid, stream_type } => format!(
            "PID {pid} has the stream type {stream_type:#04x}, which is not known: it is sent whole, without \
             frame types"
        ),
        Notice::Scrambled { pid } => {
            format!("PID {pid} is scrambled: its packets are sent as they are, in slices")
        }
        Notice::Unreferenced { pid } => {
            format!("PID {pid} belongs to no program: its packets are left out")
        }
        Notice::LostSync { skipped } => {
            format!("the transport stream lost its rhythm: {skipped} bytes were left out")
        }
        Notice::Damaged { pid } => {
            format!("PID {pid}: part of an access unit is missing at the source; all of it is left out")
        }
        Notice::Oversized { pid, bytes } => {
            format!("PID {pid}: an access unit of more than {bytes} bytes is left out")
        }
        Notice::Discontinuity { pid } => {
            format!("PID {pid}: the times of the source jumped")
        }
        _ => format!("{notice:?}"),
    }
}
