//! Sections over real packets: to another host behind the kernel, and to the kernel itself.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use comity_tcp::timeline::TimelineConfig;
use comity_tcp_host::framing::{ReceivedSection, SectionReader};
use comity_tcp_host::net::{Device, Stack, TcpListener, TcpStream, Tun};
use comity_tcp_host::{Config, Delivery, Framing, Piece, PieceKind, Section, SectionStatistics};
use comity_units::Span;
use ring::digest::{SHA256, digest};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::time::Instant;

use super::lossy::{Disturbance, Lossy};
use super::{beside_kernel, config, host, ip, kernel};
use crate::world::bytes;

const PORT: u16 = 6_000;
/// The rate of the path in bytes per second, and the burst that it carries at once.
const RATE: f64 = 500_000.0;
const BURST: f64 = 20_000.0;

/// Packets that leave beyond the rate are lost.
struct Policed {
    tun: Tun,
    /// Bytes that may leave, and when they were counted.
    tokens: f64,
    at: Instant,
}

impl Policed {
    fn new(tun: Tun) -> Self {
        Self {
            tun,
            tokens: BURST,
            at: Instant::now(),
        }
    }
}

impl std::os::fd::AsFd for Policed {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.tun.as_fd()
    }
}

impl Device for Policed {
    fn receive(&mut self) -> std::io::Result<&[u8]> {
        self.tun.receive()
    }

    fn send(&mut self, packet: &[u8]) -> std::io::Result<()> {
        let now = Instant::now();
        let earned = now.duration_since(self.at).as_secs_f64() * RATE;
        (self.tokens, self.at) = ((self.tokens + earned).min(BURST), now);
        let length = packet.len() as f64;
        if self.tokens < length {
            return Ok(());
        }
        self.tokens -= length;
        self.tun.send(packet)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.tun.flush()
    }
}

fn timelined(config: Config) -> Config {
    let mut config = config;
    config.tcp.timeline = Some(TimelineConfig::PAPER);
    config.framing = Framing::Header;
    config
}

/// Submits a section of 8 kB each 10 ms, more than the path carries, for two seconds. Each lives
/// for 150 ms. Returns the contents, and what became of them.
async fn submit(stack: &Stack, stream: &mut TcpStream) -> (Vec<Vec<u8>>, SectionStatistics) {
    let mut contents = Vec::new();
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    for number in 0..200_u8 {
        tick.tick().await;
        let content = bytes(number, 7_000 + usize::from(number) * 10);
        let deadline = stack.now() + Span::from_millis(150);
        let section = Section {
            bytes: &content,
            deadline,
        };
        assert_eq!(stream.send_sections(&[section]).await.unwrap(), 1);
        contents.push(content);
    }
    stream.shutdown().await.unwrap();
    stream.acknowledged().await.unwrap();
    (contents, stream.section_statistics().unwrap())
}

/// Reads a stream of pieces to its end.
async fn collect(stream: &TcpStream) -> Vec<ReceivedSection> {
    let mut reader = SectionReader::new(1 << 20);
    let (mut buffer, mut pieces) = (vec![0; 5_000], [Piece::default(); 8]);
    loop {
        let count = stream
            .receive_pieces(&mut buffer, &mut pieces)
            .await
            .unwrap();
        if count == 0 {
            break;
        }
        let mut used = 0;
        for piece in &pieces[..count] {
            let length = piece.length as usize;
            match piece.kind {
                PieceKind::Gap => reader.gap(piece.length),
                PieceKind::Data => {
                    reader.data(&buffer[used..used + length]).unwrap();
                    used += length;
                }
            }
        }
    }
    reader.finish();
    std::iter::from_fn(|| reader.poll()).collect()
}

fn check(contents: &[Vec<u8>], received: &[ReceivedSection]) -> u64 {
    for section in received {
        let content = &contents[usize::try_from(section.number).unwrap()];
        assert!(content.starts_with(&section.bytes));
        assert_eq!(section.is_complete, content.len() == section.bytes.len());
    }
    let complete = received.iter().filter(|section| section.is_complete);
    complete.count() as u64
}

#[test]
fn two_hosts_pass_over_what_is_too_late() {
    beside_kernel(timelined(config()), &[], Policed::new, async |stack| {
        // The kernel forwards between the two devices.
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        let tun = Tun::open("comity1", 1_500).unwrap();
        ip("address add 10.78.0.1/24 dev comity1\nlink set comity1 up\n");
        let address = SocketAddr::from(([10, 78, 0, 2], PORT));
        let disturbance = Disturbance {
            lost: 10,
            repeated: 5,
            overtaken: 10,
            damaged: 2,
        };
        let other = Config::new([address.ip()]);
        let other = Stack::start(Lossy::new(tun, disturbance, 3), timelined(other)).unwrap();
        let listener = TcpListener::bind(&other, address, 8).unwrap();
        let (ours, theirs) = tokio::join!(TcpStream::connect(&stack, address), listener.accept());
        let (mut ours, (theirs, _)) = (ours.unwrap(), theirs.unwrap());
        for stream in [&ours, &theirs] {
            assert_eq!(stream.delivery().unwrap(), Delivery::Timelined);
        }
        let ((contents, statistics), received) =
            tokio::join!(submit(&stack, &mut ours), collect(&theirs));
        let complete = check(&contents, &received);
        assert_eq!(statistics.submitted, 200);
        let settled = statistics.on_time + statistics.cut + statistics.left_out;
        assert_eq!((settled, statistics.open), (200, 0), "{statistics:?}");
        assert!(
            complete >= statistics.on_time,
            "{complete} of {statistics:?}"
        );
        assert!(statistics.on_time >= 5, "{statistics:?}");
        assert!(statistics.cut + statistics.left_out >= 50, "{statistics:?}");
        assert_eq!(statistics.sent_late_bytes + statistics.late, 0);
    });
}

#[test]
fn a_plain_reader_finds_the_sections_again() {
    let script =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../experiments/tltcp/section_reader.py");
    beside_kernel(timelined(config()), &[], Policed::new, async |stack| {
        let address = SocketAddr::new(kernel(true), PORT);
        let mut reader = Command::new("python3")
            .arg(script)
            .args(["--listen", &address.ip().to_string(), &PORT.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 runs");
        let mut lines = BufReader::new(reader.stdout.take().unwrap()).lines();
        let mut line = move || {
            lines
                .next()
                .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap())
        };
        assert_eq!(line().unwrap()["listening"], PORT);
        let read = std::thread::spawn(move || std::iter::from_fn(line).collect::<Vec<_>>());
        let mut stream = TcpStream::connect(&stack, address).await.unwrap();
        assert_eq!(stream.delivery().unwrap(), Delivery::Plain);
        let (contents, statistics) = submit(&stack, &mut stream).await;
        drop(stream);
        let mut documents = read.join().unwrap();
        assert!(reader.wait().unwrap().success());
        let totals = documents.pop().unwrap()["totals"].clone();
        for document in &documents {
            let content = &contents[document["number"].as_u64().unwrap() as usize];
            assert_eq!(document["length"], content.len());
            let arrived = document["arrived"].as_u64().unwrap() as usize;
            let hash = digest(&SHA256, &content[..arrived]);
            let hash: String = hash
                .as_ref()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            assert_eq!(document["sha256"], hash);
        }
        assert_eq!(totals["complete"], statistics.on_time + statistics.late);
        assert_eq!(totals["cut"], statistics.cut);
        let seen = documents.last().unwrap()["number"].as_u64().unwrap() + 1;
        assert_eq!(
            totals["left_out"].as_u64().unwrap() + (200 - seen),
            statistics.left_out
        );
        assert!(statistics.on_time >= 5, "{statistics:?}");
        assert!(statistics.cut + statistics.left_out >= 50, "{statistics:?}");
    });
}

#[test]
fn a_kernel_client_is_served_sections() {
    beside_kernel(
        timelined(config()),
        &[],
        |tun| tun,
        async |stack| {
            let address = SocketAddr::new(host(false), PORT);
            let listener = TcpListener::bind(&stack, address, 8).unwrap();
            let (theirs, ours) =
                tokio::join!(tokio::net::TcpStream::connect(address), listener.accept());
            let (mut theirs, (mut ours, _)) = (theirs.unwrap(), ours.unwrap());
            assert_eq!(ours.delivery().unwrap(), Delivery::Plain);
            let mut stream = Vec::new();
            let ((contents, statistics), read) = tokio::join!(
                submit(&stack, &mut ours),
                tokio::io::AsyncReadExt::read_to_end(&mut theirs, &mut stream)
            );
            read.unwrap();
            let mut reader = SectionReader::new(1 << 20);
            reader.data(&stream).unwrap();
            let received: Vec<_> = std::iter::from_fn(|| reader.poll()).collect();
            assert_eq!(check(&contents, &received), 200, "{statistics:?}");
            assert_eq!(statistics.on_time + statistics.late, 200);
        },
    );
}
