//! `comity send`, `comity recv` and `comity relay`: one relay with three names.
//!
//! ```text
//! Input ─► comity_stream::Relay ─► Output
//!   Media: Feed (thread) ─► Reader                       Media: TsWriter ─► Target (thread)
//!   Connected: comity_stream::Receiver                   Connected: comity_stream::Fanout
//! ```
//!
//! Separate threads read and write files and sockets. Everything else is one task.

mod advice;
mod connect;
mod encoder;
pub(crate) mod error;
mod events;
mod gaps;
pub(crate) mod input;
mod metrics;
mod narrow;
mod output;
mod overwrite;
mod session;
pub(crate) mod sockets;
mod status;
mod stop;
pub(crate) mod uri;

use std::io::{self, IsTerminal};
use std::time::Duration;

use comity::uri::Role;
use comity::uri::parts::is_address;
use comity::{KeyLog, Qlog, Settings};
use comity_stream::{Ending, FanoutOptions, Relay, Reports};
use comity_units::{DataSize, Rate};

use super::interrupt::LINGER;
use super::{Failure, core_dumps, say};
use crate::args::{self, Reconnect};
use crate::clock::now;
use connect::{Connecting, secret_variables};
use encoder::EncoderLoop;
use error::Error;
use gaps::{GapList, SharedGaps};
use input::{Input, PassedOn, Reading};
use metrics::Bound;
use output::{Output, Room};
use session::Session;
use status::{Channel, Deadlines, Reporter};
pub use stop::Stop;
use uri::{Uri, without_secrets};

/// The maximum number of callers with `--all`.
const MAX_COPIES: usize = 256;

/// Which end of the relay must be a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Send,
    Recv,
    Relay,
}

/// The options that differ between the verbs.
#[derive(Clone, Copy, Debug, Default)]
struct Options<'a> {
    sending: Option<&'a args::Sending>,
    encoder: Option<&'a args::Encoder>,
    add_latency: Duration,
    /// Whether the output is a new transport stream.
    is_remultiplexed: bool,
}

/// `comity send`.
///
/// # Errors
/// If the media could not be sent to their end. The message is printed.
pub fn send(args: &args::Send) -> Result<(), Failure> {
    report(
        Verb::Send,
        (&args.input, &args.output),
        &args.common,
        Options {
            sending: Some(&args.sending),
            encoder: Some(&args.encoder),
            ..Options::default()
        },
    )
}

/// `comity recv`.
///
/// # Errors
/// If the media could not be received to their end. The message is printed.
pub fn recv(args: &args::Recv) -> Result<(), Failure> {
    report(
        Verb::Recv,
        (&args.input, &args.output),
        &args.common,
        Options {
            is_remultiplexed: args.remux,
            ..Options::default()
        },
    )
}

/// `comity relay`.
///
/// # Errors
/// If the media could not be forwarded to their end. The message is printed.
pub fn relay(args: &args::Relay) -> Result<(), Failure> {
    report(
        Verb::Relay,
        (&args.input, &args.output),
        &args.common,
        Options {
            sending: Some(&args.sending),
            add_latency: args.add_latency.map_or(Duration::ZERO, Into::into),
            ..Options::default()
        },
    )
}

/// Runs the relay, and reports a failure on standard error, or as an object with `--json`.
fn report(
    verb: Verb,
    arguments: (&str, &str),
    args: &args::Common,
    options: Options<'_>,
) -> Result<(), Failure> {
    // Standard output carries the media, so JSON goes to standard error.
    let channel = match arguments.1 {
        "-" | "file://con" => Channel::Error,
        _ => Channel::Output,
    };
    let reporter = Reporter::new(args.quiet, args.json.then_some(channel));
    run(verb, arguments, args, options, &reporter).map_err(|error| {
        let failure = error.failure();
        reporter.failed(&error.to_string(), failure.into());
        failure
    })
}

fn run(
    verb: Verb,
    (from, to): (&str, &str),
    args: &args::Common,
    Options {
        sending,
        encoder,
        add_latency,
        is_remultiplexed,
    }: Options<'_>,
    reporter: &Reporter,
) -> Result<(), Error> {
    core_dumps::turn_off();
    let (input, output) = (read(from)?, read(to)?);
    check(verb, (from, &input), (to, &output))?;
    let is_between = [&input, &output].map(|uri| matches!(uri, Uri::Comity(_))) == [true, true];
    if !add_latency.is_zero() && !is_between {
        return Err(Error::usage(
            "--add-latency: is for deadlines that are passed on; expected it from comity:// to comity://",
        ));
    }
    if let Some(sending) = sending {
        check_sending(sending, (to, &output))?;
    }
    check_connecting(args, &[&input, &output])?;
    let encoder = encoder.filter(|encoder| encoder.is_used());
    if let (Some(encoder), Uri::Comity(uri)) = (encoder, &output) {
        check_encoder(encoder, sending, &uri.settings)?;
    }
    let gaps = args.gaps.as_deref();
    let others = [
        ("--gaps", gaps),
        ("--qlog", args.qlog.as_deref()),
        ("--keylog", args.keylog.as_deref()),
    ];
    let has_file = matches!(output, Uri::File(_)) || others.iter().any(|(_, path)| path.is_some());
    if args.overwrite && !has_file {
        return Err(Error::usage(
            "--overwrite: is for an output file; expected a file as the output, --gaps, --qlog or --keylog, or no \
             --overwrite",
        ));
    }
    let existing = overwrite::Existing::of(args.overwrite);
    overwrite::check(&input, &output, &others)?;
    let output_file = match &output {
        Uri::File(path) => Some(&**path),
        _ => None,
    };
    for (argument, path) in [("OUTPUT", output_file)].into_iter().chain(others) {
        if let Some(path) = path {
            existing.check(argument, path)?;
        }
    }
    let token = match &args.metrics_token {
        None => None,
        Some(path) => Some(metrics::token(path)?),
    };
    for warning in warnings_of_settings(&input, &output, encoder.is_some()) {
        reporter.warn(&warning);
    }
    let every = how_often(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| Error::failed(format!("cannot start: {error}")))?;
    // A file that is kept may exist if it is empty.
    let is_replaced = |path| args.overwrite || overwrite::is_empty(path);
    let qlog = match &args.qlog {
        None => None,
        Some(path) => {
            let limit = args.qlog_limit.get();
            let created = match is_replaced(path) {
                true => Qlog::create_over(path, limit),
                false => Qlog::create(path, limit),
            };
            Some(created.map_err(|error| Error::open(path, &error))?)
        }
    };
    let key_log = match &args.keylog {
        None => None,
        Some(path) => {
            let created = match is_replaced(path) {
                true => KeyLog::create_over(path),
                false => KeyLog::create(path),
            };
            reporter.warn(&format!(
                "--keylog: whoever reads {} can decrypt the packets of these connections; delete it after use",
                path.display()
            ));
            Some(created.map_err(|error| Error::open(path, &error))?)
        }
    };
    let began = now();
    let done = runtime.block_on(async {
        let metrics = match args.metrics_bind {
            None => None,
            Some(address) => {
                let bound = Bound::new(address, token)?;
                if let Some(warning) = bound.warning() {
                    reporter.warn(&warning);
                }
                Some(bound)
            }
        };
        let encoder = match (encoder, &output) {
            (Some(encoder), Uri::Comity(uri)) => {
                let secrets = secret_variables(&uri.credentials);
                Some(EncoderLoop::open(encoder, &uri.settings, secrets)?)
            }
            _ => None,
        };
        let list = gaps.map(|path| GapList::open(path, existing, began));
        let gaps = SharedGaps::from(list.transpose()?);
        let observer =
            |deadlines| events::observer(reporter.clone(), gaps.clone(), began, deadlines);
        let connecting = Connecting {
            insecure: args.insecure,
            reconnect: args.reconnect,
            takes_layouts: !is_remultiplexed,
            qlog: qlog.clone(),
            key_log: key_log.clone(),
            reporter,
            observer: observer(Deadlines::Own),
        };
        let opened = (|| {
            let reading = sending.map(Reading::from).unwrap_or_default();
            let passed_on = PassedOn {
                is_so: matches!(output, Uri::Comity(_)),
                add_latency,
            };
            let source = Input::open(&input, from, reading, passed_on, &connecting)?;
            let options = fanout(args, sending);
            let onwards = Connecting {
                qlog: qlog.clone(),
                key_log: key_log.clone(),
                observer: observer(match is_between {
                    true => Deadlines::PassedOn,
                    false => Deadlines::Own,
                }),
                ..connecting
            };
            let room = (room(&input), existing);
            let sink = Output::open(&output, to, room, options, &onwards)?;
            Ok((source, sink))
        })();
        let (source, sink) = opened.inspect_err(|_: &Error| gaps.withdraw())?;
        gaps.begin()?;
        // A program that reads the address may stop this one immediately.
        let stop = Stop::on_interrupt(3, linger(&[&input, &output]));
        let stop = stop.after(args.duration.map(Into::into));
        if let Some(bound) = &metrics {
            reporter.note(&format!("metrics at http://{}/metrics", bound.address()));
        }
        reporter.opened();
        let relay = Relay::new(source, sink, connecting.observer.clone());
        let session = Session {
            monitor: relay.monitor(),
            reporter: reporter.clone(),
            every,
            max_rate: match &output {
                Uri::Comity(uri) => uri.settings.max_rate,
                _ => Rate::MAX,
            },
        };
        if let Some(metrics) = metrics {
            metrics.serve(relay.monitor())?;
        }
        let running = relay.run_until(stop.clone().wanted(), stop.clone().at_once());
        let done = session.watch(running, encoder).await;
        match done.map_err(Error::from)? {
            Ending::Abandoned if stop.was_repeated() => return Err(Error::Abandoned),
            Ending::Abandoned => return Err(Error::Late),
            _ => gaps.result()?,
        }
        match session.is_uncalled([&input, &output].map(listens)) {
            true if !stop.is_requested() => return Err(Error::Uncalled),
            true => reporter.remark("nobody called"),
            false => {}
        }
        Ok(())
    });
    // Do not wait for a pending look-up or read.
    runtime.shutdown_background();
    if let Some(Err(error)) = qlog.as_ref().map(Qlog::finish) {
        say(&format!("warning: --qlog: {error}"));
    }
    if let Some(Err(error)) = key_log.as_ref().map(KeyLog::finish) {
        say(&format!(
            "warning: --keylog: {error}; the file is not complete"
        ));
    }
    reporter.close();
    done
}

/// How long an orderly end may take: the longest `linger` of the connections.
fn linger(ends: &[&Uri]) -> Duration {
    let lingers = ends.iter().filter_map(|end| match end {
        Uri::Comity(uri) => Some(uri.settings.linger),
        _ => None,
    });
    lingers.max().unwrap_or(LINGER)
}

/// Whether a URI waits for callers.
fn listens(uri: &Uri) -> bool {
    matches!(uri, Uri::Comity(uri) if matches!(uri.role, Role::Listener { .. }))
}

/// The interval between statistics; `None` on a terminal.
fn how_often(args: &args::Common) -> Result<Option<Duration>, Error> {
    let every = match args.statsfreq {
        Some(every) => Some(every.into()),
        None if args.json => Some(Duration::from_secs(1)),
        None if !io::stderr().is_terminal() && !args.quiet => Some(Duration::from_secs(10)),
        None => None,
    };
    match every {
        Some(Duration::ZERO) => Err(Error::usage(
            "--statsfreq: is 0; expected a time such as 1s",
        )),
        Some(_) if args.quiet && !args.json => Err(Error::usage(
            "--statsfreq: --quiet prints no statistics; expected --json as well, or one of the two",
        )),
        every => Ok(every),
    }
}

/// How a connected output sends, and which sections it reports.
fn fanout(args: &args::Common, sending: Option<&args::Sending>) -> FanoutOptions {
    FanoutOptions {
        max_subscribers: match sending {
            Some(sending) if sending.all => MAX_COPIES,
            _ => 1,
        },
        sheds: sending.is_none_or(|sending| !sending.no_shed),
        reports: match args.gaps {
            None => Reports::Nothing,
            Some(_) => Reports::Unarrived,
        },
    }
}

/// The maximum number of bytes that wait for a slow output.
fn room(input: &Uri) -> Room {
    match input {
        Uri::Comity(uri) => Room::behind(DataSize::new(uri.settings.receive_buffer)),
        _ => Room::WITHOUT_CONNECTION,
    }
}

fn read(text: &str) -> Result<Uri, Error> {
    text.parse()
        .map_err(|error| Error::usage(format!("{}: {error}", without_secrets(text))))
}

fn check(verb: Verb, (from, input): (&str, &Uri), (to, output): (&str, &Uri)) -> Result<(), Error> {
    let is_connected = |uri: &Uri| matches!(uri, Uri::Comity(_));
    let wrong = |argument, text, expected, other| {
        Err(Error::usage(format!(
            "{argument}: is {:?}; expected {expected}; comity {other}",
            without_secrets(text)
        )))
    };
    let forgotten = |text| {
        Err(Error::usage(format!(
            "URI: is {text:?}; did you mean comity://{text}?"
        )))
    };
    // A file with such a name is unlikely.
    let is_address = |uri: &Uri, text: &str| matches!(uri, Uri::File(_)) && is_address(text);
    match verb {
        Verb::Send if is_address(output, to) => forgotten(to),
        Verb::Recv if is_address(input, from) => forgotten(from),
        Verb::Send if !is_connected(output) => wrong(
            "URI",
            to,
            "comity://host:port",
            "relay forwards media to other outputs",
        ),
        Verb::Send if is_connected(input) => wrong(
            "INPUT",
            from,
            "-, a file, udp:// or rtp://",
            "relay forwards media from comity://",
        ),
        Verb::Recv if !is_connected(input) => wrong(
            "URI",
            from,
            "comity://:port or comity://host:port",
            "relay reads other inputs",
        ),
        Verb::Recv if is_connected(output) => wrong(
            "OUTPUT",
            to,
            "-, a file, udp:// or rtp://",
            "relay forwards to comity://",
        ),
        _ => Ok(()),
    }
}

/// Refuses options of connections if the command makes no connection.
fn check_connecting(args: &args::Common, ends: &[&Uri]) -> Result<(), Error> {
    let given = [
        ("--insecure", args.insecure),
        ("--qlog", args.qlog.is_some()),
        ("--keylog", args.keylog.is_some()),
        ("--reconnect", args.reconnect != Reconnect::Lost),
    ];
    let given = given.into_iter().find(|(_, is_given)| *is_given);
    let is_connected = |end: &&Uri| matches!(end, Uri::Comity(_));
    match given {
        Some((option, _)) if !ends.iter().any(is_connected) => {
            return Err(Error::usage(format!(
                "{option}: applies to connections; expected comity:// as the input or the output, or no {option}"
            )));
        }
        _ => {}
    }
    let stays_away = |end: &&Uri| matches!(end, Uri::Comity(uri) if !uri.settings.reconnect);
    match args.reconnect == Reconnect::Always && ends.iter().any(stays_away) {
        true => Err(Error::usage(
            "--reconnect: is always, and the URI has reconnect=no; expected one of them",
        )),
        false => Ok(()),
    }
}

/// Warnings about settings that have no effect at an end that only receives or only sends. They are
/// not errors, because both ends of a connection may use the same settings.
fn warnings_of_settings(input: &Uri, output: &Uri, has_encoder: bool) -> Vec<String> {
    let usual = Settings::default();
    let mut warnings = Vec::new();
    let mut warn = |keys: &[(&str, bool)], does, other| {
        let set = keys.iter().filter(|(_, is_set)| *is_set);
        let keys: Vec<_> = set.map(|(key, _)| *key).collect();
        if !keys.is_empty() {
            warnings.push(format!(
                "no effect at this end, which only {does}: {}; only the {other} goes by it",
                keys.join(", ")
            ));
        }
    };
    if let Uri::Comity(uri) = input {
        let own = &uri.settings;
        let parameters = &own.controller_parameters;
        let keys = [
            ("cc", own.controller != usual.controller),
            ("cc.*", *parameters != usual.controller_parameters),
            ("maxbw", own.max_rate != usual.max_rate),
            ("reliability", own.reliability != usual.reliability),
            ("drop", own.drop_policy != usual.drop_policy),
            ("sndbuf", own.send_buffer != usual.send_buffer),
        ];
        let keys: Vec<_> = keys.into_iter().chain(encoder_keys(own, &usual)).collect();
        warn(&keys, "receives", "sender");
    }
    if let Uri::Comity(uri) = output {
        let own = &uri.settings;
        let keys = [
            ("deliver", own.deliver != usual.deliver),
            ("rcvbuf", own.receive_buffer != usual.receive_buffer),
        ];
        warn(&keys, "sends", "receiver");
        let unused = encoder_keys(own, &usual);
        if let Some((key, _)) = unused.iter().find(|(_, is_set)| *is_set && !has_encoder) {
            warnings.push(format!(
                "no effect: {key}; expected --on-target-bitrate or --target-bitrate-socket of comity send with it"
            ));
        }
    }
    warnings
}

/// The keys for an encoder, and whether each is set.
fn encoder_keys(own: &Settings, usual: &Settings) -> [(&'static str, bool); 4] {
    [
        ("encmin", own.encoder_min != usual.encoder_min),
        ("encmax", own.encoder_max != usual.encoder_max),
        ("enchead", own.encoder_headroom != usual.encoder_headroom),
        ("encupdates", own.encoder_updates != usual.encoder_updates),
    ]
}

/// Refuses an encoder that several receivers would steer, or whose bitrates are unknown.
fn check_encoder(
    encoder: &args::Encoder,
    sending: Option<&args::Sending>,
    settings: &Settings,
) -> Result<(), Error> {
    let option = encoder.first_option();
    let refuse = |why: &str| Err(Error::usage(format!("{option}: {why}")));
    match settings.encoder_max {
        _ if sending.is_some_and(|sending| sending.all) => refuse(
            "--all sends to several receivers, whose target bitrates differ; expected one of the two options",
        ),
        None => refuse(
            "the highest bitrate of the encoder is not set; expected encmax in the URI, such as encmax=6Mbps",
        ),
        Some(most) if settings.encoder_min > most => refuse(&format!(
            "encmin is {}, and encmax is {most}; expected encmin up to encmax",
            settings.encoder_min
        )),
        Some(_) => Ok(()),
    }
}

/// Refuses options that do not apply to the output.
fn check_sending(sending: &args::Sending, (to, output): (&str, &Uri)) -> Result<(), Error> {
    let refuse = |option, reason, expected| {
        Err(Error::usage(format!(
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
            "calls one receiver, so that nobody else can get a copy",
            "comity://:port, which waits for callers",
        ),
        None if sending.all => refuse(
            "--all",
            "has no callers",
            "comity://:port, which waits for them",
        ),
        None if sending.no_shed => refuse(
            "--no-shed",
            "gets every picture anyway",
            "comity://host:port or comity://:port",
        ),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_without_effect_cause_warnings() {
        let warnings_of = |input: &str, output: &str| {
            let uri = |text: &str| text.parse().unwrap();
            warnings_of_settings(&uri(input), &uri(output), false)
        };
        let sender =
            "comity://:9?cc=fixed&maxbw=4Mbps&drop=expired&reliability=timeline&sndbuf=1MiB";
        let receiver = "comity://:9?rcvbuf=1MiB&deliver=early";
        // Settings without effect at each end.
        let none: [&str; 0] = [];
        assert_eq!(warnings_of("-", sender), none);
        assert_eq!(warnings_of(receiver, "-"), none);
        assert_eq!(warnings_of(receiver, sender), none);
        // Settings that both ends use, and settings with their default values.
        let own = Settings::default();
        let (controller, buffer) = (own.controller, own.receive_buffer);
        let usual = format!("comity://:9?latency=1s&cc={controller}&rcvbuf={buffer}B");
        assert_eq!(warnings_of(&usual, "-"), none);
        assert_eq!(warnings_of("-", &usual), none);
        let wrong = warnings_of(sender, receiver);
        let [at_input, at_output] = &wrong[..] else {
            panic!("{wrong:?}")
        };
        let expected = "which only receives: cc, maxbw, reliability, drop, sndbuf; only the sender";
        assert!(at_input.contains(expected), "{at_input}");
        let expected = "which only sends: deliver, rcvbuf; only the receiver";
        assert!(at_output.contains(expected), "{at_output}");
        let encoder = "comity://:9?encmax=4Mbps&enchead=10";
        let [at_input] = &warnings_of(encoder, "-")[..] else {
            panic!("no warning")
        };
        assert!(
            at_input.contains("receives: encmax, enchead;"),
            "{at_input}"
        );
        let [unused] = &warnings_of("-", encoder)[..] else {
            panic!("no warning")
        };
        assert!(unused.contains("no effect: encmax;"), "{unused}");
    }
}
