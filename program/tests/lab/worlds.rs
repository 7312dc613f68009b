//! The same scenario in the simulator and on real packets.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pcap_file::pcapng::{Block, PcapNgReader};

use crate::{Bench, can_run, rows, said};

/// One kernel CUBIC flow fills the link like a simulated one, and the same queue limits it.
#[test]
fn a_kernel_flow_fills_the_link_like_a_simulated_one() {
    if !can_run() {
        return;
    }
    let bench = Bench::new(
        r#"
[scenario]
name = "cubic"
duration = "7s"
warmup = "2s"
seeds = [1]

[topology]
kind = "dumbbell"
bottleneck = { rate = "8Mbps", delay = "10ms", queue = 40, reverse = { queue = 1000 } }

[[flow]]
group = "tcp"
controller = "cubic"
"#,
    );
    let played = bench.run(&[]);
    let flow = bench.row("lab.csv", "flows", ("flow", "tcp-0"));
    assert_eq!(flow.text("kind"), "cubic/kernel");
    let run = bench.row("lab.csv", "runs", ("world", "lab"));
    assert_eq!(run.text("fingerprint"), "", "no two runs are equal");
    let text = String::from_utf8_lossy(&played.output.stdout);
    assert!(text.contains("the router was late by at most"), "{text}");
    assert!(
        !text.contains("events") && !text.contains("fingerprint"),
        "{text}"
    );
    if !played.is_trusted {
        return;
    }
    bench.simulate();
    let link = |world| bench.row(world, "links", ("link", "bottleneck"));
    let (real, simulated) = (link("lab.csv"), link("sim.csv"));
    let utilisation = real.number("utilisation");
    // A packet that was on the link when the measurement began is counted in full.
    assert!((0.95..1.002).contains(&utilisation), "used {utilisation}");
    let within = |column: &str, least: f64, most: f64| {
        let ratio = real.number(column) / simulated.number(column);
        assert!(
            (least..=most).contains(&ratio),
            "{column}: {} in the lab, {} in the simulator",
            real.text(column),
            simulated.text(column)
        );
    };
    within("queueing_delay_mean_s", 0.7, 1.4);
    within("dropped_measured_packets", 0.25, 4.0);
    let retransmitted = flow.number("retransmitted_packets");
    let dropped = flow.number("dropped_data_packets");
    assert!(dropped >= 1.0, "the queue overflowed");
    assert!(
        (dropped..=2.0 * dropped + 10.0).contains(&retransmitted),
        "{dropped} dropped and {retransmitted} retransmitted"
    );
    assert!(
        flow.number("fast_retransmits") >= 1.0,
        "each overflow is one"
    );
    // The minimum round trip is that of the links, plus a little for two namespaces.
    let least = flow.number("min_rtt_s");
    assert!((0.020..0.024).contains(&least), "{least}");
}

/// Time-lined TCP on real packets drops expired sections, as in the simulator. Plain TCP sends them
/// late.
#[test]
fn sections_with_deadlines_fare_on_real_packets_as_in_the_simulator() {
    if !can_run() {
        return;
    }
    let bench = Bench::new(
        r#"
[scenario]
name = "timeline"
duration = "12s"
seeds = [1]

[topology]
kind = "dumbbell"
bottleneck = { rate = "1Mbps", delay = "20ms", queue = 30, reverse = { queue = 1000 } }

[[flow]]
group = "video"
controller = "reno"
stack = "comity"
workload = { kind = "cbr", interval = "40ms" }
timeline = { section = "6kB", deadline = "500ms", relative_to = "receiver" }

[[sweep]]
name = "time_lined"
parameter = "flow.video.timeline.drop_expired"
values = [true, false]
"#,
    );
    let played = bench.run(&[]);
    bench.simulate();
    let flows = |world| {
        let row = |is: &str| bench.row(world, "flows", ("axis.time_lined", is));
        [row("true"), row("false")]
    };
    let [timelined, plain] = flows("lab.csv");
    assert_eq!(timelined.text("kind"), "reno/comity");
    assert_eq!(plain.number("timeline_jumps"), 0.0);
    assert_eq!(plain.number("timeline_broken"), 0.0);
    if !played.is_trusted {
        return;
    }
    assert!(timelined.number("timeline_jumps") > 0.0);
    assert!(timelined.number("timeline_broken") > 0.0);
    // 1.2 Mb/s exceed the path: without jumps, the sections are later and later.
    assert!(plain.number("timeline_late") > plain.number("timeline_in_time"));
    for (real, simulated) in [timelined, plain].iter().zip(flows("sim.csv")) {
        for column in ["timeline_sections", "timeline_in_time", "timeline_late"] {
            let (real, simulated) = (real.number(column), simulated.number(column));
            assert!(
                (real - simulated).abs() <= 30.0,
                "{column}: {real} in the lab, {simulated} in the simulator"
            );
        }
    }
}

/// The simulator's state machine behaves alike on real packets, with a controller that the kernel
/// does not have. Its peer is another host of the same kind.
///
/// Only the queue loses packets, and the file is complete before the other flow begins: with two
/// flows, the packets that a random loss hits depend on the order of the flows.
#[test]
fn comitys_tcp_behaves_on_real_packets_as_in_the_simulator() {
    if !can_run() {
        return;
    }
    let bench = Bench::new(
        r#"
[scenario]
name = "stack"
duration = "8s"
warmup = "3s"
seeds = [1]

[topology]
kind = "dumbbell"
bottleneck = { rate = "8Mbps", delay = "20ms", queue = 60, reverse = { queue = 1000 } }

[[flow]]
group = "greedy"
controller = "libra"
parameters = { capacity = "8Mbps" }
start = "2s"
stack = "comity"

[[flow]]
group = "file"
controller = "reno"
stack = "comity"
workload = { kind = "file", size = "300kB" }
"#,
    );
    let played = bench.run(&[]);
    bench.simulate();
    let flow = |world, name| bench.row(world, "flows", ("flow", name));
    let (file, greedy) = (flow("lab.csv", "file-0"), flow("lab.csv", "greedy-0"));
    assert_eq!(file.text("kind"), "reno/comity");
    assert_eq!(greedy.text("kind"), "libra/comity");
    if !played.is_trusted {
        return;
    }
    assert_eq!(file.number("delivered_total_bytes"), 300_000.0);
    let took = (file.number("finished_ns") - file.number("started_ns")) / 1e9;
    assert!((0.3..2.0).contains(&took), "{took} s");
    let simulated = flow("sim.csv", "greedy-0");
    for (column, tolerance) in [
        ("goodput_bps", 0.2),
        ("mean_cwnd_bytes", 0.25),
        ("srtt_s", 0.5),
    ] {
        let ratio = greedy.number(column) / simulated.number(column);
        assert!(
            (1.0 - tolerance..=1.0 + tolerance).contains(&ratio),
            "{column}: {} in the lab, {} in the simulator",
            greedy.text(column),
            simulated.text(column)
        );
    }
    assert!(
        greedy.number("fast_retransmits") >= 1.0,
        "the queue loses packets"
    );
}

/// The numbers of the lab's datagrams in a capture.
fn numbers(path: &Path) -> Vec<u64> {
    let mut reader = PcapNgReader::new(File::open(path).unwrap()).unwrap();
    let mut numbers = Vec::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else {
            continue;
        };
        assert_eq!(packet.data.len(), 1_000, "each is captured whole");
        let sliced = SlicedPacket::from_ip(&packet.data).unwrap();
        let Some(NetSlice::Ipv4(ip)) = &sliced.net else {
            panic!("{sliced:?}")
        };
        assert_eq!(ip.header().source().first_chunk(), Some(&[198, 18]));
        assert_eq!(ip.header().destination().first_chunk(), Some(&[198, 19]));
        let Some(TransportSlice::Udp(udp)) = &sliced.transport else {
            panic!("{sliced:?}")
        };
        numbers.push(u64::from_be_bytes(*udp.payload().first_chunk().unwrap()));
    }
    numbers
}

/// Given the same packets, the link loses the same ones, since random streams depend only on seeds
/// and names. A capture has every packet that was offered to its link.
#[test]
fn a_link_loses_the_packets_that_it_loses_in_the_simulator() {
    if !can_run() {
        return;
    }
    let bench = Bench::new(
        r#"
[scenario]
name = "losses"
duration = "2s"
seeds = [7]

[topology]
kind = "dumbbell"
bottleneck = { rate = "8Mbps", delay = "10ms", losses = [{ model = "bernoulli", probability = 0.1 }] }
access = { rate = "1Gbps", delay = "1ms" }

[[flow]]
group = "udp"
transport = "datagram"
packet = "1000B"
workload = { kind = "cbr", interval = "4ms" }
"#,
    );
    bench.run(&[
        "--pcapng",
        "bottleneck=before.pcapng",
        "--pcapng",
        "udp-0.destination=behind.pcapng",
    ]);
    let before = numbers(&bench.path("before.pcapng"));
    let behind = numbers(&bench.path("behind.pcapng"));
    let offered = |link| {
        let link = bench.row("lab.csv", "links", ("link", link));
        link.number("offered_packets") as usize
    };
    assert_eq!(before.len(), offered("bottleneck"));
    assert_eq!(behind.len(), offered("udp-0.destination"));
    // Two seconds with a packet every 4 ms, without those that a busy machine could not send.
    assert!((400..=500).contains(&before.len()), "{}", before.len());
    let in_order: Vec<u64> = (0..before.len() as u64).collect();
    assert_eq!(before, in_order, "offered in order");

    // Packets near the end may not have arrived.
    let last = *behind.last().unwrap();
    let arrived: BTreeSet<u64> = behind.into_iter().collect();
    let lost: Vec<u64> = (0..last)
        .filter(|number| !arrived.contains(number))
        .collect();
    let output = bench
        .comity(&[
            "sim",
            "trace",
            "flow.toml",
            "--link",
            "bottleneck",
            "--csv",
            "trace.csv",
        ])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let simulated: Vec<u64> = rows(&bench.path("trace.csv"))
        .into_iter()
        .filter(|row| row["place"] == "bottleneck" && row["event"] == "lost")
        .map(|row| row["sequence"].parse().unwrap())
        .filter(|number| *number < last)
        .collect();
    assert!(simulated.len() > 20, "a tenth of some 500 packets");
    assert_eq!(lost, simulated);
}

/// On a path with spare capacity every section is on time, and none is sent after its deadline.
#[test]
fn sections_are_on_time_on_an_idle_path() {
    if !can_run() {
        return;
    }
    let bench = Bench::new(
        r#"
[scenario]
name = "sections"
duration = "4s"
seeds = [1]

[topology]
kind = "dumbbell"
bottleneck = { rate = "8Mbps", delay = "20ms", queue = 60 }

[[flow]]
group = "video"
transport = "sections"
latency = "400ms"
stop = "3400ms"
workload = { kind = "video", rate = "1Mbps", fps = 25, group = 25, b_frames = 0 }
"#,
    );
    let played = bench.run(&["--qlog", "qlogs"]);
    let flow = bench.row("lab.csv", "flows", ("flow", "video-0"));
    assert_eq!(flow.text("kind"), "steady/sections");
    for end in ["source", "destination"] {
        let log = fs::read_to_string(bench.path(&format!("qlogs/video-0.{end}.sqlog"))).unwrap();
        assert!(log.contains("QUIC") || log.contains("qlog"), "{end}");
    }
    if !played.is_trusted {
        return;
    }
    // 3.4 s of 25 frames a second, without some 80 ms for the handshake.
    let submitted = flow.number("sections_submitted");
    assert!((80.0..=85.0).contains(&submitted), "{submitted} submitted");
    assert_eq!(flow.number("sections_on_time"), submitted);
    assert_eq!(flow.number("sections_refused"), 0.0);
    assert_eq!(flow.number("sent_late_bytes"), 0.0);
    // Half of a round trip, and the time that a frame of some 5 kB takes at 8 Mb/s.
    let age = flow.number("section_age_mean_s");
    assert!((0.020..0.080).contains(&age), "{age}");
    assert!(flow.number("mean_rtt_s") >= 0.040);
    assert!(flow.number("mean_rtt_s") < 0.100);
}

/// Programs communicate over the path. Their output is kept, and a failure is reported.
#[test]
fn programs_run_at_the_ends_of_the_path() {
    if !can_run() {
        return;
    }
    let bench = Bench::new(
        r#"
[scenario]
name = "programs"
duration = "3s"
seeds = [5]

[topology]
kind = "dumbbell"
bottleneck = { rate = "8Mbps", delay = "5ms", queue = 60 }

[[flow]]
group = "pipe"
transport = "command"
sender = '''
python3 -c '
import socket, time
for _ in range(100):
    try:
        peer = socket.create_connection(("{address}", {port}))
        break
    except OSError:
        time.sleep(0.02)
peer.sendall(b"x" * 100000)
print("from", peer.getsockname()[0], "seed {seed} for {seconds} s")
'
'''
receiver = '''
python3 -c '
import socket
listener = socket.create_server(("::", {port}), family=socket.AF_INET6, dualstack_ipv6=True)
peer, _ = listener.accept()
total = 0
while data := peer.recv(65536):
    total += len(data)
print(total)
'
'''

[[flow]]
group = "ping"
transport = "command"
start = "200ms"
sender = "echo sent to {address6}; echo broken >&2; exit 7"
"#,
    );
    let mut command = bench.comity(&["lab", "run", "flow.toml", "--out", "lab.csv", "--force"]);
    let output = command.args(["--logs", "logs"]).output().unwrap();
    let complaints = said(&output);
    assert_eq!(
        output.status.code(),
        Some(3),
        "a program failed: {complaints}"
    );
    assert!(
        complaints
            .contains("ping-0: not to be trusted: its sender failed with exit status: 7: broken"),
        "{complaints}"
    );
    assert!(!complaints.contains("pipe-0"), "{complaints}");
    let log = |name: &str| fs::read_to_string(bench.path("logs").join(name)).unwrap();
    assert_eq!(log("pipe-0.receiver.out"), "100000\n");
    assert_eq!(log("pipe-0.sender.out"), "from 198.18.0.1 seed 5 for 3 s\n");
    assert_eq!(log("ping-0.sender.out"), "sent to 2001:2::2:2\n");
    assert_eq!(log("ping-0.sender.err"), "broken\n");
    assert!(!bench.path("logs/ping-0.receiver.out").exists());
    let flow = bench.row("lab.csv", "flows", ("flow", "pipe-0"));
    assert_eq!(flow.text("kind"), "command");
    // The bytes, the headers of 52 to 60 bytes of some 70 packets, and the bytes of the handshake.
    let carried = flow.number("delivered_wire_bytes");
    assert!((103_000.0..112_000.0).contains(&carried), "{carried}");
    let trusted = bench.row("lab.csv", "runs", ("world", "lab"));
    assert_eq!(trusted.text("trusted"), "false");
}
