//! The sender: pictures of an MPEG-1 stream by the deadlines of their groups.

use std::collections::VecDeque;
use std::time::Duration;
use std::{fs, io};

use comity_frames::{DeadlineRule, FrameType, Schedule, Selection};
use comity_media::{Event, Header, MediaSection, Reader, ReaderConfig};
use comity_tcp_host::framing::SectionReader;
use comity_tcp_host::net::{Stack, TcpStream};
use comity_tcp_host::{Delivery, Framing, Piece, PieceKind, Section, SectionStatistics};
use comity_units::{Span, Time};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::LONGEST;
use super::message::{Label, Report};
use crate::args::{self, Pictures};
use crate::files::cannot_open;
use crate::tcp::run;
use crate::{Failure, complain, print, say};

/// The interval at which the sender evaluates its own counters, for a peer that does not report.
const INTERVAL: Span = Span::from_secs(1);

pub(crate) fn stream(args: &args::TcpVideoSend) -> Result<(), Failure> {
    let source = fs::read(&args.file).map_err(|error| cannot_open(&args.file, &error))?;
    let pictures = pictures(&source)
        .map_err(|reason| complain(&format!("{}: {reason}", args.file.display())))?;
    let framing = match args.raw {
        true => Framing::None,
        false => Framing::Header,
    };
    run(&args.host, Err(Failure::Interrupted), async |prepared| {
        let stack = prepared.in_sections(framing, !args.plain).start()?;
        let mut sender = match TcpStream::connect(&stack, args.peer).await {
            Ok(stream) => Sender::begin(args, stack, stream)?,
            Err(error) => return lost(args, &error),
        };
        let result = match sender.send_all(&pictures).await {
            Ok(()) => sender.finish().await,
            Err(error) => Err(error),
        };
        sender.report(result.as_ref().err())?;
        result.or_else(|error| lost(args, &error))
    })
}

/// There is no connection, or it was lost.
fn lost(args: &args::TcpVideoSend, error: &io::Error) -> Result<(), Failure> {
    say(&format!("error: {}: {error}", args.peer));
    Err(Failure::Unconnected)
}

/// The pictures of an elementary stream, with the deadlines of their groups.
fn pictures(source: &[u8]) -> Result<Vec<MediaSection>, String> {
    let mut reader = Reader::new(ReaderConfig {
        deadlines: DeadlineRule::Group,
        ..ReaderConfig::default()
    });
    let read = reader.push(source).and_then(|()| reader.finish());
    read.map_err(|error| error.to_string())?;
    let mut pictures = Vec::new();
    while let Some(event) = reader.poll() {
        if let Event::Section(section) = event {
            match Header::decode(&section.payload) {
                Ok((Header::Picture(_), _)) => pictures.push(section),
                _ => return Err("expected an elementary stream of MPEG-1 or MPEG-2 video".into()),
            }
        }
    }
    match pictures.is_empty() {
        true => Err("no picture, expected an elementary stream of MPEG-1 or MPEG-2 video".into()),
        false => Ok(pictures),
    }
}

/// A submitted section that has not been reported.
#[derive(Clone, Copy, Debug)]
struct Open {
    number: u64,
    choice: Option<u32>,
}

struct Sender<'a> {
    args: &'a args::TcpVideoSend,
    stack: Stack,
    stream: TcpStream,
    delivery: Delivery,
    start: Time,
    selection: Selection,
    reports: SectionReader,
    /// Whether the peer's side is still open.
    is_peer_open: bool,
    has_report: bool,
    open: VecDeque<Open>,
    /// The counters at the last evaluation, and the time of the next one.
    before: SectionStatistics,
    stock_at: Time,
    /// The sections submitted before the last change of the schedule.
    changed_at: u64,
    submitted: Counts,
    not_submitted: Counts,
}

/// Pictures by type: I, P and B.
#[derive(Clone, Copy, Debug, Default)]
struct Counts([u64; 3]);

impl Counts {
    fn add(&mut self, kind: FrameType) {
        let index = match kind {
            FrameType::Predicted { .. } => 1,
            FrameType::Bidirectional { .. } => 2,
            _ => 0,
        };
        if let Some(count) = self.0.get_mut(index) {
            *count += 1;
        }
    }
}

impl<'a> Sender<'a> {
    fn begin(
        args: &'a args::TcpVideoSend,
        stack: Stack,
        stream: TcpStream,
    ) -> Result<Self, Failure> {
        let delivery = stream.delivery().map_err(|error| complain(&error))?;
        let start = stack.now();
        if delivery == Delivery::Plain && !args.plain {
            say(&format!(
                "{}: not time-lined: what has a sequence number arrives, even late",
                args.peer
            ));
        }
        Ok(Self {
            args,
            stack,
            stream,
            delivery,
            start,
            selection: Selection::default(),
            reports: SectionReader::new(LONGEST),
            is_peer_open: true,
            has_report: false,
            open: VecDeque::new(),
            before: SectionStatistics::default(),
            stock_at: start + INTERVAL,
            changed_at: 0,
            submitted: Counts::default(),
            not_submitted: Counts::default(),
        })
    }

    /// The pictures to submit now.
    const fn schedule(&self) -> Schedule {
        match self.args.pictures {
            Pictures::Auto => self.selection.schedule(),
            Pictures::All => Schedule::All,
            Pictures::Ip => Schedule::IntraAndPredicted,
            Pictures::I => Schedule::Intra,
        }
    }

    async fn send_all(&mut self, pictures: &[MediaSection]) -> io::Result<()> {
        let mut number = 0;
        for picture in pictures {
            let available = self.start + (picture.source_time.saturating_since(Time::ZERO));
            self.wait_until(available).await?;
            if !self.schedule().takes(picture.frame) {
                self.not_submitted.add(picture.frame);
                continue;
            }
            let statistics = self.stream.section_statistics()?;
            let waiting = statistics.unsent_bytes;
            let choice = self.selection.judged(statistics.submitted_bytes, waiting);
            let content = self.content(picture);
            let section = Section {
                bytes: &content,
                deadline: available + picture.deadline + self.args.latency,
            };
            self.stream.send_sections(&[section]).await?;
            self.submitted.add(picture.frame);
            self.open.push_back(Open { number, choice });
            number += 1;
        }
        Ok(())
    }

    /// The payload of a picture's section.
    fn content(&self, picture: &MediaSection) -> Vec<u8> {
        if self.args.raw {
            let media = Header::decode(&picture.payload).map(|(_, media)| media);
            return media.unwrap_or_default().to_vec();
        }
        let label = Label {
            number: picture.number,
            needs: picture.needs,
        };
        [&label.encode()[..], &picture.payload].concat()
    }

    /// Handles the player's reports until the time `at`.
    async fn wait_until(&mut self, at: Time) -> io::Result<()> {
        let (mut buffer, mut pieces) = ([0; 4_096], [Piece::default(); 4]);
        loop {
            let now = self.stack.now();
            self.take_stock(now)?;
            let left = Duration::from(at.min(self.stock_at).saturating_since(now));
            tokio::select! {
                () = tokio::time::sleep(left) => {
                    if self.stack.now() >= at {
                        return Ok(());
                    }
                }
                count = self.stream.receive_pieces(&mut buffer, &mut pieces), if self.is_peer_open => {
                    let count = count?;
                    self.is_peer_open = count > 0;
                    self.read_reports(&buffer, pieces.get(..count).unwrap_or_default());
                }
            }
        }
    }

    /// Reads received data as reports. Other data of a peer is not a report.
    fn read_reports(&mut self, buffer: &[u8], pieces: &[Piece]) {
        let mut rest = buffer;
        for piece in pieces {
            if piece.kind == PieceKind::Gap {
                self.reports.gap(piece.length);
                continue;
            }
            let (data, behind) = rest.split_at(rest.len().min(piece.length as usize));
            rest = behind;
            if self.reports.data(data).is_err() {
                return;
            }
        }
        while let Some(section) = self.reports.poll() {
            if let Some(report) = Report::decode(&section.bytes)
                && section.is_complete
            {
                self.has_report = true;
                self.on_report(&report);
            }
        }
    }

    fn on_report(&mut self, report: &Report) {
        let (mut in_time, mut missed) = (0, 0);
        for (number, is_in_time) in (report.first..).zip(&report.in_time) {
            while let Some(open) = self.open.front().copied()
                && open.number <= number
            {
                self.open.pop_front();
                if open.number == number && open.choice == Some(self.selection.choice()) {
                    in_time += u64::from(*is_in_time);
                    missed += u64::from(!is_in_time);
                }
            }
        }
        self.judge(in_time, missed);
    }

    /// Evaluates the schedule by the sender's own counters while the peer does not report.
    fn take_stock(&mut self, now: Time) -> io::Result<()> {
        if now < self.stock_at {
            return Ok(());
        }
        self.stock_at = now + INTERVAL;
        let counters = self.stream.section_statistics()?;
        let settled = counters.submitted - counters.open;
        if !self.has_report && settled > self.changed_at {
            let in_time = counters.on_time - self.before.on_time;
            let before = self.before.submitted - self.before.open;
            self.judge(in_time, settled - before - in_time);
        }
        self.before = counters;
        Ok(())
    }

    fn judge(&mut self, in_time: u64, missed: u64) {
        let Ok(counters) = self.stream.section_statistics() else {
            return;
        };
        let before = self.selection.choice();
        self.selection
            .on_report(in_time, missed, counters.submitted_bytes);
        if self.selection.choice() != before {
            self.changed_at = counters.submitted;
        }
    }

    /// Ends the stream, and waits until all sections are settled.
    async fn finish(&mut self) -> io::Result<()> {
        self.stream.shutdown().await?;
        self.stream.acknowledged().await
    }

    /// Prints the outcomes of the pictures: lines on the standard error, or a JSON document on the
    /// standard output.
    fn report(&self, error: Option<&io::Error>) -> Result<(), Failure> {
        let sections = self.stream.section_statistics().unwrap_or_default();
        let (submitted, spared) = (self.submitted.0, self.not_submitted.0);
        let delivery = match self.delivery {
            Delivery::Timelined => "timelined",
            Delivery::Plain => "plain",
        };
        if self.args.json {
            let document = json!({
                "peer": self.args.peer,
                "delivery": delivery,
                "has_feedback": self.has_report,
                "schedule_changes": self.selection.choice(),
                "submitted": by_type(submitted),
                "not_submitted": by_type(spared),
                "sections": {
                    "submitted": sections.submitted,
                    "on_time": sections.on_time,
                    "late": sections.late,
                    "cut": sections.cut,
                    "left_out": sections.left_out,
                    "open": sections.open,
                },
                "bytes": {
                    "submitted": sections.submitted_bytes,
                    "left_out": sections.left_out_bytes,
                    "sent_late": sections.sent_late_bytes,
                    "acknowledged_late": sections.acknowledged_late_bytes,
                    "headers": sections.header_bytes,
                },
                "error": error.map(ToString::to_string),
            });
            return print(format!("{document}\n"));
        }
        let [i, p, b] = submitted;
        let [no_i, no_p, no_b] = spared;
        say(&format!(
            "{}: {delivery}: submitted {i} I, {p} P and {b} B pictures; the schedule left out {no_i}, \
             {no_p} and {no_b}",
            self.args.peer
        ));
        say(&format!(
            "sections: {} on time, {} late, {} cut, {} left out",
            sections.on_time, sections.late, sections.cut, sections.left_out
        ));
        Ok(())
    }
}

fn by_type([i, p, b]: [u64; 3]) -> serde_json::Value {
    json!({"i": i, "p": p, "b": b})
}
