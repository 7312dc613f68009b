//! Comity: each frame, or each chunk of it, is one section of one stream.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use comity::uri::Uri;
use comity::{
    Config, Connection, Endpoint, Event, Importance, Item, Qlog, Section, SectionId, SendError,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Ended, Outgoing, PASSPHRASE};
use crate::arguments::{Common, Deliver, Receive, Send, Shape};
use crate::chunk::{Frame, SIZE};
use crate::clock::{now_ns, sleep_until};
use crate::failure::{Context, Failure, Result};
use crate::sink::Sink;

/// Keys of the command `comity` that the library lacks, or that this program sets.
const NOT_HERE: [&str; 9] = [
    "mode",
    "bind",
    "key",
    "peerkey",
    "allow",
    "passphrase",
    "reconnect",
    "linger",
    "streamid",
];
const QLOG_BYTES: u64 = 1 << 30;

/// The configuration of both ends, from the same table of keys as URIs.
fn configure(common: &Common, address: SocketAddr) -> Result<(Config, Option<Qlog>)> {
    let deliver = match common.deliver {
        Deliver::Early => "early",
        Deliver::Paced => "paced",
    };
    let mut keys = vec![
        (
            "latency".to_owned(),
            format!("{}us", common.latency.as_micros()),
        ),
        ("cc".to_owned(), common.cc.clone()),
        ("deliver".to_owned(), deliver.to_owned()),
    ];
    for (key, value) in &common.options {
        if NOT_HERE.contains(&key.as_str()) {
            return Err(Failure(format!(
                "--option {key}={value}: this program sets {key} itself, or has no use for it; leave it out"
            )));
        }
        keys.retain(|(known, _)| known != key);
        keys.push((key.clone(), value.clone()));
    }
    let pairs: Vec<String> = keys
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let text = format!("comity://{address}?mode=caller&{}", pairs.join("&"));
    let uri: Uri = text
        .parse()
        .context(format!("{text}; correct --cc or --option"))?;
    let mut builder = uri
        .builder()
        .context(format!("{text}; correct --cc or --option"))?
        .passphrase(PASSPHRASE);
    let qlog = common.qlog.as_ref().map(|file| {
        Qlog::create(file, QLOG_BYTES).context(format!(
            "--qlog {}; name a file that can be written",
            file.display()
        ))
    });
    let qlog = qlog.transpose()?;
    if let Some(qlog) = &qlog {
        builder = builder.qlog(qlog.clone());
    }
    let config = builder
        .build()
        .context(format!("{text}; correct --cc or --option"))?;
    Ok((config, qlog))
}

pub struct Sender {
    endpoint: Endpoint,
    connection: Connection,
    shape: Shape,
    has_importance: bool,
    /// The last section of each frame, by the frame's number.
    last_sections: Vec<Option<SectionId>>,
    refused: u64,
    log: Option<JoinHandle<()>>,
    qlog: Option<Qlog>,
}

pub async fn connect(arguments: &Send) -> Result<Sender> {
    let common = &arguments.common;
    let (config, qlog) = configure(common, arguments.connect)?;
    let log = common
        .gap_log
        .as_ref()
        .map(|file| Log::create(file))
        .transpose()?;
    let any = super::any_port(arguments.connect);
    let endpoint = Endpoint::for_calls(any, config).context(format!("cannot bind {any}"))?;
    let give_up = now_ns() + common.wait.as_nanos() as u64;
    let connection = loop {
        match endpoint.connect(arguments.connect).await {
            Ok(connection) => break connection,
            Err(error) if now_ns() >= give_up => {
                return Err(Failure(format!(
                    "nobody at {} answered within {:?}: {error}; start `compare receive` there first",
                    arguments.connect, common.wait
                )));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    };
    let log = log.map(|mut log| {
        let mut events = connection.events();
        tokio::spawn(async move {
            log.line(format_args!("at_ns,section,fate,length,sent,acknowledged"));
            while let Some(event) = events.next().await {
                match event {
                    Event::Outcome(outcome) => log.line(format_args!(
                        "{},{},{:?},{},{},{}",
                        now_ns(),
                        outcome.section.0,
                        outcome.fate,
                        outcome.length,
                        outcome.sent,
                        outcome.acknowledged
                    )),
                    Event::Missed(events) => {
                        log.line(format_args!("{},,missed {events} events,,,", now_ns()))
                    }
                    _ => {}
                }
            }
        })
    });
    Ok(Sender {
        endpoint,
        connection,
        shape: arguments.shape,
        has_importance: arguments.importance,
        last_sections: Vec::new(),
        refused: 0,
        log,
        qlog,
    })
}

impl Sender {
    /// Submits one section; `None` if the connection had no room for it.
    fn submit(
        &mut self,
        frame: &Frame,
        payload: Bytes,
        needs: Option<SectionId>,
    ) -> Result<Option<SectionId>> {
        let mut section = Section::new(payload);
        if self.has_importance {
            section = section.importance(Importance(frame.importance));
            section.needs = needs;
        }
        match self.connection.try_send(section) {
            Ok(id) => Ok(Some(id)),
            Err(SendError::Full { .. }) => {
                self.refused += 1;
                Ok(None)
            }
            Err(error) => Err(Failure(format!("Comity accepts no more sections: {error}"))),
        }
    }
}

impl Outgoing for Sender {
    fn give(&mut self, frame: &Frame, payload: Bytes, _deadline_ns: u64) -> Result<()> {
        let mut needs = frame
            .needs
            .and_then(|needed| self.last_sections[needed as usize]);
        let length = match self.shape {
            Shape::Frames => payload.len(),
            Shape::Packets => SIZE,
        };
        let mut rest = payload;
        let mut last = None;
        while !rest.is_empty() {
            let part = rest.split_to(length.min(rest.len()));
            // Each part of a frame depends on the one before it.
            last = self.submit(frame, part, needs)?;
            needs = last.or(needs);
        }
        self.last_sections.push(last);
        Ok(())
    }

    fn broken(&self) -> Option<String> {
        self.connection.close_reason().map(|end| end.to_string())
    }

    async fn finish(self, until_ns: u64) -> Result<Value> {
        let ended = tokio::select! {
            ended = self.connection.finish() => match ended {
                Ok(()) => "every section has its outcome".to_owned(),
                Err(end) => end.to_string(),
            },
            () = sleep_until(until_ns) => "sections were still in flight".to_owned(),
        };
        let statistics = self.connection.stats();
        drop(self.connection);
        // This informs the peer of the end.
        self.endpoint.close().await;
        if let Some(log) = self.log {
            // It ends with the connection.
            let _ = timeout(Duration::from_secs(2), log).await;
        }
        let traced = self.qlog.and_then(|qlog| qlog.finish().err());
        Ok(json!({
            "ended": ended,
            "sections_refused": self.refused,
            "qlog_incomplete": traced.map(|error| error.to_string()),
            "connection": statistics,
        }))
    }
}

pub async fn receive(arguments: &Receive, sink: &Sink) -> Result<Ended> {
    let common = &arguments.common;
    let (config, qlog) = configure(common, arguments.listen)?;
    let mut log = common
        .gap_log
        .as_ref()
        .map(|file| Log::create(file))
        .transpose()?;
    if let Some(log) = &mut log {
        log.line(format_args!("at_ns,section,reason,length,missing_bytes"));
    }
    let endpoint = Endpoint::bind(arguments.listen, config).context(format!(
        "cannot listen at {}; choose an address of this host and a free port",
        arguments.listen
    ))?;
    let accepted = timeout(common.wait, endpoint.accept()).await;
    let connection = accepted
        .map_err(|_| super::nobody_called(common))?
        .ok_or_else(|| Failure("the endpoint was closed".into()))?;
    let over = sink.over();
    tokio::pin!(over);
    let why = loop {
        let item = tokio::select! {
            item = connection.recv() => item,
            () = &mut over => break "the source had ended".to_owned(),
        };
        match item {
            Some(Item::Section(section)) => sink.chunks(&section.payload, |_| true),
            Some(Item::Gap(gap)) => {
                let missing = gap.partial.as_ref().map(|partial| &partial.missing);
                if let Some(partial) = &gap.partial {
                    sink.chunks(&partial.payload, |chunk| {
                        let holes = partial.missing.iter();
                        !holes.clone().any(|hole| {
                            (hole.start as usize) < chunk.end && chunk.start < hole.end as usize
                        })
                    });
                }
                if let Some(log) = &mut log {
                    let length = gap.partial.as_ref().map(|partial| partial.about.length);
                    let bytes: Option<u32> =
                        missing.map(|holes| holes.iter().map(|hole| hole.end - hole.start).sum());
                    let text = |number: Option<u32>| {
                        number.map(|number| number.to_string()).unwrap_or_default()
                    };
                    log.line(format_args!(
                        "{},{},{:?},{},{}",
                        now_ns(),
                        gap.id.0,
                        gap.reason,
                        text(length),
                        text(bytes)
                    ));
                }
            }
            None => break connection.closed().await.to_string(),
        }
    };
    let statistics = connection.stats();
    drop(connection);
    endpoint.close().await;
    let traced = qlog.and_then(|qlog| qlog.finish().err());
    Ok(Ended {
        why,
        statistics: json!({
            "qlog_incomplete": traced.map(|error| error.to_string()),
            "connection": statistics,
        }),
    })
}

/// Lines of CSV; a disk that fails ends the log, not the run.
struct Log(BufWriter<File>);

impl Log {
    fn create(file: &std::path::Path) -> Result<Self> {
        let file = File::create(file).context(format!(
            "--gap-log {}; name a file that can be written",
            file.display()
        ))?;
        Ok(Self(BufWriter::new(file)))
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.0, "{line}");
    }
}
