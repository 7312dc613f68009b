//! qlog files as text, and as parsed by a JSON reader.

use comity_qlog::{
    CongestionState, Data, Description, LossTrigger, Metrics, Packet, Piece, QlogWriter, Side,
};
use comity_units::{DataSize, Rate, Span, Time};
use serde_json::{Value, json};

fn description() -> Description<'static> {
    Description {
        title: "fairness, seed 7",
        description: "two flows",
        endpoint: "flow 0",
        side: Side::Client,
        protocol: "TCP",
    }
}

/// The records of a JSON text sequence, by RFC 7464.
fn records(file: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(file).unwrap();
    assert!(text.starts_with('\u{1e}'));
    text.split('\u{1e}')
        .skip(1)
        .map(|record| {
            assert!(record.ends_with('\n') && record.matches('\n').count() == 1);
            serde_json::from_str(record).unwrap()
        })
        .collect()
}

#[test]
fn a_short_file_word_for_word() {
    let mut writer = QlogWriter::new(Vec::new(), &description()).unwrap();
    let data = Some(Data {
        offset: 4344,
        length: 1448,
    });
    let packet = Packet {
        number: 3,
        wire_bytes: 1500,
        data,
        ..Packet::default()
    };
    writer
        .packet_sent(Time::from_nanos(1_234_567), &packet)
        .unwrap();
    writer
        .packet_lost(
            Time::from_millis(40),
            &packet,
            LossTrigger::ReorderingThreshold,
        )
        .unwrap();
    let expected = "\u{1e}{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\
        \"title\":\"fairness, seed 7\",\"description\":\"two flows\",\
        \"trace\":{\"title\":\"flow 0\",\"vantage_point\":{\"name\":\"flow 0\",\"type\":\"client\"},\
        \"common_fields\":{\"time_format\":\"relative\",\"reference_time\":0,\
        \"protocol_type\":[\"TCP\"]}}}\n\
        \u{1e}{\"time\":1.234567,\"name\":\"transport:packet_sent\",\
        \"data\":{\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":3},\
        \"raw\":{\"length\":1500,\"payload_length\":1448},\
        \"frames\":[{\"frame_type\":\"stream\",\"stream_id\":0,\"offset\":4344,\"length\":1448}]}}\n\
        \u{1e}{\"time\":40.0,\"name\":\"recovery:packet_lost\",\
        \"data\":{\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":3},\
        \"raw\":{\"length\":1500,\"payload_length\":1448},\
        \"frames\":[{\"frame_type\":\"stream\",\"stream_id\":0,\"offset\":4344,\"length\":1448}],\
        \"trigger\":\"reordering_threshold\"}}\n";
    assert_eq!(
        String::from_utf8(writer.finish().unwrap()).unwrap(),
        expected
    );
}

#[test]
fn acknowledgements_name_the_packets_they_cover() {
    let receiver = Description {
        side: Side::Server,
        ..description()
    };
    let mut writer = QlogWriter::new(Vec::new(), &receiver).unwrap();
    let acknowledged = [5..=7, 2..=2];
    let packet = Packet {
        number: 9,
        wire_bytes: 64,
        acknowledged: &acknowledged,
        ..Packet::default()
    };
    writer.packet_received(Time::from_secs(1), &packet).unwrap();
    let bare = Packet {
        number: 10,
        wire_bytes: 40,
        ..Packet::default()
    };
    writer.packet_received(Time::from_secs(2), &bare).unwrap();
    let records = records(&writer.finish().unwrap());
    assert_eq!(records[0]["trace"]["vantage_point"]["type"], "server");
    assert_eq!(records[1]["name"], "transport:packet_received");
    assert_eq!(
        records[1]["data"]["frames"],
        json!([{ "frame_type": "ack", "acked_ranges": [[5, 7], [2, 2]] }])
    );
    assert_eq!(
        records[2]["data"],
        json!({
            "header": { "packet_type": "1RTT", "packet_number": 10 },
            "raw": { "length": 40, "payload_length": 0 },
        })
    );
}

#[test]
fn only_changes_are_written() {
    let mut writer = QlogWriter::new(Vec::new(), &description()).unwrap();
    let mut metrics = Metrics {
        min_rtt: Some(Span::from_nanos(40_000_001)),
        smoothed_rtt: Some(Span::from_millis(41)),
        latest_rtt: Some(Span::from_micros(41_500)),
        rtt_variance: Some(Span::from_millis(2)),
        congestion_window: Some(DataSize::new(14_480)),
        bytes_in_flight: Some(DataSize::new(2_896)),
        ssthresh: Some(DataSize::new(65_536)),
        pacing_rate: Some(Rate::from_mbps(3)),
        capacity: Some(Rate::from_mbps(50)),
    };
    writer
        .metrics_updated(Time::from_millis(1), &metrics)
        .unwrap();
    writer
        .metrics_updated(Time::from_millis(2), &metrics)
        .unwrap();
    metrics.congestion_window = Some(DataSize::new(15_928));
    writer
        .metrics_updated(Time::from_millis(3), &metrics)
        .unwrap();
    // An unknown value is not a change, neither now nor when it is known again.
    writer
        .metrics_updated(
            Time::from_millis(4),
            &Metrics {
                ssthresh: None,
                ..metrics
            },
        )
        .unwrap();
    metrics.bytes_in_flight = Some(DataSize::new(0));
    writer
        .metrics_updated(Time::from_millis(5), &metrics)
        .unwrap();

    let records = records(&writer.finish().unwrap());
    assert_eq!(records.len(), 4);
    assert!(
        records[1..]
            .iter()
            .all(|record| record["name"] == "recovery:metrics_updated")
    );
    assert_eq!(
        records[1]["data"],
        json!({
            "min_rtt": 40.000001, "smoothed_rtt": 41.0, "latest_rtt": 41.5, "rtt_variance": 2.0,
            "congestion_window": 14_480, "bytes_in_flight": 2_896, "ssthresh": 65_536,
            "pacing_rate": 3_000_000,
            "bottleneck_capacity": 50_000_000,
        })
    );
    assert_eq!(records[2]["time"], 3.0);
    assert_eq!(records[2]["data"], json!({ "congestion_window": 15_928 }));
    assert_eq!(records[3]["time"], 5.0);
    assert_eq!(records[3]["data"], json!({ "bytes_in_flight": 0 }));
}

/// A capacity that is no longer known is 0, once, and then again what it is.
#[test]
fn a_forgotten_capacity_is_written_as_zero() {
    let mut writer = QlogWriter::new(Vec::new(), &description()).unwrap();
    let capacities = [None, Some(50), None, None, Some(50), Some(50), Some(40)];
    for (at, capacity) in (0..).zip(capacities) {
        let metrics = Metrics {
            capacity: capacity.map(Rate::from_mbps),
            ..Metrics::default()
        };
        writer
            .metrics_updated(Time::from_secs(at), &metrics)
            .unwrap();
    }
    let records = records(&writer.finish().unwrap());
    let written: Vec<_> = records[1..]
        .iter()
        .map(|record| {
            let capacity = record["data"]["bottleneck_capacity"].as_u64();
            (record["time"].as_f64().unwrap(), capacity.unwrap())
        })
        .collect();
    let expected = [
        (1_000.0, 50_000_000),
        (2_000.0, 0),
        (4_000.0, 50_000_000),
        (6_000.0, 40_000_000),
    ];
    assert_eq!(written, expected);
}

#[test]
fn states_are_written_when_they_change() {
    use CongestionState::*;
    let mut writer = QlogWriter::new(Vec::new(), &description()).unwrap();
    let states = [
        SlowStart,
        SlowStart,
        Recovery,
        CongestionAvoidance,
        CongestionAvoidance,
    ];
    for (at, state) in (0..).zip(states) {
        writer
            .congestion_state_updated(Time::from_secs(at), state)
            .unwrap();
    }
    let records = records(&writer.finish().unwrap());
    let events: Vec<_> = records[1..]
        .iter()
        .map(|it| (&it["time"], &it["data"]))
        .collect();
    assert_eq!(
        events,
        [
            (&json!(0.0), &json!({ "new": "slow_start" })),
            (
                &json!(2000.0),
                &json!({ "old": "slow_start", "new": "recovery" })
            ),
            (
                &json!(3000.0),
                &json!({ "old": "recovery", "new": "congestion_avoidance" })
            ),
        ]
    );
}

/// The decimal fraction by integer division is the oracle.
#[test]
fn times_are_exact_to_the_nanosecond_for_eleven_days() {
    let mut writer = QlogWriter::new(Vec::new(), &description()).unwrap();
    let times = [
        1,
        999_999,
        1_000_001,
        123_456_789_012_345,
        999_999_999_999_999,
    ];
    for nanos in times {
        writer
            .packet_sent(Time::from_nanos(nanos), &Packet::default())
            .unwrap();
    }
    let text = String::from_utf8(writer.finish().unwrap()).unwrap();
    for (record, nanos) in text.split('\u{1e}').skip(2).zip(times) {
        let decimal = format!("{}.{:06}", nanos / 1_000_000, nanos % 1_000_000);
        let written = record
            .strip_prefix("{\"time\":")
            .unwrap()
            .split(',')
            .next()
            .unwrap();
        let normal = match written.split_once('e') {
            None => written.to_owned(),
            Some(_) => format!("{:.6}", written.parse::<f64>().unwrap()),
        };
        assert_eq!(normal, decimal);
    }
}

#[test]
fn sections_and_other_frames_accompany_acknowledgements() {
    let mut writer = QlogWriter::new(Vec::new(), &description()).unwrap();
    let piece = |offset, length| Piece {
        stream: 2,
        section: 7,
        offset,
        length,
        total: 3_000,
        retransmission: offset > 0,
    };
    let packet = Packet {
        number: 9,
        wire_bytes: 1_477,
        acknowledged: &[3..=5],
        pieces: &[piece(0, 1_000), piece(2_000, 300)],
        others: &["floor", "ping"],
        ..Packet::default()
    };
    writer.packet_sent(Time::from_millis(5), &packet).unwrap();
    let fate = json!({"stream_id": 2, "section": 7, "fate": "acknowledged"});
    writer
        .event(Time::from_millis(6), "comity:section_settled", &fate)
        .unwrap();
    let records = records(&writer.finish().unwrap());
    assert_eq!(
        records[1],
        json!({
            "time": 5.0, "name": "transport:packet_sent", "data": {
                "header": {"packet_type": "1RTT", "packet_number": 9},
                "raw": {"length": 1_477, "payload_length": 1_300},
                "frames": [
                    {"frame_type": "ack", "acked_ranges": [[3, 5]]},
                    {"frame_type": "section", "stream_id": 2, "section": 7, "offset": 0, "length": 1_000,
                     "total": 3_000, "retransmission": false},
                    {"frame_type": "section", "stream_id": 2, "section": 7, "offset": 2_000, "length": 300,
                     "total": 3_000, "retransmission": true},
                    {"frame_type": "floor"},
                    {"frame_type": "ping"},
                ],
            },
        })
    );
    assert_eq!(
        records[2],
        json!({"time": 6.0, "name": "comity:section_settled", "data": fate})
    );
}
