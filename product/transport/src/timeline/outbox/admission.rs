//! The acceptance of sections, and their numbering.

use super::{ArgumentError, Outbox, RECORD, SubmitError};
use crate::timeline::section::{Outgoing, Payload, SectionId, StreamId};
use crate::wire::limits::MAX_SECTION_COUNT;

impl<P: Payload> Outbox<P> {
    /// Sets the maximum length of a section at the peer, in bytes.
    pub const fn set_max_length(&mut self, bytes: u64) {
        self.intake.max_length = bytes;
    }

    /// Sets the maximum number of open sections at the peer. The outbox begins no more than that.
    pub const fn set_max_open(&mut self, sections: u64) {
        self.intake.max_open = sections;
    }

    /// The maximum number of open sections at the peer.
    pub const fn max_open(&self) -> u64 {
        self.intake.max_open
    }

    /// The sections without an outcome, or with one that was not polled yet, and their bytes.
    pub fn held(&self) -> (usize, u64) {
        (self.entries.len() + self.outcomes.len(), self.held)
    }

    /// The memory of the records of all held sections, in bytes: an upper bound. Payloads do not
    /// count.
    pub fn memory(&self) -> u64 {
        self.held().0 as u64 * RECORD
    }

    /// Checks whether a section would be accepted now.
    ///
    /// # Errors
    /// [`SubmitError`] if it would not.
    pub fn check(&self, section: &Outgoing<P>) -> Result<(), SubmitError> {
        let length = section.payload.len();
        self.admit(section.stream, length, section.needs)?;
        Ok(())
    }

    /// The number of the next section of a stream, if it has `count` numbers left.
    pub(super) fn next_number(
        &self,
        stream: StreamId,
        count: u64,
    ) -> Result<SectionId, SubmitError> {
        self.intake.check()?;
        let max = self.config.max_streams;
        let known = self.streams.get(&stream);
        let next = known.map_or(0, |known| known.next);
        Err(match known {
            Some(known) if known.ended => ArgumentError::Finished { stream },
            None if self.streams.len() >= max => ArgumentError::TooManyStreams { stream, max },
            _ if count > MAX_SECTION_COUNT - next => ArgumentError::StreamUsedUp { stream },
            _ => return Ok(SectionId(next)),
        }
        .into())
    }

    /// Checks that a section can be accepted now, and returns its number.
    pub(super) fn admit(
        &self,
        stream: StreamId,
        length: u32,
        needs: Option<SectionId>,
    ) -> Result<SectionId, SubmitError> {
        let section = self.next_number(stream, 1)?;
        if length == 0 {
            return Err(ArgumentError::Empty { stream }.into());
        }
        let max = self.max_length();
        if u64::from(length) > max {
            let too_long = ArgumentError::TooLong {
                stream,
                length,
                max,
            };
            return Err(too_long.into());
        }
        if let Some(needs) = needs.filter(|needs| *needs >= section) {
            let needs_later = ArgumentError::NeedsLater {
                stream,
                section,
                needs,
            };
            return Err(needs_later.into());
        }
        let span = self.streams.get(&stream).map_or(0, |known| known.span());
        self.check_room(u64::from(length), span)?;
        Ok(section)
    }

    /// Whether every stream so far has room for a section of `length` bytes. Also true if there can
    /// never be room for it.
    pub fn has_room(&self, length: u64) -> bool {
        let spans = self.streams.values().filter(|known| !known.ended);
        let span = spans.map(|known| known.span()).max().unwrap_or(0);
        self.never_fits(length) || self.check_room(length, span).is_ok()
    }

    /// Whether there can never be room for a section of `length` bytes.
    pub fn never_fits(&self, length: u64) -> bool {
        self.intake.check().is_err() || length > self.max_length()
    }

    /// Whether the peer can hold one more section of `length` bytes in this stream.
    pub fn fits_peer(&self, stream: StreamId, length: u64) -> bool {
        let span = self.streams.get(&stream).map_or(0, |known| known.span());
        length <= self.max_length() && span < self.max_span()
    }

    /// The maximum number of open sections of a stream: the smaller limit of both ends.
    fn max_span(&self) -> u64 {
        self.intake.max_open.min(self.config.max_sections as u64)
    }

    /// The maximum length of a section, in bytes.
    fn max_length(&self) -> u64 {
        self.intake.max_length.min(self.config.max_bytes)
    }

    /// `span`: the number of open sections of the stream.
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
