//! Where media goes.

mod connected;
mod fates;
mod ledger;
mod leg;
mod media;
mod target;

use std::future::pending;

use comity::Reliability;
use comity::uri::Uri as ComityUri;
use comity_congestion::table;

use super::line::{Line, LineOptions};
use super::media_unit::{MediaUnit, Missing};
use super::sockets;
use super::status::Reporter;
use super::trouble::Trouble;
use super::uri::Uri;
pub(crate) use connected::{ConnectedOutput, Copying, Listed, Unsent};
pub(crate) use media::{MediaOutput, Room, Written};

/// An output that is open.
#[derive(Debug)]
pub(crate) enum Output {
    /// Files, pipes and datagrams.
    Media(Box<MediaOutput>),
    /// Sections to another Comity.
    Connected(Box<ConnectedOutput>),
}

impl Output {
    /// Opens what `uri`, written as `text`, names. Bytes that are not written yet have `room`
    /// there.
    pub(crate) fn open(
        uri: &Uri,
        text: &str,
        room: Room,
        copying: Copying,
        options: &LineOptions,
        reporter: &Reporter,
    ) -> Result<Self, Trouble> {
        let datagrams = |uri, as_rtp| {
            let socket = sockets::sender(uri, text)?;
            MediaOutput::datagrams(text, socket, uri.payload, as_rtp, room)
        };
        let media = match uri {
            Uri::Pipe => MediaOutput::pipe(room)?,
            Uri::File(path) => MediaOutput::file(path, room)?,
            Uri::Udp(uri) => datagrams(uri, false)?,
            Uri::Rtp(uri) => datagrams(uri, true)?,
            Uri::Comity(uri) => {
                let line = Line::open(uri, options, reporter.clone())?;
                tell_of_losses(uri, reporter);
                let settings = &uri.settings;
                let asked = (settings.effective_reliability(), settings.send_buffer);
                let output = ConnectedOutput::new(line, asked, copying, reporter.clone());
                return Ok(Self::Connected(Box::new(output)));
            }
        };
        Ok(Self::Media(Box::new(media)))
    }

    /// Whether it goes anywhere, or once did.
    pub(crate) fn was_ready(&self) -> bool {
        match self {
            Self::Media(_) => true,
            Self::Connected(output) => output.is_connected() || output.was_connected(),
        }
    }

    /// Whether it called, and nobody has answered.
    pub(crate) fn called_in_vain(&self) -> bool {
        match self {
            Self::Media(_) => false,
            Self::Connected(output) => output.called_in_vain(),
        }
    }

    /// Whether it goes anywhere now.
    pub(crate) fn is_ready(&self) -> bool {
        match self {
            Self::Media(_) => true,
            Self::Connected(output) => output.is_connected(),
        }
    }

    /// Whether more may be written: where nothing is left out, what came before may still wait for
    /// room. That changes while the output is looked after.
    pub(crate) fn has_room(&self) -> bool {
        match self {
            // A write waits for its own room.
            Self::Media(_) => true,
            Self::Connected(output) => output.has_room(),
        }
    }

    /// Looks after the output; returns when something has changed. A call that is dropped before it
    /// is ready loses nothing.
    pub(crate) async fn tend(&mut self) -> Result<Written, Trouble> {
        match self {
            Self::Media(output) => match output.ended().await? {
                Written::ReaderGone => Ok(Written::ReaderGone),
                // It ends otherwise only when it is told to.
                _ => pending().await,
            },
            Self::Connected(output) => output.tend().await.map(|()| Written::Yes),
        }
    }

    /// Takes a section, which [`flush`](Self::flush) gives on.
    pub(crate) fn write(&mut self, passing: &MediaUnit) -> Written {
        match self {
            Self::Media(output) => output.write(passing),
            Self::Connected(output) => {
                output.write(passing);
                Written::Yes
            }
        }
    }

    /// Gives on what was taken, as far as that has to wait for a disk or a reader. A call that is
    /// dropped before it is ready loses nothing.
    pub(crate) async fn flush(&mut self) -> Result<Written, Trouble> {
        match self {
            Self::Media(output) => output.flush().await,
            Self::Connected(_) => Ok(Written::Yes),
        }
    }

    /// The sections that are known not to have arrived since the last call, where that is followed.
    pub(crate) fn take_missing(&mut self) -> Vec<Missing> {
        match self {
            Self::Media(_) => Vec::new(),
            Self::Connected(output) => output.take_missing(),
        }
    }

    /// The sections that were taken and could not be written, since the last call.
    pub(crate) fn take_unwritten(&mut self) -> Vec<Missing> {
        match self {
            Self::Media(output) => output.take_unwritten(),
            Self::Connected(_) => Vec::new(),
        }
    }

    /// Whether it was not possible to write on.
    pub(crate) fn has_failed(&self) -> bool {
        match self {
            Self::Media(output) => output.has_failed(),
            Self::Connected(_) => false,
        }
    }

    /// Says that a section is missing, where somebody can be told.
    pub(crate) fn skip(&mut self, missing: &Missing) {
        match self {
            Self::Media(_) => {}
            Self::Connected(output) => output.skip(missing),
        }
    }

    /// Waits until everything has gone where it was to go.
    pub(crate) async fn finish(&mut self) -> Result<(), Trouble> {
        match self {
            Self::Media(output) => output.finish().await,
            Self::Connected(output) => output.finish().await,
        }
    }
}

/// Says so where the controller has it that nothing is retransmitted.
fn tell_of_losses(uri: &ComityUri, reporter: &Reporter) {
    let name = &uri.settings.controller;
    if uri.settings.effective_reliability() == Reliability::None
        && table::find(name).is_ok_and(|row| !row.repeats_losses())
    {
        reporter.note(&format!(
            "cc={name}: what is lost is not sent again, as in its paper; reliability=timeline in the URI sends it again \
             until its deadline"
        ));
    }
}
