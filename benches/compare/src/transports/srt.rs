//! SRT by `srt-live-transmit`: a child process at each end, with datagrams on loopback between it
//! and this program.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::net::UdpSocket;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{Ended, Outgoing, PASSPHRASE, SOCKET_BUFFER, nobody_called, udp_drops, udp_socket};
use crate::arguments::{Common, Receive, Send};
use crate::chunk::{Frame, SIZE};
use crate::clock::sleep_until;
use crate::failure::{Context, Failure, Result};
use crate::sink::Sink;

const PROGRAM: &str = "srt-live-transmit";
/// Packets between two lines of statistics.
const STATISTICS_EVERY: &str = "50";
/// How long a child may take to end after SIGINT.
const PATIENCE: Duration = Duration::from_secs(3);

/// A child process and its output.
struct Transmit {
    child: Child,
    lines: mpsc::UnboundedReceiver<String>,
    /// Where it writes its statistics.
    statistics: PathBuf,
}

impl Transmit {
    fn start(input: &str, output: &str) -> Result<Self> {
        let statistics =
            std::env::temp_dir().join(format!("compare-srt-{}.json", std::process::id()));
        let mut child = Command::new(PROGRAM)
            .args([
                "-loglevel:error",
                "-stats-report-frequency",
                STATISTICS_EVERY,
                "-statspf",
                "json",
                "-fullstats",
            ])
            .arg(format!("-statsout:{}", statistics.display()))
            .args(["-chunk", &SIZE.to_string(), input, output])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context(format!(
                "cannot start {PROGRAM}; Debian's package srt-tools has it"
            ))?;
        let (sender, lines) = mpsc::unbounded_channel();
        if let Some(stdout) = child.stdout.take() {
            tokio::spawn(forward(stdout, sender.clone()));
        }
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(forward(stderr, sender));
        }
        Ok(Self {
            child,
            lines,
            statistics,
        })
    }

    /// Waits until the child reports a connection.
    async fn connected(&mut self, text: &str, wait: Duration) -> Result<bool> {
        let mut said = Vec::new();
        let connected = timeout(wait, async {
            while let Some(line) = self.lines.recv().await {
                if line.contains(text) {
                    return true;
                }
                said.push(line);
            }
            false
        });
        match connected.await {
            Ok(true) => Ok(true),
            Ok(false) => Err(Failure(format!(
                "{PROGRAM} ended: {}; correct --option, or the address",
                said.join(" / ")
            ))),
            Err(_) => Ok(false),
        }
    }

    fn broken(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok()??;
        Some(format!("{PROGRAM} ended: {status}"))
    }

    /// Ends the child, and returns its last statistics.
    async fn end(mut self) -> Value {
        if let Some(id) = self.child.id() {
            let _ = kill(Pid::from_raw(id as i32), Signal::SIGINT);
        }
        if timeout(PATIENCE, self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
        last_document(&std::fs::read_to_string(&self.statistics).unwrap_or_default())
    }
}

impl Drop for Transmit {
    fn drop(&mut self) {
        // Some children end without statistics.
        let _ = std::fs::remove_file(&self.statistics);
    }
}

/// The last whole line of JSON.
fn last_document(text: &str) -> Value {
    let mut documents = text
        .lines()
        .rev()
        .filter_map(|line| serde_json::from_str(line.trim().trim_end_matches(',')).ok());
    documents.next().unwrap_or(Value::Null)
}

async fn forward(from: impl AsyncRead + Unpin, to: mpsc::UnboundedSender<String>) {
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let _ = to.send(line);
    }
}

/// The settings of both ends: live mode, messages of one chunk, encryption, and drops of packets
/// after their deadline.
fn uri(address: SocketAddr, mode: &str, common: &Common) -> String {
    let mut keys = vec![
        ("mode", mode.to_owned()),
        ("transtype", "live".to_owned()),
        ("latency", common.srt_latency.as_millis().to_string()),
        ("payloadsize", SIZE.to_string()),
        ("tlpktdrop", "1".to_owned()),
        ("passphrase", PASSPHRASE.replace(' ', "-")),
        ("pbkeylen", "16".to_owned()),
    ];
    for (key, value) in &common.options {
        keys.retain(|(known, _)| known != key);
        keys.push((key, value.clone()));
    }
    let pairs: Vec<String> = keys
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    format!("srt://{address}?{}", pairs.join("&"))
}

/// A free port on loopback.
async fn free_port() -> Result<u16> {
    let socket = UdpSocket::bind("127.0.0.1:0").await;
    let socket =
        socket.context("cannot bind 127.0.0.1; bring loopback up with `ip link set lo up`")?;
    Ok(socket
        .local_addr()
        .context("cannot read an address")?
        .port())
}

pub struct Sender {
    transmit: Transmit,
    socket: UdpSocket,
    port: u16,
    given: u64,
    refused: u64,
    /// Detected during the submission of frames: a child that has ended cannot report it again.
    broken: Option<String>,
}

pub async fn connect(arguments: &Send) -> Result<Sender> {
    let common = &arguments.common;
    let port = free_port().await?;
    let input = format!("udp://127.0.0.1:{port}?rcvbuf={SOCKET_BUFFER}");
    let output = uri(arguments.connect, "caller", common);
    let mut transmit = Transmit::start(&input, &output)?;
    if !transmit
        .connected("SRT target connected", common.wait)
        .await?
    {
        return Err(Failure(format!(
            "nobody at {} answered within {:?}; start `compare receive --transport srt` there first",
            arguments.connect, common.wait
        )));
    }
    let socket = udp_socket("127.0.0.1:0".parse().expect("an address"))?;
    socket
        .connect(("127.0.0.1", port))
        .await
        .context("cannot reach 127.0.0.1; bring loopback up with `ip link set lo up`")?;
    socket.writable().await.context("cannot use a UDP socket")?;
    Ok(Sender {
        transmit,
        socket,
        port,
        given: 0,
        refused: 0,
        broken: None,
    })
}

impl Outgoing for Sender {
    fn give(&mut self, _frame: &Frame, payload: Bytes, _deadline_ns: u64) -> Result<()> {
        for chunk in payload.chunks(SIZE) {
            match self.socket.try_send(chunk) {
                Ok(_) => self.given += 1,
                Err(_) => self.refused += 1,
            }
        }
        self.broken = self.transmit.broken();
        Ok(())
    }

    fn broken(&self) -> Option<String> {
        self.broken.clone()
    }

    async fn finish(self, until_ns: u64) -> Result<Value> {
        sleep_until(until_ns).await;
        let drops = udp_drops(self.port);
        let statistics = self.transmit.end().await;
        Ok(json!({
            "chunks_given": self.given,
            "chunks_refused_by_loopback": self.refused,
            "chunks_dropped_by_loopback": drops,
            "last": statistics,
        }))
    }
}

pub async fn receive(arguments: &Receive, sink: &Sink) -> Result<Ended> {
    let common = &arguments.common;
    let socket = udp_socket("127.0.0.1:0".parse().expect("an address"))?;
    let port = socket
        .local_addr()
        .context("cannot read an address")?
        .port();
    let input = uri(arguments.listen, "listener", common);
    let mut transmit = Transmit::start(&input, &format!("udp://127.0.0.1:{port}"))?;
    if !transmit
        .connected("Accepted SRT source connection", common.wait)
        .await?
    {
        return Err(nobody_called(common));
    }
    let over = sink.over();
    tokio::pin!(over);
    let mut datagram = [0; 2_048];
    loop {
        tokio::select! {
            received = socket.recv(&mut datagram) => {
                sink.chunk(&datagram[..received.context("cannot receive datagrams")?]);
            }
            () = &mut over => break,
        }
    }
    let drops = udp_drops(port);
    Ok(Ended {
        why: "the source had ended".into(),
        statistics: json!({
            "chunks_dropped_by_loopback": drops,
            "last": transmit.end().await,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_line_of_statistics_counts() {
        let text = "{\"a\":1}\n{\"a\":2},\n{\"a\":3";
        assert_eq!(last_document(text), json!({ "a": 2 }));
        assert_eq!(last_document(""), Value::Null);
    }
}
