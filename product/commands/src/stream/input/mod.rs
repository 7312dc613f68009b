//! The sources of media.

mod feed;
mod lead;
mod media;
mod notice;
mod overrun;
mod silence;
mod waiting;

use std::net::UdpSocket;
use std::time::Duration;

use comity::Deliver;
use comity_media::{Damaged, DeadlineRule, ReaderConfig};
use comity_stream::{Counters, Receiver, Source, SourceItem};
use comity_units::Rate;

use super::connect::{Connecting, Purpose};
use super::error::Error;
use super::sockets;
use super::status::Reporter;
use super::uri::{MediaUri, Uri, without_secrets};
use crate::args::Sending;
use media::MediaInput;
pub(crate) use notice::{NOTICES, RTP_RIVAL, looks_like_rtp};

/// The options of the command line for reading media.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reading {
    /// The requested pace of a file relative to its own.
    pub(crate) speed: Option<f64>,
    /// The rule for deadlines of pictures.
    pub(crate) deadlines: DeadlineRule,
    /// The requested rate of a file without times.
    pub(crate) assumed_rate: Option<Rate>,
    /// How to treat units that are incomplete at the source.
    pub(crate) damaged: Damaged,
    /// Whether to carry the input as bytes, without parsing it for pictures.
    pub(crate) is_opaque: bool,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            speed: None,
            deadlines: ReaderConfig::default().deadlines,
            assumed_rate: None,
            damaged: Damaged::Pass,
            is_opaque: false,
        }
    }
}

impl From<&Sending> for Reading {
    fn from(sending: &Sending) -> Self {
        Self {
            speed: sending.speed,
            deadlines: sending.deadlines.into(),
            assumed_rate: sending.input_rate,
            damaged: sending.damaged.into(),
            is_opaque: sending.opaque,
        }
    }
}

impl Reading {
    fn config(self) -> ReaderConfig {
        let usual = ReaderConfig::default();
        ReaderConfig {
            deadlines: self.deadlines,
            assumed_rate: self.assumed_rate.unwrap_or(usual.assumed_rate),
            damaged: self.damaged,
            opaque: self.is_opaque,
            // Every receiver that supports layouts gets them.
            layouts: true,
            ..usual
        }
    }

    /// A live source sets its own pace, and delivers pictures one by one.
    fn check_live(self, text: &str) -> Result<(), Error> {
        let text = without_secrets(text);
        for (option, is_given) in [
            ("--speed", self.speed.is_some()),
            ("--input-rate", self.assumed_rate.is_some()),
        ] {
            if is_given {
                return Err(Error::usage(format!(
                    "{option}: is for a file, and {text} sets the pace itself; expected it with a file, or no {option}"
                )));
            }
        }
        match self.deadlines {
            DeadlineRule::Group => Err(Error::usage(format!(
                "--deadlines: is group, which needs a whole group of pictures before it is due, and {text} gives \
                 them one by one; expected it with a file, or --deadlines each"
            ))),
            DeadlineRule::Each => Ok(()),
        }
    }
}

/// An open input.
#[derive(Debug)]
pub(crate) enum Input {
    /// Files, pipes and datagrams.
    Media(Box<MediaInput>),
    /// Sections from another Comity endpoint.
    Connected(Box<Receiver>),
}

/// How the sections of a connection are passed on to another connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassedOn {
    pub(crate) is_so: bool,
    /// The time to add to each deadline.
    pub(crate) add_latency: Duration,
}

impl Input {
    /// Opens the input that `uri`, written as `text`, names.
    pub(crate) fn open(
        uri: &Uri,
        text: &str,
        reading: Reading,
        passed_on: PassedOn,
        connecting: &Connecting<'_>,
    ) -> Result<Self, Error> {
        if !matches!(uri, Uri::File(_)) {
            reading.check_live(text)?;
        }
        let config = reading.config();
        let live = |feed| MediaInput::live(feed, config);
        let pipe = |feed| MediaInput::pipe(feed, config);
        let input = match uri {
            Uri::Pipe => pipe(feed::pipe()?),
            Uri::File(path) => match feed::file(path)? {
                (feed, true) => MediaInput::stored(feed, reading.speed.unwrap_or(1.0), config),
                (feed, false) => {
                    reading.check_live(text)?;
                    pipe(feed)
                }
            },
            Uri::Udp(uri) => live(feed::datagrams(
                receiver(uri, text, connecting.reporter)?,
                reading.is_opaque,
            )?),
            Uri::Rtp(uri) => live(feed::rtp(
                receiver(uri, text, connecting.reporter)?,
                uri.payload_type,
            )?),
            Uri::Comity(uri) => {
                let deliver = passed_on.is_so.then_some(Deliver::Early);
                let dialer = connecting.dialer(uri, Purpose::Receive { deliver })?;
                let receiver = Receiver::new(dialer, passed_on.add_latency);
                return Ok(Self::Connected(Box::new(receiver)));
            }
        };
        Ok(Self::Media(Box::new(input)))
    }
}

/// Applies an expression to either kind of input.
macro_rules! either {
    ($input:ident, $name:ident => $done:expr) => {
        match $input {
            Self::Media($name) => $done,
            Self::Connected($name) => $done,
        }
    };
}

impl Source for Input {
    async fn next(&mut self) -> Result<Option<SourceItem>, comity_stream::Error> {
        either!(self, input => input.next().await)
    }

    fn cut(&mut self) {
        either!(self, input => input.cut());
    }

    fn refuse(&mut self, reason: &str) {
        either!(self, input => input.refuse(reason));
    }

    async fn close(&mut self, reason: Option<&str>) {
        either!(self, input => input.close(reason).await);
    }

    fn is_patient(&self) -> bool {
        either!(self, input => input.is_patient())
    }

    fn is_unanswered(&self) -> bool {
        either!(self, input => input.is_unanswered())
    }

    fn counters(&self) -> Counters {
        either!(self, input => input.counters())
    }
}

fn receiver(uri: &MediaUri, text: &str, reporter: &Reporter) -> Result<UdpSocket, Error> {
    let socket = sockets::receiver(uri, text)?;
    let local = socket.local_addr();
    let local = local.map_err(|error| Error::failed(format!("{text}: {error}")))?;
    reporter.listening(local);
    Ok(socket)
}
