//! The player: writes the pictures that arrive on time, and reports to the sender.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{Duration, SystemTime};

use comity_frames::{Decodability, FrameType};
use comity_media::{Header, TsWriter, WriterConfig};
use comity_tcp_host::framing::{FramingError, ReceivedSection, SectionReader};
use comity_tcp_host::net::{TcpListener, TcpStream};
use comity_tcp_host::{Delivery, Framing, Piece, PieceKind, Section};
use comity_units::Time;
use nix::fcntl::OFlag;
use serde_json::json;
use tokio::time::MissedTickBehavior;

use super::LONGEST;
use super::message::{Label, Report};
use crate::args;
use crate::tcp::run;
use crate::{Failure, complain, print, say};

/// The number of bytes to read at a time.
const BUFFER: usize = 64 << 10;

pub(crate) fn receive(args: &args::TcpVideoReceive) -> Result<(), Failure> {
    let output = open(args)?;
    run(&args.host, Err(Failure::Interrupted), async |prepared| {
        let stack = prepared.in_sections(Framing::Header, true).start()?;
        let Some(own) = args.host.addresses.first() else {
            return Err(Failure::Usage);
        };
        let address = SocketAddr::new(*own, args.port);
        let listener = TcpListener::bind(&stack, address, 1).map_err(|error| {
            say(&format!("error: {error}"));
            Failure::Taken
        })?;
        say(&format!("waiting at {address}"));
        let (stream, peer) = listener.accept().await.map_err(|error| complain(&error))?;
        drop(listener);
        let delivery = stream.delivery().map_err(|error| complain(&error))?;
        if delivery == Delivery::Plain {
            say(&format!("{peer}: not time-lined"));
        }
        let mut player = Player::new(output);
        let result = player.run(&stream, args.report.into()).await;
        player.report(args, peer, delivery, result.as_ref().err())?;
        result.map_err(|error| {
            say(&format!("error: {peer}: {error}"));
            match error {
                ReceiveError::Connection(_) => Failure::Unconnected,
                ReceiveError::Output(_)
                | ReceiveError::Stream(_)
                | ReceiveError::Content { .. } => Failure::Failed,
            }
        })
    })
}

/// Opens the output. Replaces a file only if permitted.
fn open(args: &args::TcpVideoReceive) -> Result<Box<dyn Write>, Failure> {
    if args.output.as_os_str() == "-" {
        if args.json {
            say("error: the video and --json cannot both go to the standard output");
            return Err(Failure::Usage);
        }
        return Ok(Box::new(io::stdout()));
    }
    let mut options = OpenOptions::new();
    options.write(true);
    options.custom_flags(OFlag::O_NOFOLLOW.bits());
    match args.overwrite {
        true => options.create(true).truncate(true),
        false => options.create_new(true),
    };
    let file: io::Result<File> = options.open(&args.output);
    match file {
        Ok(file) => Ok(Box::new(file)),
        Err(error) => {
            let hint = match error.kind() {
                io::ErrorKind::AlreadyExists => "; --overwrite replaces it",
                _ => "",
            };
            let path = args.output.display();
            say(&format!("error: cannot write {path}: {error}{hint}"));
            Err(Failure::Unopened)
        }
    }
}

/// Why receiving ended early.
#[derive(Debug, thiserror::Error)]
enum ReceiveError {
    #[error(transparent)]
    Connection(io::Error),
    #[error("cannot write: {0}")]
    Output(io::Error),
    #[error(transparent)]
    Stream(#[from] FramingError),
    #[error("section {number}: no picture, expected one of `comity tcp stream`")]
    Content { number: u64 },
}

struct Player {
    output: Box<dyn Write>,
    reader: SectionReader,
    writer: TsWriter,
    decodability: Decodability,
    /// The first picture that has not been judged.
    next_picture: u64,
    pending: Report,
    counts: Counts,
}

/// The outcomes of sections and pictures.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    on_time: u64,
    late: u64,
    cut: u64,
    /// Numbers of absent sections.
    missing: u64,
    /// Pictures that were on time, but depend on others that were not.
    undecodable: u64,
    /// Pictures that were written: I, P and B.
    written: [u64; 3],
    gaps: u64,
    gap_bytes: u64,
}

impl Player {
    fn new(output: Box<dyn Write>) -> Self {
        Self {
            output,
            reader: SectionReader::new(LONGEST),
            writer: TsWriter::new(WriterConfig::default()),
            decodability: Decodability::default(),
            next_picture: 0,
            pending: Report::default(),
            counts: Counts::default(),
        }
    }

    /// Reads the stream to its end, and reports at intervals.
    async fn run(&mut self, stream: &TcpStream, interval: Duration) -> Result<(), ReceiveError> {
        let (mut buffer, mut pieces) = (vec![0; BUFFER], [Piece::default(); 16]);
        let mut tick = tokio::time::interval(interval);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                count = stream.receive_pieces(&mut buffer, &mut pieces) => {
                    let count = count.map_err(ReceiveError::Connection)?;
                    if count == 0 {
                        self.reader.finish();
                        return self.take_sections();
                    }
                    self.take(&buffer, pieces.get(..count).unwrap_or_default())?;
                }
                _ = tick.tick() => self.send_report(stream).await?,
            }
        }
    }

    fn take(&mut self, buffer: &[u8], pieces: &[Piece]) -> Result<(), ReceiveError> {
        let mut rest = buffer;
        for piece in pieces {
            if piece.kind == PieceKind::Gap {
                self.counts.gaps += 1;
                self.counts.gap_bytes += piece.length;
                self.reader.gap(piece.length);
                continue;
            }
            let (data, behind) = rest.split_at(rest.len().min(piece.length as usize));
            rest = behind;
            self.reader.data(data)?;
        }
        self.take_sections()
    }

    fn take_sections(&mut self) -> Result<(), ReceiveError> {
        while let Some(section) = self.reader.poll() {
            self.judge(&section)?;
        }
        Ok(())
    }

    /// Judges a section, and writes its picture if it is on time and can be decoded.
    fn judge(&mut self, section: &ReceivedSection) -> Result<(), ReceiveError> {
        let number = section.number;
        let is_on_time = section.is_complete && now_us() <= section.due_us;
        let settled = self.pending.first + self.pending.in_time.len() as u64;
        let missing = number.saturating_sub(settled);
        self.counts.missing += missing;
        // Longer runs contain no more information.
        let listed = missing.min(BUFFER as u64) as usize;
        self.pending.first = number - listed as u64 - self.pending.in_time.len() as u64;
        self.pending
            .in_time
            .extend(std::iter::repeat_n(false, listed));
        self.pending.in_time.push(is_on_time);
        match (section.is_complete, is_on_time) {
            (false, _) => self.counts.cut += 1,
            (true, true) => self.counts.on_time += 1,
            (true, false) => self.counts.late += 1,
        }
        if !section.is_complete {
            return Ok(());
        }
        let Some((label, media)) = Label::decode(&section.bytes) else {
            return Err(ReceiveError::Content { number });
        };
        // Absent pictures cannot be decoded.
        for absent in self.next_picture.max(label.number.saturating_sub(1_024))..label.number {
            self.decodability.judge(absent, None, false);
        }
        self.next_picture = label.number.saturating_add(1);
        let is_decodable = self
            .decodability
            .judge(label.number, label.needs, is_on_time);
        if !is_decodable {
            self.counts.undecodable += u64::from(is_on_time);
            return Ok(());
        }
        let Ok((Header::Picture(kind), _)) = Header::decode(media) else {
            return Err(ReceiveError::Content { number });
        };
        let mut bytes = Vec::new();
        let written = self.writer.write(media, &mut bytes);
        written.map_err(|_| ReceiveError::Content { number })?;
        self.output
            .write_all(&bytes)
            .map_err(ReceiveError::Output)?;
        let index = match kind {
            FrameType::Predicted { .. } => 1,
            FrameType::Bidirectional { .. } => 2,
            _ => 0,
        };
        if let Some(count) = self.counts.written.get_mut(index) {
            *count += 1;
        }
        Ok(())
    }

    /// Sends the due report, if any section has been settled since the last one.
    async fn send_report(&mut self, stream: &TcpStream) -> Result<(), ReceiveError> {
        if self.pending.in_time.is_empty() {
            return Ok(());
        }
        let report = self.pending.encode();
        let section = Section {
            bytes: &report,
            deadline: Time::MAX,
        };
        let sent = stream.send_sections(&[section]).await;
        sent.map_err(ReceiveError::Connection)?;
        self.pending.first += self.pending.in_time.len() as u64;
        self.pending.in_time.clear();
        Ok(())
    }

    /// Prints the results: lines on the standard error, or a JSON document on the standard output.
    fn report(
        &self,
        args: &args::TcpVideoReceive,
        peer: SocketAddr,
        delivery: Delivery,
        error: Option<&ReceiveError>,
    ) -> Result<(), Failure> {
        let Counts {
            on_time,
            late,
            cut,
            missing,
            undecodable,
            written: [i, p, b],
            gaps,
            gap_bytes,
        } = self.counts;
        if args.json {
            let document = json!({
                "peer": peer,
                "delivery": match delivery {
                    Delivery::Timelined => "timelined",
                    Delivery::Plain => "plain",
                },
                "sections": {"on_time": on_time, "late": late, "cut": cut, "missing": missing},
                "undecodable": undecodable,
                "written": {"i": i, "p": p, "b": b},
                "gaps": gaps,
                "gap_bytes": gap_bytes,
                "error": error.map(ToString::to_string),
            });
            return print(format!("{document}\n"));
        }
        say(&format!(
            "{peer}: wrote {i} I, {p} P and {b} B pictures; {undecodable} on time lacked others"
        ));
        say(&format!(
            "sections: {on_time} on time, {late} late, {cut} cut, {missing} missing"
        ));
        Ok(())
    }
}

/// Unix time in microseconds, the clock of the deadlines.
#[expect(
    clippy::disallowed_methods,
    reason = "the sender's deadlines come by this clock"
)]
fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}
