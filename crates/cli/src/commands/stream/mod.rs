//! `comity send`, `comity recv` and `comity relay`: one session with three names.
//!
//! ```text
//! Input ─► Passage ─► Session ─► Output
//!   Media: Feed (thread) ─► Reader ─► SourceClock           Media: TsWriter ─► Target (thread)
//!   Connected: Line ─► Connection::recv                     Connected: Line ─► Shedder ─► Connection::try_send
//! ```
//!
//! Files and sockets are read and written by threads of their own; everything else is one task,
//! which waits for whatever comes first. A [`Line`](line::Line) is where connections come from: it
//! calls or listens, and does so again when one is lost.

mod advice;
mod gaps;
mod input;
mod line;
pub(crate) mod media_unit;
mod metrics;
mod output;
mod places;
mod refusals;
mod session;
mod snapshot;
mod sockets;
mod status;
mod stop;
mod totals;
mod trouble;
pub(crate) mod uri;

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use comity::Qlog;
use comity::uri::Role;
use comity::uri::parts::is_address;
use comity_units::Bytes;

use super::{Failure, say};
use crate::args::{self, Reconnect};
use advice::LatencyAdvice;
use gaps::GapList;
use input::{Input, Reading};
use line::LineOptions;
use metrics::Metrics;
use output::{Copying, Listed, Output, Room};
use session::Session;
use snapshot::Passed;
use status::{Channel, Reporter};
use stop::Stop;
use trouble::Trouble;
use uri::Uri;

/// Which end of the way has to be a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Send,
    Recv,
    Relay,
}

/// `comity send`
pub(crate) fn send(args: &args::Send) -> Result<(), Failure> {
    report(run(
        Verb::Send,
        (&args.input, &args.output),
        &args.common,
        Some(&args.sending),
        Duration::ZERO,
    ))
}

/// `comity recv`
pub(crate) fn recv(args: &args::Recv) -> Result<(), Failure> {
    report(run(
        Verb::Recv,
        (&args.input, &args.output),
        &args.common,
        None,
        Duration::ZERO,
    ))
}

/// `comity relay`
pub(crate) fn relay(args: &args::Relay) -> Result<(), Failure> {
    report(run(
        Verb::Relay,
        (&args.input, &args.output),
        &args.common,
        Some(&args.sending),
        args.add_latency.map_or(Duration::ZERO, Into::into),
    ))
}

fn report(done: Result<(), Trouble>) -> Result<(), Failure> {
    done.map_err(|trouble| {
        say(&format!("error: {trouble}"));
        trouble.failure
    })
}

/// The clock on the wall.
#[allow(clippy::disallowed_methods, reason = "this is a real-time host")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

fn run(
    verb: Verb,
    (from, to): (&str, &str),
    args: &args::Common,
    sending: Option<&args::Sending>,
    add_latency: Duration,
) -> Result<(), Trouble> {
    let (input, output) = (read(from)?, read(to)?);
    check(verb, (from, &input), (to, &output))?;
    let is_between = [&input, &output].map(|uri| matches!(uri, Uri::Comity(_))) == [true, true];
    if !add_latency.is_zero() && !is_between {
        return Err(Trouble::usage(
            "--add-latency: is for deadlines that are passed on; expected it from comity:// to comity://",
        ));
    }
    if let Some(sending) = sending {
        check_sending(sending, (to, &output))?;
    }
    check_connecting(args, &[&input, &output])?;
    places::check(&input, &output, args.gaps.as_deref())?;
    let json = args.json.then_some(match output {
        Uri::Pipe => Channel::Error,
        _ => Channel::Output,
    });
    let reporter = Reporter::new(args.quiet, json);
    let every = match args.statsfreq {
        Some(every) => Some(every.into()),
        None if args.json => Some(Duration::from_secs(1)),
        None if !io::stderr().is_terminal() && !args.quiet => Some(Duration::from_secs(10)),
        None => None,
    };
    if every.is_some_and(|every: Duration| every.is_zero()) {
        return Err(Trouble::usage(
            "--statsfreq: is 0; expected a time such as 1s",
        ));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| Trouble::failed(format!("cannot start: {error}")))?;
    let qlog = match &args.qlog {
        None => None,
        Some(path) => Some(
            Qlog::create(path, args.qlog_limit.get())
                .map_err(|error| Trouble::open(path, &error))?,
        ),
    };
    let began = now();
    let done = runtime.block_on(async {
        let options = |early, serves_many| LineOptions {
            insecure: args.insecure,
            reconnect: args.reconnect,
            early,
            add_latency,
            serves_many,
            qlog: qlog.clone(),
        };
        let metrics = match args.metrics_bind {
            None => None,
            Some(address) => {
                let metrics = Metrics::default();
                let bound = metrics.serve(address)?;
                reporter.note(&format!("metrics at http://{bound}/metrics"));
                Some(metrics)
            }
        };
        let mut gaps = args
            .gaps
            .as_deref()
            .map(|path| GapList::open(path, began))
            .transpose()?;
        let to_all = sending.is_some_and(|sending| sending.all);
        let copying = Copying {
            to_all,
            sheds: sending.is_none_or(|sending| !sending.no_shed),
            lists: match (&args.gaps, verb) {
                (None, _) => Listed::None,
                (Some(_), Verb::Send) => Listed::NotArrived,
                (Some(_), _) => Listed::NotSent,
            },
        };
        let room = match &input {
            Uri::Comity(uri) => Room::behind(Bytes::new(uri.settings.receive_buffer)),
            _ => Room::WITHOUT_CONNECTION,
        };
        let reading = sending.map(Reading::from).unwrap_or_default();
        let is_passed_on = matches!(output, Uri::Comity(_));
        let opened = Input::open(
            &input,
            from,
            reading,
            &options(is_passed_on, false),
            &reporter,
        )
        .and_then(|opened| {
            let options = options(false, to_all);
            let output = Output::open(&output, to, room, copying, &options, &reporter)?;
            Ok((opened, output))
        });
        let (opened_input, opened_output) = match opened {
            Ok(opened) => opened,
            Err(trouble) => {
                if let Some(gaps) = gaps {
                    gaps.withdraw();
                }
                return Err(trouble);
            }
        };
        if let Some(gaps) = &mut gaps {
            gaps.begin()?;
        }
        reporter.opened();
        let session = Session {
            is_patient: Input::is_patient(&input),
            input: opened_input,
            output: opened_output,
            gaps,
            unlisted: None,
            advice: LatencyAdvice::default(),
            metrics,
            reporter: reporter.clone(),
            every,
            began,
            passed: Passed::default(),
            held: None,
        };
        let stop = Stop::on_interrupt().after(args.duration.map(Into::into));
        session.run(stop).await
    });
    // A look-up or a read that is under way is not waited for.
    runtime.shutdown_background();
    if let Some(Err(error)) = qlog.as_ref().map(Qlog::finish) {
        say(&format!("warning: --qlog: {error}"));
    }
    reporter.close();
    done
}

fn read(text: &str) -> Result<Uri, Trouble> {
    text.parse()
        .map_err(|error| Trouble::usage(format!("{}: {error}", without_secrets(text))))
}

/// What stands before the settings: they may have a passphrase in them.
fn without_secrets(text: &str) -> &str {
    text.split('?').next().unwrap_or_default()
}

fn check(
    verb: Verb,
    (from, input): (&str, &Uri),
    (to, output): (&str, &Uri),
) -> Result<(), Trouble> {
    let is_connected = |uri: &Uri| matches!(uri, Uri::Comity(_));
    let wrong = |place, text, expected, other| {
        Err(Trouble::usage(format!(
            "{place}: is {:?}; expected {expected}; comity {other}",
            without_secrets(text)
        )))
    };
    let forgotten = |text| {
        Err(Trouble::usage(format!(
            "URI: is {text:?}; did you mean comity://{text}?"
        )))
    };
    // It would be a strange name for a file.
    let is_address = |uri: &Uri, text: &str| matches!(uri, Uri::File(_)) && is_address(text);
    match verb {
        Verb::Send if is_address(output, to) => forgotten(to),
        Verb::Recv if is_address(input, from) => forgotten(from),
        Verb::Send if !is_connected(output) => wrong(
            "URI",
            to,
            "comity://host:port",
            "relay passes media on to other places",
        ),
        Verb::Send if is_connected(input) => wrong(
            "INPUT",
            from,
            "-, a file, udp:// or rtp://",
            "relay passes on what comity:// brings",
        ),
        Verb::Recv if !is_connected(input) => wrong(
            "URI",
            from,
            "comity://:port or comity://host:port",
            "relay reads other places",
        ),
        Verb::Recv if is_connected(output) => wrong(
            "OUTPUT",
            to,
            "-, a file, udp:// or rtp://",
            "relay passes on to comity://",
        ),
        _ => Ok(()),
    }
}

/// Refuses options of connections where none is made.
fn check_connecting(args: &args::Common, ends: &[&Uri]) -> Result<(), Trouble> {
    let given = [
        ("--insecure", args.insecure),
        ("--qlog", args.qlog.is_some()),
        ("--reconnect", args.reconnect != Reconnect::Lost),
    ];
    let given = given.into_iter().find(|(_, is_given)| *is_given);
    let is_connected = |end: &&Uri| matches!(end, Uri::Comity(_));
    match given {
        Some((option, _)) if !ends.iter().any(is_connected) => Err(Trouble::usage(format!(
            "{option}: is for connections; expected comity:// as one of the two places, or no {option}"
        ))),
        _ => Ok(()),
    }
}

/// Refuses options that the output has no use for.
fn check_sending(sending: &args::Sending, (to, output): (&str, &Uri)) -> Result<(), Trouble> {
    let refuse = |option, reason, expected| {
        Err(Trouble::usage(format!(
            "{option}: {} {reason}; expected {expected}, or no {option}",
            without_secrets(to)
        )))
    };
    let role = match output {
        Uri::Comity(uri) => Some(&uri.role),
        _ => None,
    };
    match role {
        Some(Role::Caller { .. }) if sending.all => refuse(
            "--all",
            "calls one receiver, so that there is nobody else to get a copy",
            "comity://:port, which waits for callers",
        ),
        None if sending.all => refuse(
            "--all",
            "has no callers to get copies",
            "comity://:port, which waits for them",
        ),
        None if sending.no_shed => refuse(
            "--no-shed",
            "is given every picture as it is",
            "comity://host:port or comity://:port",
        ),
        _ => Ok(()),
    }
}
