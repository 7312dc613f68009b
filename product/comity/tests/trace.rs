//! qlog files of real connections, compared with the statistics.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use comity::credentials::PresharedKey;
use comity::{
    Config, ConfigBuilder, Deliver, Endpoint, Item, Qlog, Reason, Section, Statistics, StreamId,
    counter,
};
use serde_json::Value;

use crate::common::{CALL_TIMEOUT, opened};

fn options() -> ConfigBuilder {
    Config::builder()
        .preshared_key(PresharedKey::new([7; 32]))
        .deliver(Deliver::Early)
        .latency(Duration::from_secs(20))
        .connect_timeout(CALL_TIMEOUT)
}

/// The records of a JSON text sequence (RFC 7464): the header, then the events.
fn records(path: &Path) -> (Value, Vec<Value>) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut records = text.split('\u{1e}').skip(1).map(|record| {
        assert!(record.ends_with('\n'), "a record is cut: {record:?}");
        serde_json::from_str::<Value>(record).expect("valid JSON")
    });
    (records.next().expect("a header"), records.collect())
}

fn count(events: &[Value], name: &str) -> u64 {
    events.iter().filter(|event| event["name"] == name).count() as u64
}

/// Loses every `n`-th datagram to `target`.
fn lossy(target: SocketAddr, n: usize, stop: &Arc<AtomicBool>) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    let address = socket.local_addr().unwrap();
    let stop = stop.clone();
    thread::spawn(move || {
        let mut bytes = vec![0; 65_536];
        let (mut caller, mut seen) = (None, 0);
        while !stop.load(Ordering::Relaxed) {
            let Ok((length, from)) = socket.recv_from(&mut bytes) else {
                continue;
            };
            let to = if from == target {
                caller
            } else {
                caller = Some(from);
                seen += 1;
                (seen % n != 0).then_some(target)
            };
            if let Some(to) = to {
                let _ = socket.send_to(&bytes[..length], to);
            }
        }
    });
    address
}

/// Compares the file of one end with its statistics at the end.
fn check(path: &Path, statistics: &Statistics) {
    let (header, events) = records(path);
    assert_eq!(header["qlog_version"], "0.3");
    assert_eq!(header["qlog_format"], "JSON-SEQ");
    assert_eq!(count(&events, "comity:records_omitted"), 0);
    let times: Vec<f64> = events
        .iter()
        .map(|event| event["time"].as_f64().unwrap())
        .collect();
    assert!(times.is_sorted(), "in the order of time");

    // Up to the end. Later records are replies to late packets.
    let end = events
        .iter()
        .position(|event| event["name"] == "comity:connection_ended")
        .expect("an end");
    let json = serde_json::to_value(statistics).unwrap();
    assert_eq!(events[end]["data"]["statistics"]["sent"], json["sent"]);
    let before = &events[..end];
    let (sent, received) = (&statistics.sent, &statistics.received);
    assert_eq!(
        count(before, "transport:packet_sent"),
        sent.counters.packets
    );
    assert_eq!(
        count(before, "transport:packet_received"),
        received.counters.packets
    );
    assert_eq!(
        count(before, "recovery:packet_lost"),
        sent.counters.lost_packets
    );
    assert_eq!(
        count(before, "comity:section_submitted") + count(before, "comity:section_skipped"),
        sent.sections.submitted
    );

    let bytes: u64 = before
        .iter()
        .filter(|event| event["name"] == "transport:packet_sent")
        .map(|event| event["data"]["raw"]["length"].as_u64().unwrap())
        .sum();
    assert_eq!(bytes, sent.counters.wire_bytes);
    let section_bytes: u64 = before
        .iter()
        .filter(|event| event["name"] == "transport:packet_sent")
        .map(|event| event["data"]["raw"]["payload_length"].as_u64().unwrap())
        .sum();
    assert_eq!(section_bytes, sent.counters.section_bytes);

    let mut fates = BTreeMap::new();
    for event in before {
        let fate = match event["name"].as_str().unwrap() {
            "comity:section_settled" => &event["data"]["fate"],
            "comity:section_skipped" => &event["data"]["reason"],
            _ => continue,
        };
        *fates.entry(fate.as_str().unwrap()).or_insert(0) += 1;
    }
    for settled in sent.sections.counters() {
        let fate = settled.key;
        if !["submitted", "open"].contains(&fate) {
            let sections = fates.get(fate).copied().unwrap_or(0);
            assert_eq!(settled.value, counter::Value::Whole(sections), "{fate}");
        }
    }
    // Every lost packet was sent before, and so was every acknowledged one.
    let mut numbers = std::collections::BTreeSet::new();
    for event in before {
        let number = event["data"]["header"]["packet_number"].as_u64();
        match event["name"].as_str().unwrap() {
            "transport:packet_sent" => assert!(numbers.insert(number.unwrap())),
            "recovery:packet_lost" => assert!(numbers.contains(&number.unwrap())),
            "transport:packet_received" => {
                for frame in event["data"]["frames"].as_array().into_iter().flatten() {
                    for range in frame["acked_ranges"].as_array().into_iter().flatten() {
                        assert!(numbers.contains(&range[1].as_u64().unwrap()), "{range}");
                    }
                }
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_trace_agrees_with_the_statistics_of_its_connection() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let [at_caller, at_listener] =
        ["caller.sqlog", "listener.sqlog"].map(|name| Qlog::create(path(name), 1 << 30).unwrap());
    let listener = options().qlog(at_listener.clone()).build().unwrap();
    let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap(), listener).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let way = lossy(endpoint.local_address(), 25, &stop);
    let caller = options().qlog(at_caller.clone()).build().unwrap();
    let (sender, receiver) = opened(comity::connect(way, caller), &endpoint).await;

    let mut first = None;
    for number in 0..60_usize {
        let mut section = Section::new(vec![number as u8; 1_000 + number * 300]);
        section.needs = (number == 50).then_some(first).flatten();
        let id = sender.send(section).await.unwrap();
        first = first.or(Some(id));
    }
    sender.skip(StreamId(0), Reason::Shed).unwrap();
    let receive = async {
        let (mut whole, mut gaps) = (0, 0);
        while let Some(item) = receiver.recv().await {
            match item {
                Item::Section(_) => whole += 1,
                Item::Gap(_) => gaps += 1,
            }
        }
        (whole, gaps)
    };
    let (finished, received) = tokio::join!(sender.finish(), receive);
    assert_eq!((finished, received), (Ok(()), (60, 1)));
    let (sent, got) = (sender.stats(), receiver.stats());
    assert!(
        sent.sent.counters.lost_packets > 10,
        "{}",
        sent.sent.counters.lost_packets
    );
    endpoint.close().await;
    stop.store(true, Ordering::Relaxed);
    at_caller.finish().unwrap();
    at_listener.finish().unwrap();

    check(&path("caller.sqlog"), &sent);
    check(&path("listener.sqlog"), &got);
    let (header, events) = records(&path("listener.sqlog"));
    assert_eq!(header["trace"]["vantage_point"]["type"], "server");
    assert_eq!(count(&events, "comity:section_delivered"), 60);
    let missing = events
        .iter()
        .find(|event| event["name"] == "comity:section_missing")
        .unwrap();
    assert_eq!(missing["data"]["reason"], "shed");
    let (_, events) = records(&path("caller.sqlog"));
    let given = events
        .iter()
        .find(|event| event["name"] == "comity:section_submitted")
        .unwrap();
    let data = &given["data"];
    let latency = data["deadline"].as_f64().unwrap() - data["source_time"].as_f64().unwrap();
    assert!((latency - 20_000.0).abs() < 1e-3, "{latency}");
    // A loaded host acknowledges many packets at once, so there is no minimum.
    assert!(count(&events, "recovery:metrics_updated") > 0);
}

#[tokio::test]
async fn each_connection_has_a_trace_file_that_reports_when_it_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let qlog = Qlog::create(folder.path().join("trace.sqlog"), 20_000).unwrap();
    let with = options().qlog(qlog.clone()).build().unwrap();
    let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap(), with).unwrap();
    for _ in 0..2 {
        let called = comity::connect(endpoint.local_address(), options().build().unwrap());
        let (sender, receiver) = opened(called, &endpoint).await;
        for _ in 0..20 {
            sender.send(Section::new(vec![1; 20_000])).await.unwrap();
        }
        let (finished, ()) = tokio::join!(sender.finish(), async {
            while receiver.recv().await.is_some() {}
        });
        assert_eq!(finished, Ok(()));
    }
    endpoint.close().await;
    let error = qlog.finish().unwrap_err();
    assert_eq!(error.files.len(), 2, "{error}");
    for (name, (file, reason)) in ["trace.sqlog", "trace-2.sqlog"].iter().zip(&error.files) {
        assert!(file.ends_with(name), "{error}");
        assert!(reason.to_string().contains("limit"), "{error}");
        let path = folder.path().join(name);
        let (_, events) = records(&path);
        assert_eq!(events.last().unwrap()["name"], "comity:trace_ended");
        assert_eq!(events.last().unwrap()["data"]["limit_bytes"], 20_000);
        let length = path.metadata().unwrap().len();
        assert!((15_000..20_200).contains(&length), "{length}");
    }
    assert!(Qlog::create(folder.path().join("no/such"), 1).is_err());
}

/// An existing file is replaced only on request, and a link is never followed.
#[test]
fn an_existing_file_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("old"), "mine").unwrap();
    std::os::unix::fs::symlink(at("old"), at("link")).unwrap();
    std::os::unix::fs::symlink(at("new"), at("dangling")).unwrap();
    for name in ["old", "link", "dangling"] {
        assert!(Qlog::create(at(name), 1 << 20).is_err(), "{name}");
    }
    for name in ["link", "dangling"] {
        assert!(Qlog::create_over(at(name), 1 << 20).is_err(), "{name}");
    }
    assert!(!at("new").exists());
    assert_eq!(std::fs::read(at("old")).unwrap(), b"mine");
    Qlog::create_over(at("old"), 1 << 20)
        .unwrap()
        .finish()
        .unwrap();
    assert_eq!(std::fs::read(at("old")).unwrap(), b"");
    Qlog::create("/dev/null", 1 << 20)
        .unwrap()
        .finish()
        .unwrap();
}

/// The controller `fixed` plans each packet one gap after the previous departure.
#[tokio::test]
async fn paced_packets_record_their_planned_departure() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.sqlog");
    let qlog = Qlog::create(&path, 1 << 30).unwrap();
    let row = comity_congestion::table::find("fixed").unwrap();
    let gap = row.parse("gap", "2ms").unwrap();
    let with = options()
        .controller("fixed")
        .controller_parameters(comity_congestion::table::Parameters::new().with("gap", gap));
    let endpoint = Endpoint::bind(
        "127.0.0.1:0".parse().unwrap(),
        with.clone().build().unwrap(),
    );
    let endpoint = endpoint.unwrap();
    let called = comity::connect(
        endpoint.local_address(),
        with.qlog(qlog.clone()).build().unwrap(),
    );
    let (sender, receiver) = opened(called, &endpoint).await;
    for _ in 0..30 {
        sender.send(Section::new(vec![1; 1_300])).await.unwrap();
    }
    let (finished, ()) = tokio::join!(sender.finish(), async {
        while receiver.recv().await.is_some() {}
    });
    assert_eq!(finished, Ok(()));
    endpoint.close().await;
    qlog.finish().unwrap();

    let (_, events) = records(&path);
    let sent = events
        .iter()
        .filter(|event| event["name"] == "transport:packet_sent");
    let time = |event: &Value| event["time"].as_f64().unwrap();
    // Small packets may be paced too, and then the next packet is planned after them.
    let all: Vec<f64> = sent.clone().map(time).collect();
    let full = sent.filter(|event| {
        let length = event["data"]["raw"]["payload_length"].as_u64();
        length.unwrap() > 1_000
    });
    let times: Vec<(f64, Option<f64>)> = full
        .map(|event| (time(event), event["data"]["planned"].as_f64()))
        .collect();
    // The first packets may have waited only for the application.
    let mut paced = 0;
    for pair in times.windows(2) {
        let [(before, _), (time, Some(planned))] = *pair else {
            continue;
        };
        paced += 1;
        let mut since = all.iter().filter(|sent| (before..time).contains(*sent));
        assert!(
            since.any(|sent| (planned - (sent + 2.0)).abs() < 1e-3),
            "{before} {planned}"
        );
        assert!(planned <= time + 1e-9, "{planned} {time}");
    }
    assert!(paced > 20, "{paced}");
}

/// Peers that call repeatedly fill at most eight full files.
#[tokio::test]
async fn all_files_together_have_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let limit = 4_000;
    let qlog = Qlog::create(folder.path().join("trace.sqlog"), limit).unwrap();
    let with = options().qlog(qlog.clone()).build().unwrap();
    let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap(), with).unwrap();
    for _ in 0..12 {
        let called = comity::connect(endpoint.local_address(), options().build().unwrap());
        let (sender, receiver) = opened(called, &endpoint).await;
        sender.send(Section::new(vec![1; 40_000])).await.unwrap();
        let (finished, ()) = tokio::join!(sender.finish(), async {
            while receiver.recv().await.is_some() {}
        });
        assert_eq!(finished, Ok(()));
    }
    endpoint.close().await;
    let error = qlog.finish().unwrap_err();
    assert_eq!(error.files.len(), 12, "{error}");
    let lengths = std::fs::read_dir(folder.path()).unwrap();
    let sum: u64 = { lengths.map(|file| file.unwrap().metadata().unwrap().len()) }.sum();
    // Each file may have one last record in addition.
    assert!((7 * limit..8 * limit + 12 * 200).contains(&sum), "{sum}");
}
