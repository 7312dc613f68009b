//! The emulator.

use std::io::{self, BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{ends, said};

/// Repeats a call on a socket with a timeout if a signal interrupts it: the system does not restart
/// such a call.
fn received<T>(mut receive: impl FnMut() -> io::Result<T>) -> T {
    loop {
        match receive() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result.unwrap(),
        }
    }
}

/// A free port of the loopback interface.
fn free_port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

/// A running emulator between two sockets.
struct Emulated {
    child: Child,
    lines: BufReader<ChildStdout>,
    /// The address that it listens on.
    address: String,
    caller: UdpSocket,
    target: UdpSocket,
}

impl Emulated {
    fn start(args: &[&str]) -> Self {
        let socket = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let patience = Some(Duration::from_secs(10));
            socket.set_read_timeout(patience).unwrap();
            socket
        };
        let (caller, target) = (socket(), socket());
        let to = target.local_addr().unwrap().to_string();
        let mut child = Command::new(env!("CARGO_BIN_EXE_comity"))
            .args(["emulate", "--listen", ":0", "--to", &to, "--json"])
            // The test must not depend on the load of this machine.
            .args(["--late", "60s"])
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        lines.read_line(&mut first).unwrap();
        let listening: Value = serde_json::from_str(&first).unwrap();
        assert_eq!(listening["event"], "listening");
        let address = listening["address"].as_str().unwrap().to_owned();
        Self {
            child,
            lines,
            address,
            caller,
            target,
        }
    }

    /// Waits for its end, which must be a success. Returns its output.
    fn end(&mut self) -> String {
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success(), "{rest}");
        rest
    }
}

#[test]
fn the_emulator_carries_packets_and_accounts_for_them() {
    let mut emulated =
        Emulated::start(&["--delay", "1ms", "--up-rate", "8Mbps", "--duration", "1s"]);
    let Emulated {
        caller,
        target,
        address,
        ..
    } = &emulated;
    let mut buffer = [0; 100];
    for _ in 0..10 {
        caller.send_to(b"question", address).unwrap();
        let (length, from) = received(|| target.recv_from(&mut buffer));
        assert_eq!(&buffer[..length], b"question");
        target.send_to(b"answer", from).unwrap();
        assert_eq!(received(|| caller.recv(&mut buffer)), 6);
    }
    let rest = emulated.end();
    let report: Value = serde_json::from_str(rest.trim()).unwrap();
    assert_eq!(report["event"], "report");
    assert_eq!(report["overload"], serde_json::json!([]));
    for (way, bytes) in [("forward", 36), ("backward", 34)] {
        let way = &report[way];
        assert_eq!(way["arrived"]["packets"], 10, "{way}");
        assert_eq!(way["released"]["bytes"], 10 * bytes, "{way}");
        assert_eq!(way["timing"]["count"], 10, "{way}");
        let bars = way["timing_histogram"].as_array().unwrap();
        let counts = bars.iter().map(|bar| bar["count"].as_u64().unwrap());
        assert_eq!(counts.sum::<u64>(), 10);
    }
}

/// In one direction, the trace lets a packet of 1,500 bytes leave each 100 ms, so each further
/// packet waits 100 ms. The other direction is free.
#[expect(
    clippy::disallowed_methods,
    reason = "the emulator keeps to the real clock"
)]
#[test]
fn a_trace_determines_when_packets_leave() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("slow.trace");
    std::fs::write(&trace, "100\n200\n").unwrap();
    let mut emulated =
        Emulated::start(&["--up-trace", trace.to_str().unwrap(), "--duration", "3s"]);
    let Emulated {
        caller,
        target,
        address,
        ..
    } = &emulated;
    let began = Instant::now();
    let mut buffer = [0; 2_000];
    // With 28 bytes of headers, each fills one line of the trace.
    for _ in 0..6 {
        caller.send_to(&[7; 1_472], address).unwrap();
    }
    for packet in 0..6 {
        let (_, from) = received(|| target.recv_from(&mut buffer));
        // The first leaves within 100 ms, each further one 100 ms after it.
        let least = Duration::from_millis(packet * 100);
        assert!(began.elapsed() >= least, "{packet}: {:?}", began.elapsed());
        target.send_to(b"answer", from).unwrap();
        assert_eq!(received(|| caller.recv(&mut buffer)), 6);
    }
    emulated.end();
}

#[test]
fn an_emulator_that_cannot_work_is_refused_with_the_reason() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let free = format!("127.0.0.1:{}", free_port());
    let refused = |args: &[&str], reasons: &[&str]| {
        let args: Vec<_> = ["emulate"].iter().chain(args).copied().collect();
        let said = said(&ends(2, &args));
        for reason in reasons {
            assert!(said.contains(reason), "{reason} is not in:\n{said}");
        }
        // An error in an option for both directions is reported once.
        assert_eq!(said.matches("error: ").count(), 1, "{said}");
    };
    refused(
        &["--listen", &free, "--to", &free],
        &["the address to listen on"],
    );
    refused(
        &["--listen", ":0", "--to", "nowhere"],
        &["cannot resolve", "host:port"],
    );
    refused(
        &["--listen", ":0", "--to", "127.0.0.1:0"],
        &["cannot reach 127.0.0.1:0"],
    );
    refused(
        &["--listen", ":0", "--to", &free, "--rate", "0bps"],
        &["--rate", "0bps"],
    );
    refused(
        &["--listen", ":0", "--to", &free, "--up-delay", "soon"],
        &["--up-delay", "soon"],
    );
    refused(
        &["--listen", ":0", "--to", &free, "--loss", "200%"],
        &["200%", "100%"],
    );
    refused(
        &["--listen", ":0", "--to", &free, "--trace", "none.trace"],
        &["none.trace"],
    );
    let said = said(&ends(5, &["emulate", "--listen", &address, "--to", &free]));
    for reason in ["cannot listen on", &address, "ss -lunp"] {
        assert!(said.contains(reason), "{reason} is not in:\n{said}");
    }
}
