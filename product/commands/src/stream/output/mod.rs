//! The destinations of media.

mod beginning;
mod ledger;
mod media;
mod slow;
mod target;

use comity::Reliability;
use comity::uri::Uri as ComityUri;
use comity_congestion::table;
use comity_stream::{Counters, Error, Fanout, FanoutOptions, MediaUnit, Missing, Sink, Written};

use super::connect::{Connecting, Purpose};
use super::overwrite::Existing;
use super::sockets;
use super::status::Reporter;
use super::uri::Uri;
use media::MediaOutput;
pub(crate) use media::Room;

/// An open output.
#[derive(Debug)]
pub(crate) enum Output {
    /// Files, pipes and datagrams.
    Media(Box<MediaOutput>),
    /// Sections to other Comity endpoints.
    Connected(Box<Fanout>),
}

impl Output {
    /// Opens the output that `uri`, written as `text`, names. `room` limits the bytes that wait to
    /// be written, and `existing` states how to treat an existing file.
    pub(crate) fn open(
        uri: &Uri,
        text: &str,
        (room, existing): (Room, Existing),
        options: FanoutOptions,
        connecting: &Connecting<'_>,
    ) -> Result<Self, super::error::Error> {
        let datagrams = |uri, as_rtp| {
            let socket = sockets::sender(uri, text)?;
            MediaOutput::datagrams(text, socket, uri, as_rtp, room)
        };
        let media = match uri {
            Uri::Pipe => MediaOutput::pipe(room)?,
            Uri::File(path) => MediaOutput::file(path, existing, room)?,
            Uri::Udp(uri) => datagrams(uri, false)?,
            Uri::Rtp(uri) => datagrams(uri, true)?,
            Uri::Comity(uri) => {
                let max_served = options.max_subscribers;
                let dialer = connecting.dialer(uri, Purpose::Send { max_served })?;
                warn_of_losses(uri, connecting.reporter);
                return Ok(Self::Connected(Box::new(Fanout::new(dialer, options))));
            }
        };
        Ok(Self::Media(Box::new(
            media.with_warnings(connecting.reporter),
        )))
    }
}

/// Applies an expression to either kind of output.
macro_rules! either {
    ($output:ident, $name:ident => $done:expr) => {
        match $output {
            Self::Media($name) => $done,
            Self::Connected($name) => $done,
        }
    };
}

impl Sink for Output {
    fn is_ready(&self) -> bool {
        either!(self, output => output.is_ready())
    }

    fn was_ready(&self) -> bool {
        either!(self, output => output.was_ready())
    }

    fn is_unanswered(&self) -> bool {
        either!(self, output => output.is_unanswered())
    }

    fn has_room(&self) -> bool {
        either!(self, output => output.has_room())
    }

    async fn tend(&mut self) -> Result<Written, Error> {
        either!(self, output => output.tend().await)
    }

    fn write(&mut self, unit: &MediaUnit) -> Written {
        either!(self, output => output.write(unit))
    }

    async fn flush(&mut self) -> Result<Written, Error> {
        either!(self, output => output.flush().await)
    }

    fn skip(&mut self, missing: &Missing) {
        either!(self, output => output.skip(missing));
    }

    fn take_missing(&mut self) -> Vec<Missing> {
        either!(self, output => output.take_missing())
    }

    fn take_unwritten(&mut self) -> Vec<Missing> {
        either!(self, output => output.take_unwritten())
    }

    fn has_failed(&self) -> bool {
        either!(self, output => output.has_failed())
    }

    fn abandon(&mut self) {
        either!(self, output => output.abandon());
    }

    async fn finish(&mut self) -> Result<(), Error> {
        either!(self, output => output.finish().await)
    }

    fn counters(&self) -> Counters {
        either!(self, output => output.counters())
    }
}

/// Warns that the controller does not retransmit.
fn warn_of_losses(uri: &ComityUri, reporter: &Reporter) {
    let name = &uri.settings.controller;
    if uri.settings.effective_reliability() == Reliability::None
        && table::find(name).is_ok_and(|row| !row.repeats_losses)
    {
        reporter.note(&format!(
            "cc={name}: lost packets are not retransmitted, as in its paper; reliability=timeline in the URI \
             retransmits them until their deadline"
        ));
    }
}
