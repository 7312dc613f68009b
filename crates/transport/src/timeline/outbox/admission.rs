//! What an outbox accepts: the one decision, and the one place that numbers sections.

use super::{IntakeError, Outbox, SubmitError};
use crate::timeline::section::{Payload, SectionId, StreamId};
use crate::wire::limits::MAX_SECTION_COUNT;

impl<P: Payload> Outbox<P> {
    /// The longest section that the peer can hold, in bytes.
    pub const fn set_max_length(&mut self, bytes: u64) {
        self.intake.max_length = bytes;
    }

    /// How many sections the peer keeps apart: no more are begun beside those that have no outcome.
    pub const fn set_max_open(&mut self, sections: u64) {
        self.intake.max_open = sections;
    }

    /// How many sections the peer keeps apart.
    pub const fn max_open(&self) -> u64 {
        self.intake.max_open
    }

    /// Sections and their bytes that wait to be settled, or for somebody to ask what became of
    /// them.
    pub fn held(&self) -> (usize, u64) {
        (self.entries.len() + self.outcomes.len(), self.held)
    }

    /// The number of the next section of a stream, if it has `count` numbers left.
    pub(super) fn next_number(
        &self,
        stream: StreamId,
        count: u64,
    ) -> Result<SectionId, IntakeError> {
        self.intake.check()?;
        match self.streams.get(&stream) {
            Some(known) if known.ended => Err(IntakeError::Ended { stream }),
            Some(known) if count > MAX_SECTION_COUNT - known.next => {
                Err(IntakeError::UsedUp { stream })
            }
            Some(known) => Ok(SectionId(known.next)),
            None if self.streams.len() >= self.config.max_streams => {
                let limit = self.config.max_streams;
                Err(IntakeError::TooManyStreams { limit })
            }
            None if count > MAX_SECTION_COUNT => Err(IntakeError::UsedUp { stream }),
            None => Ok(SectionId(0)),
        }
    }

    /// The number that a section gets if it is accepted now.
    pub(super) fn admit(
        &self,
        stream: StreamId,
        length: u32,
        needs: Option<SectionId>,
    ) -> Result<SectionId, SubmitError> {
        let section = self.next_number(stream, 1)?;
        if length == 0 {
            return Err(SubmitError::Empty { stream });
        }
        let limit = self.max_length();
        if u64::from(length) > limit {
            return Err(SubmitError::TooLong { length, limit });
        }
        if let Some(needs) = needs.filter(|needs| *needs >= section) {
            return Err(SubmitError::NeedsLater {
                stream,
                section,
                needs,
            });
        }
        let span = self.streams.get(&stream).map_or(0, |known| known.span());
        self.check_room(u64::from(length), span)?;
        Ok(section)
    }

    /// Whether there is room for a section of `length` bytes in every stream so far, or there never
    /// will be.
    pub fn has_room(&self, length: u64) -> bool {
        let spans = self.streams.values().filter(|known| !known.ended);
        let span = spans.map(|known| known.span()).max().unwrap_or(0);
        self.intake.check().is_err()
            || length > self.max_length()
            || self.check_room(length, span).is_ok()
    }

    /// Whether the peer can hold one more section of `length` bytes in this stream.
    pub fn fits_peer(&self, stream: StreamId, length: u64) -> bool {
        let span = self.streams.get(&stream).map_or(0, |known| known.span());
        length <= self.max_length() && span < self.max_span()
    }

    /// How many sections of a stream may be apart: the smaller of this end's limit and the peer's.
    fn max_span(&self) -> u64 {
        self.intake.max_open.min(self.config.max_sections as u64)
    }

    /// The longest section that can be sent, in bytes.
    fn max_length(&self) -> u64 {
        self.intake.max_length.min(self.config.max_bytes)
    }

    /// `span`: how many sections of the stream the peer keeps apart already.
    fn check_room(&self, length: u64, span: u64) -> Result<(), SubmitError> {
        let limit = self.config.max_sections as u64;
        if self.held().0 as u64 >= limit {
            return Err(SubmitError::TooManySections { limit });
        }
        let limit = self.max_span();
        if span >= limit {
            return Err(SubmitError::TooManySections { limit });
        }
        if length > self.config.max_bytes.saturating_sub(self.held) {
            return Err(SubmitError::TooManyBytes {
                held: self.held,
                length: u32::try_from(length).unwrap_or(u32::MAX),
                limit: self.config.max_bytes,
            });
        }
        Ok(())
    }
}
