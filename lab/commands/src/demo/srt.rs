//! The same video over SRT, by two processes of `srt-live-transmit` and the emulator.
//!
//! ```text
//! plan ─UDP─► srt-live-transmit ─► emulated bottleneck ─► srt-live-transmit ─UDP─► arrivals
//! ```
//!
//! A section is cut into messages of live mode. Each begins with the section's index in the plan,
//! which identifies it at the receiver.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use comity_emulator::Emulator;
use comity_units::Span;
use tokio::net::UdpSocket;
use tokio::time::{sleep, sleep_until};

use super::bottleneck::{DemoError, Rivals, emulation, since};
use super::clip::Planned;
use super::recording::{Fate, Other, Sent, Setup};
use crate::clock::now;
use crate::numbers::spaced;

/// The program, of Debian's package srt-tools.
const PROGRAM: &str = "srt-live-transmit";
pub(super) const NAME: &str = "SRT";
/// The size of a live message: seven packets of a transport stream.
const MESSAGE: usize = 1_316;
/// The size of a section's index in the plan, which begins each message.
const MARK: usize = 4;
/// SRT has to deliver a packet this long before the deadline. It adjusts its clock by the
/// round-trip times that it measures, which moved all later deliveries by 20 to 30 ms.
const MARGIN: Span = Span::from_millis(50);
/// How long to wait for a connection, and for the last packets beyond the latency.
const PATIENCE: Duration = Duration::from_secs(3);

/// Sends the plan over SRT beside the same number of competitors.
pub(super) async fn run(setup: &Setup, plan: &[Planned], is_stopped: &AtomicBool) -> Other {
    let latency = setup
        .latency
        .saturating_sub(setup.delay + MARGIN)
        .max(MARGIN);
    let version = version();
    let sections = match &version {
        Some(_) => carry(setup, plan, latency, is_stopped).await,
        None => Err(format!("{PROGRAM} is not installed (Debian: srt-tools)")),
    };
    Other {
        name: NAME.into(),
        how: format!(
            "Sent by {PROGRAM}{} through the same emulator, beside as many competitors. SRT's latency is \
             {}: it holds every packet back for the same time, which ends just before the deadline.",
            version.map_or(String::new(), |version| format!(" {version}")),
            spaced(latency)
        ),
        sections,
    }
}

/// The text for a system error.
fn broken(purpose: &str) -> impl Fn(std::io::Error) -> String {
    move |error| format!("{purpose}: {error}")
}

/// The text for a failure of the emulator or the competitors.
fn failed(error: impl Into<DemoError>) -> String {
    error.into().to_string()
}

async fn carry(
    setup: &Setup,
    plan: &[Planned],
    latency: Span,
    is_stopped: &AtomicBool,
) -> Result<Vec<Sent>, String> {
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let bind = || async move { UdpSocket::bind(loopback).await };
    let input = bind().await.map_err(broken("cannot open a socket"))?;
    let output = bind().await.map_err(broken("cannot open a socket"))?;
    let output_port = output.local_addr().map_err(broken("no address"))?.port();
    let (listen, feed, from) = (free_port().await?, free_port().await?, free_port().await?);

    let mut rivals = Rivals::endpoint(setup).map_err(failed)?;
    let mut config = emulation(setup, rivals.target(), loopback);
    config.routes = vec![(
        SocketAddr::from(([127, 0, 0, 1], from)),
        SocketAddr::from(([127, 0, 0, 1], listen)),
    )];
    let emulator = Emulator::bind(config).map_err(failed)?;
    let bottleneck = emulator.local_address();
    let emulator = emulator.spawn().map_err(failed)?;

    let keys = format!(
        "transtype=live&latency={}&payloadsize={MESSAGE}&tlpktdrop=1",
        latency.as_millis()
    );
    let receiving = format!("srt://127.0.0.1:{listen}?mode=listener&{keys}");
    let mut receiver = Transmit::start(&receiving, &format!("udp://127.0.0.1:{output_port}"))?;
    let sending = format!("srt://{bottleneck}?mode=caller&port={from}&{keys}");
    let mut sender = Transmit::start(&format!("udp://127.0.0.1:{feed}"), &sending)?;
    // SRT measures the delay of the path here, before the competitors fill the queue.
    sender.connected("SRT target connected").await?;
    receiver.connected("Accepted SRT source connection").await?;
    input
        .connect(("127.0.0.1", feed))
        .await
        .map_err(broken("cannot reach it"))?;

    rivals.start(setup, bottleneck).await.map_err(failed)?;
    let start = now() + Duration::from_millis(50);
    let arrivals = Arrivals::new(plan.len());
    let receiving = tokio::spawn(receive(output, arrivals.clone()));
    let mut sent = 0;
    for (index, planned) in (0_u32..).zip(plan) {
        let due = start + Duration::from(planned.at);
        sleep_until(due.into()).await;
        if is_stopped.load(Ordering::Relaxed) {
            break;
        }
        for part in planned.media.payload.chunks(MESSAGE - MARK) {
            let message = [&index.to_be_bytes(), part].concat();
            // If loopback refuses a message, it is lost, as on any network.
            let _ = input.send(&message).await;
        }
        sent += 1;
    }
    sleep(Duration::from(setup.latency) + PATIENCE / 3).await;
    receiving.abort();
    drop((sender, receiver));
    rivals.end().await;
    let report = emulator.stop().map_err(failed)?;
    if let Some(sign) = report.statistics.overload().first() {
        return Err(format!(
            "this machine was too busy for the emulator: {sign}"
        ));
    }
    let plan = plan.get(..sent).unwrap_or(plan);
    Ok(Sent::all(plan, setup.latency, |index, due_s| {
        arrivals.fate(index, plan.get(index), due_s, start)
    }))
}

/// The messages that have arrived, by section.
#[derive(Clone)]
struct Arrivals(Arc<Mutex<Vec<Arrived>>>);

/// The bytes of a section that have arrived, and the arrival time of the last.
#[derive(Clone, Copy, Default)]
struct Arrived {
    bytes: usize,
    last: Option<Instant>,
}

impl Arrivals {
    fn new(sections: usize) -> Self {
        Self(Arc::new(Mutex::new(vec![Arrived::default(); sections])))
    }

    fn on_message(&self, message: &[u8], at: Instant) {
        let Some((mark, part)) = message.split_first_chunk::<MARK>() else {
            return;
        };
        let index = usize::try_from(u32::from_be_bytes(*mark)).unwrap_or(usize::MAX);
        let mut arrived = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(section) = arrived.get_mut(index) {
            section.bytes += part.len();
            section.last = Some(at);
        }
    }

    fn fate(&self, index: usize, planned: Option<&Planned>, due_s: f64, start: Instant) -> Fate {
        let arrived = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let size = planned.map(|planned| planned.media.payload.len());
        match arrived.get(index) {
            Some(&Arrived {
                bytes,
                last: Some(last),
            }) if Some(bytes) == size => Fate::Complete {
                slack_ms: (due_s - since(start, last)) * 1e3,
            },
            _ => Fate::Gap("incomplete at SRT's deadline"),
        }
    }
}

async fn receive(output: UdpSocket, arrivals: Arrivals) {
    let mut message = [0; 2_048];
    while let Ok(length) = output.recv(&mut message).await {
        arrivals.on_message(message.get(..length).unwrap_or_default(), now());
    }
}

/// A free port of the loopback address.
async fn free_port() -> Result<u16, String> {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).await;
    let address = socket.and_then(|socket| socket.local_addr());
    let address = address.map_err(broken("no port is free"))?;
    Ok(address.port())
}

/// The version of the library; `None` if the program is not installed.
fn version() -> Option<String> {
    let output = Command::new(PROGRAM).arg("-version").output().ok()?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    let (_, rest) = said.split_once("Library version: ")?;
    let end = rest.find([',', '\n']).unwrap_or(rest.len());
    rest.get(..end).map(|version| version.trim().to_owned())
}

/// A process of the program, killed when this value is dropped.
struct Transmit {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Transmit {
    fn start(input: &str, output: &str) -> Result<Self, String> {
        let mut child = Command::new(PROGRAM)
            .args(["-loglevel:error", "-chunk", &MESSAGE.to_string()])
            .args([input, output])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(broken("cannot start it"))?;
        let (said, lines) = mpsc::channel();
        if let Some(stdout) = child.stdout.take() {
            forward(stdout, said.clone());
        }
        if let Some(stderr) = child.stderr.take() {
            forward(stderr, said);
        }
        Ok(Self { child, lines })
    }

    /// Waits until the process says that it is connected.
    async fn connected(&mut self, text: &str) -> Result<(), String> {
        let until = now() + PATIENCE;
        let mut said = Vec::new();
        while now() < until {
            match self.lines.try_recv() {
                Ok(line) if line.contains(text) => return Ok(()),
                Ok(line) => said.push(line),
                Err(mpsc::TryRecvError::Empty) => sleep(Duration::from_millis(5)).await,
                Err(mpsc::TryRecvError::Disconnected) => break,
            }
        }
        let said = said.join("; ");
        Err(format!("{PROGRAM} did not connect: {said}"))
    }
}

impl Drop for Transmit {
    fn drop(&mut self) {
        // Killing a process that has already ended fails, which does not matter.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the lines of a process, so that its pipe never fills.
fn forward(from: impl Read + Send + 'static, to: mpsc::Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            // The reader of the lines may be gone.
            let _ = to.send(line);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_complete_with_its_last_byte() {
        let plan = super::super::clip::Clip::bundled().plan(1, Span::from_secs(1));
        let big = plan.iter().position(|p| p.media.payload.len() > 1_400);
        let index = big.unwrap();
        let planned = plan.get(index).unwrap();
        let arrivals = Arrivals::new(plan.len());
        let start = now();
        let at = |ms| start + Duration::from_millis(ms);
        let fate = || arrivals.fate(index, Some(planned), 0.4, start);
        let mark = u32::try_from(index).unwrap().to_be_bytes();
        let (head, tail) = planned.media.payload.split_at(1_312);
        arrivals.on_message(&[&mark, head].concat(), at(350));
        assert!(matches!(fate(), Fate::Gap(_)));
        arrivals.on_message(&[&mark, tail].concat(), at(380));
        let is_complete =
            || matches!(fate(), Fate::Complete { slack_ms } if (slack_ms - 20.0).abs() < 1e-6);
        assert!(is_complete());
        // Other messages change nothing.
        arrivals.on_message(&[1, 2], at(390));
        arrivals.on_message(&[0xff; 100], at(390));
        assert!(is_complete());
    }
}
