//! Where media comes from.

mod connected;
mod feed;
mod media;
mod notice;

use std::net::UdpSocket;

use comity_media::{DeadlineRule, ReaderConfig};
use comity_units::Rate;

use super::line::{Line, LineOptions};
use super::media_unit::Passage;
use super::sockets;
use super::status::Reporter;
use super::trouble::Trouble;
use super::uri::{MediaUri, Uri};
use super::without_secrets;
use crate::args::Sending;
pub(crate) use connected::ConnectedInput;
use media::MediaInput;

/// What the command line says of reading media.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reading {
    /// How many times as fast as it runs a file is read, where that was asked for.
    pub(crate) speed: Option<f64>,
    /// Which deadlines pictures get.
    pub(crate) deadlines: DeadlineRule,
    /// How fast a file is taken to be that does not tell its times.
    pub(crate) assumed_rate: Rate,
}

impl Default for Reading {
    fn default() -> Self {
        let ReaderConfig {
            deadlines,
            assumed_rate,
            ..
        } = ReaderConfig::default();
        Self {
            speed: None,
            deadlines,
            assumed_rate,
        }
    }
}

impl From<&Sending> for Reading {
    fn from(sending: &Sending) -> Self {
        Self {
            speed: sending.speed,
            deadlines: sending.deadlines.into(),
            assumed_rate: sending.input_rate,
        }
    }
}

impl Reading {
    fn config(self) -> ReaderConfig {
        ReaderConfig {
            deadlines: self.deadlines,
            assumed_rate: self.assumed_rate,
            ..ReaderConfig::default()
        }
    }

    /// What is live gives the pace itself, and groups that are due together have to be there before
    /// they are due.
    fn check_live(self, text: &str) -> Result<(), Trouble> {
        if self.speed.is_some() {
            return Err(Trouble::usage(format!(
                "--speed: is for a file, and {} gives the pace itself; expected it with a file, or no --speed",
                without_secrets(text)
            )));
        }
        match self.deadlines {
            DeadlineRule::Group => Err(Trouble::usage(format!(
                "--deadlines: is group, for which a whole group of pictures has to be there before it is due, and {} \
                 gives them one by one; expected it with a file, or --deadlines each",
                without_secrets(text)
            ))),
            DeadlineRule::Each => Ok(()),
        }
    }
}

/// An input that is open.
#[derive(Debug)]
pub(crate) enum Input {
    /// Files, pipes and datagrams.
    Media(Box<MediaInput>),
    /// Sections of another Comity.
    Connected(Box<ConnectedInput>),
}

impl Input {
    /// Opens what `uri`, written as `text`, names.
    pub(crate) fn open(
        uri: &Uri,
        text: &str,
        reading: Reading,
        options: &LineOptions,
        reporter: &Reporter,
    ) -> Result<Self, Trouble> {
        if !matches!(uri, Uri::File(_)) {
            reading.check_live(text)?;
        }
        let config = reading.config();
        let live = |feed| Self::Media(Box::new(MediaInput::live(feed, config)));
        Ok(match uri {
            Uri::Pipe => live(feed::pipe()?),
            Uri::File(path) => match feed::file(path)? {
                (feed, true) => {
                    let input = MediaInput::stored(feed, reading.speed.unwrap_or(1.0), config);
                    Self::Media(Box::new(input))
                }
                (feed, false) => {
                    reading.check_live(text)?;
                    live(feed)
                }
            },
            Uri::Udp(uri) => live(feed::datagrams(receiver(uri, text, reporter)?)?),
            Uri::Rtp(uri) => live(feed::rtp(receiver(uri, text, reporter)?)?),
            Uri::Comity(uri) => {
                let line = Line::open(uri, options, reporter.clone())?;
                let input = ConnectedInput::new(line, options.add_latency, reporter.clone());
                Self::Connected(Box::new(input))
            }
        })
    }

    /// What comes next; `None` when nothing will. A call that is dropped before it is ready loses
    /// nothing.
    pub(crate) async fn next(&mut self) -> Result<Option<Passage>, Trouble> {
        match self {
            Self::Media(input) => input.next().await,
            Self::Connected(input) => input.next().await,
        }
    }

    /// Lets only that come which has been received already.
    pub(crate) fn cut(&mut self) {
        match self {
            Self::Media(input) => input.cut(),
            Self::Connected(input) => input.cut(),
        }
    }

    /// Ends the input since nothing more can be taken; what has been received already still comes.
    pub(crate) fn refuse(&mut self, trouble: &Trouble) {
        match self {
            Self::Media(input) => input.cut(),
            Self::Connected(input) => input.refuse(trouble),
        }
    }

    /// Whether it called, and nobody has answered.
    pub(crate) fn called_in_vain(&self) -> bool {
        match self {
            Self::Media(_) => false,
            Self::Connected(input) => input.called_in_vain(),
        }
    }

    /// Ends the input, and says why where something went wrong.
    pub(crate) async fn close(&mut self, trouble: Option<&Trouble>) {
        match self {
            Self::Media(_) => {}
            Self::Connected(input) => input.close(trouble).await,
        }
    }

    /// Whether it waits until somebody reads it, so that nothing of it is lost before there is a
    /// connection.
    pub(crate) fn is_patient(uri: &Uri) -> bool {
        matches!(uri, Uri::Pipe | Uri::File(_))
    }
}

fn receiver(uri: &MediaUri, text: &str, reporter: &Reporter) -> Result<UdpSocket, Trouble> {
    let socket = sockets::receiver(uri, text)?;
    let local = socket.local_addr();
    let local = local.map_err(|error| Trouble::failed(format!("{text}: {error}")))?;
    reporter.listening(local);
    Ok(socket)
}
