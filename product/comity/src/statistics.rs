//! The counters of connections and endpoints, as plain structs with a unit in every name.
//!
//! A value that SRT also reports has SRT's JSON key (`msRTT`, `pktSent`, `mbpsBandwidth`, ..). The
//! other keys have the same form. `docs/reference/statistics.md` lists them.

use comity_transport::datagram;
pub use comity_transport::datagram::{
    ReceivedStatistics as ReceivedCounters, SentStatistics as SentCounters,
};
pub use comity_transport::timeline::inbox::GapCounters;
pub use comity_transport::timeline::outbox::{ByteCounters, SectionCounters};
use comity_units::{DataSize, Rate, Span};

use crate::counter::counters;
use crate::session::{ListenerStatistics, SessionStatistics};

counters! {
    /// The statistics of one connection, in both directions. Counters are cumulative.
    #[derive(Clone, Debug, Default, PartialEq)]
    #[non_exhaustive]
    pub struct Statistics {
        /// How long the connection has been open.
        pub age_ms: f64 = "msTimeStamp", Gauge, Milliseconds;
        /// What this end sent, and its fate as far as this end knows.
        pub sent: Sent = "sent";
        /// What this end received.
        pub received: Received = "received";
        /// The path to the peer, as this end sees it.
        pub path: Path = "path";
        /// The peer's last report of what it received from this end. While packets arrive at the
        /// peer, it sends a report at least every 125 ms.
        pub peer: Option<Peer> = "peer";
        /// How much later than planned the endpoint handed paced packets to the system.
        pub pacing: Pacing = "pacing";
        /// Packet protection.
        pub protection: SessionStatistics = "protection";
    }
}

counters! {
    /// What an end sent.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct Sent {
        /// Packets, their bytes and their losses. `wire_bytes` includes all headers. The UDP and IP
        /// headers of a packet have 28 bytes with IPv4, and 48 bytes with IPv6.
        pub counters: SentCounters = "";
        /// Sections by their fate.
        pub sections: SectionCounters = "sections";
        /// The bytes of these sections. `queued` and `in_flight` together are the send buffer
        /// (`byteSndBuf` in SRT).
        pub bytes: ByteCounters = "bytes";
    }
}

counters! {
    /// What an end received.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    #[non_exhaustive]
    pub struct Received set from datagram::Statistics {
        /// Packets and their bytes. `wire_bytes` includes all headers, as in [`Sent::counters`].
        pub counters: ReceivedCounters = "" => |all| all.received;
        /// Bytes of sections delivered whole.
        pub delivered_bytes: u64 = "byteRecvDelivered", Counter, Bytes => |all| all.inbox.delivered;
        /// Bytes of sections that became gaps.
        pub partial_bytes: u64 = "byteRecvPartial", Counter, Bytes => |all| all.inbox.partial;
        /// Bytes that arrived again.
        pub duplicate_bytes: u64 = "byteRecvDuplicate", Counter, Bytes => |all| all.inbox.duplicate;
        /// Bytes that arrived after their section had become a gap.
        pub belated_bytes: u64 = "byteRcvBelated", Counter, Bytes => |all| all.inbox.late;
        /// Bytes that wait for the rest of their section or for the application.
        pub buffered_bytes: u64 = "byteRcvBuf" / "receive_buffer", Gauge, Bytes
            => |all| all.inbox.held;
        /// Sections that were whole by their deadline.
        pub on_time_sections: u64 = "sectionsOnTime", Counter, Count => |all| all.inbox.on_time;
        /// Sections that were whole only after their deadline.
        pub late_sections: u64 = "sectionsLate", Counter, Count => |all| all.inbox.complete_late;
        /// Sections that became gaps, by reason.
        pub gaps: GapCounters = "gaps" => |all| all.inbox.gaps;
        /// How long before their deadlines sections were whole. At least 99, 50 and 1 % of the
        /// sections reach the three values. Each value is rounded down to a power of two.
        pub slack_at_least_ms: [f64; 3] = "msSlackAtLeast", Gauge, Milliseconds
            => |all| [0.99, 0.5, 0.01].map(|share| ms(all.inbox.slack.at_least(share)));
    }
}

/// What [`Path`] is made of.
struct PathSource<'a> {
    controller: &'a str,
    path: &'a datagram::PathStatistics,
    drift_ppm: f64,
}

counters! {
    /// A path, as its sender sees it.
    ///
    /// The transport has the same values as spans and rates. Here they are milliseconds and Mb/s.
    #[derive(Clone, Debug, Default, PartialEq)]
    #[non_exhaustive]
    pub struct Path set from PathSource<'_> {
        /// The name of the controller.
        pub controller: String = "controller" => |from| from.controller.to_owned();
        /// The phase of the controller.
        pub phase: String = "phase" => |from| format!("{:?}", from.path.phase);
        /// The smoothed round-trip time.
        pub rtt_ms: Option<f64> = "msRTT" / "round_trip", Gauge, Milliseconds
            => |from| from.path.srtt.map(ms);
        /// The mean deviation of the round-trip time.
        pub rtt_variation_ms: f64 = "msRTTVar", Gauge, Milliseconds
            => |from| ms(from.path.rtt_variation);
        /// The least round-trip time.
        pub min_rtt_ms: Option<f64> = "msRTTMin", Gauge, Milliseconds
            => |from| from.path.min_rtt.map(ms);
        /// The one-way delay to the peer: half of the least round trip, plus the queueing delay.
        pub one_way_ms: Option<f64> = "msOneWayDelay", Gauge, Milliseconds
            => |from| from.path.one_way_delay.map(ms);
        /// The congestion window; unknown while only the pacing limits the flow.
        pub window_bytes: Option<u64> = "byteCongestionWindow", Gauge, Bytes
            => |from| limit(from.path.window);
        /// The bytes in flight.
        pub in_flight_bytes: u64 = "byteFlightSize", Gauge, Bytes
            => |from| from.path.in_flight.get();
        /// The slow-start threshold.
        pub ssthresh_bytes: Option<u64> = "byteSlowStartThreshold", Gauge, Bytes
            => |from| from.path.ssthresh.and_then(limit);
        /// The pacing rate.
        pub pacing_mbps: Option<f64> = "mbpsPacing" / "pacing_rate", Gauge, Mbps
            => |from| from.path.pacing_rate.map(Rate::as_mbps_f64);
        /// The pacing rate within a burst. Unknown for a controller without a token bucket.
        pub peak_mbps: Option<f64> = "mbpsPacingPeak", Gauge, Mbps
            => |from| from.path.peak_rate.map(Rate::as_mbps_f64);
        /// The tokens in the bucket of such a controller. Negative while the bucket is in debt.
        pub token_bytes: Option<i64> = "byteSaved", Gauge, Bytes => |from| from.path.tokens;
        /// The capacity of the bottleneck; unknown if the controller does not measure it.
        pub capacity_mbps: Option<f64> = "mbpsBandwidth", Gauge, Mbps
            => |from| from.path.capacity.map(Rate::as_mbps_f64);
        /// The bitrate at which the application should submit, for example that of an encoder.
        pub target_mbps: Option<f64> = "mbpsTarget" / "target_rate", Gauge, Mbps
            => |from| from.path.target_bitrate.map(Rate::as_mbps_f64);
        /// The protected payload of a full packet on this path, without headers and tag.
        pub payload_bytes: u32 = "bytePayload", Gauge, Bytes => |from| from.path.payload;
        /// How much faster the peer's clock runs than that of this end. Measured from the peer's
        /// packets.
        pub clock_drift_ppm: f64 = "ppmClockDrift", Gauge, Ppm => |from| from.drift_ppm;
    }
}

counters! {
    /// The peer's last report of what it received.
    ///
    /// The transport has the same values as microseconds and spans. Here they are milliseconds.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    #[non_exhaustive]
    pub struct Peer set from datagram::PeerReport {
        /// Sections that arrived whole, delivered or not.
        pub complete_sections: u64 = "sectionsComplete", Counter, Count => |report| report.complete;
        /// Complete sections that were whole by their deadline.
        pub on_time_sections: u64 = "sectionsOnTime", Counter, Count => |report| report.on_time;
        /// Complete sections that were whole only after their deadline.
        pub late_sections: u64 = "sectionsLate", Counter, Count => |report| report.late;
        /// Sections that will not arrive whole, because their deadline came or this end dropped
        /// them.
        pub gap_sections: u64 = "sectionsGap", Counter, Count => |report| report.gaps;
        /// Bytes of sections that arrived, each counted once.
        pub section_bytes: u64 = "byteRecvUnique", Counter, Bytes => |report| report.bytes;
        /// Packets that arrived, each counted once.
        pub packets: u64 = "pktRecvUnique", Counter, Count => |report| report.packets;
        /// Duplicate packets.
        pub duplicates: u64 = "pktRecvDuplicate", Counter, Count => |report| report.duplicates;
        /// The one-way delay of the latest packet to the peer: half of the least round trip that
        /// the peer measured, plus the queueing delay.
        pub one_way_ms: f64 = "msOneWayDelay" / "one_way_delay", Gauge, Milliseconds
            => |report| report.one_way_latest_us as f64 / 1e3;
        /// The least such delay in the recent past.
        pub min_one_way_ms: f64 = "msOneWayDelayMin" / "one_way_delay_min", Gauge, Milliseconds
            => |report| report.one_way_least_us as f64 / 1e3;
        /// The interarrival jitter of RTP: the variation of the delay between consecutive packets.
        pub jitter_ms: f64 = "msJitter" / "jitter", Gauge, Milliseconds
            => |report| ms(report.jitter);
        /// Bytes of the peer's receive buffer that are not free.
        pub buffered_bytes: u64 = "byteRcvBuf", Gauge, Bytes => |report| report.buffered;
        /// How much faster the clock of this end runs than the peer's. Measured by the peer.
        pub clock_drift_ppb: i64 = "ppbClockDrift", Gauge, Ppb => |report| report.drift_ppb;
    }
}

counters! {
    /// How much later than planned the endpoint handed paced packets to the system.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    #[non_exhaustive]
    pub struct Pacing {
        /// The packets that the pacer held back. The other fields describe only these packets.
        pub packets: u64 = "pktPaced", Counter, Count;
        /// The mean delay.
        pub mean_us: f64 = "usErrorMean", Gauge, Microseconds;
        /// The median delay.
        pub p50_us: f64 = "usErrorP50", Gauge, Microseconds;
        /// The 99th percentile.
        pub p99_us: f64 = "usErrorP99", Gauge, Microseconds;
        /// The 99.9th percentile.
        pub p999_us: f64 = "usErrorP999", Gauge, Microseconds;
        /// The maximum delay.
        pub max_us: f64 = "usErrorMax", Gauge, Microseconds;
    }
}

counters! {
    /// The counters of an endpoint.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct EndpointStatistics {
        /// Connections that are open, or being opened or closed.
        pub connections: u64 = "connections", Gauge, Count;
        /// Datagrams received.
        pub datagrams_received: u64 = "datagrams_received", Counter, Count;
        /// Datagrams handed to the system.
        pub datagrams_sent: u64 = "datagrams_sent", Counter, Count;
        /// System calls that sent these datagrams. One call can send several datagrams.
        pub batches_sent: u64 = "batches_sent", Counter, Count;
        /// Datagrams that the system refused to send. Their packets are lost.
        pub datagrams_unsent: u64 = "datagrams_unsent", Counter, Count;
        /// Datagrams that the endpoint dropped, because the deadline of a section in them passed
        /// before the system had room. Their packets are lost.
        pub datagrams_expired: u64 = "datagrams_expired", Counter, Count;
        /// Datagrams that are not packets, or belong to no connection here.
        pub datagrams_unknown: u64 = "datagrams_unknown", Counter, Count;
        /// Refused callers.
        pub callers_refused: u64 = "callers_refused", Counter, Count;
        /// Initial packets with a valid cookie, and Confirm packets with a valid ticket, beyond the
        /// listener's budget. Their callers retransmit them.
        pub callers_deferred: u64 = "callers_deferred", Counter, Count;
        /// Resets sent in reply to packets of unknown connections. A caller can then call again.
        pub resets_sent: u64 = "resets_sent", Counter, Count;
        /// Half-open connections that timed out.
        pub callers_given_up: u64 = "callers_given_up", Counter, Count;
        /// Retry packets sent to callers that had to prove their address first.
        pub retries_sent: u64 = "retries_sent", Counter, Count;
        /// Replies to callers that the endpoint dropped because too many replies waited already, as
        /// in a flood of calls.
        pub replies_dropped: u64 = "replies_dropped", Counter, Count;
        /// Connections closed because nobody accepted them.
        pub connections_unaccepted: u64 = "connections_unaccepted", Counter, Count;
        /// An upper bound of the memory that peers make the endpoint hold at present.
        pub memory: u64 = "memory", Gauge, Bytes;
        /// Connections that the endpoint closed because they exceeded their share of the memory
        /// while another connection lacked memory within its own share.
        pub connections_evicted: u64 = "connections_evicted", Counter, Count;
        /// Panics. Each ended one connection, or one attempt to open one.
        pub internal_errors: u64 = "internal_errors", Counter, Count;
    }
}

impl EndpointStatistics {
    pub(crate) fn with_listener(self, listener: &ListenerStatistics) -> Self {
        Self {
            datagrams_unknown: self.datagrams_unknown + listener.unknown,
            callers_refused: listener.refused,
            callers_deferred: listener.deferred,
            resets_sent: listener.resets,
            callers_given_up: listener.given_up,
            retries_sent: listener.retries,
            replies_dropped: listener.replies_dropped,
            ..self
        }
    }
}

crate::serialize_counters!(
    Statistics Sent Received Path Peer Pacing SessionStatistics EndpointStatistics
);

fn set<T>(field: &mut T, value: T) {
    *field = value;
}

fn ms(span: Span) -> f64 {
    span.as_secs_f64() * 1e3
}

/// Returns `None` for a limit that never applies.
fn limit(bytes: DataSize) -> Option<u64> {
    Some(bytes.get()).filter(|bytes| *bytes != u64::MAX)
}

impl Statistics {
    pub(crate) fn new(
        age: Span,
        controller: &str,
        connection: &datagram::Statistics,
        session: &SessionStatistics,
        drift_ppm: f64,
    ) -> Self {
        let mut statistics = Self {
            age_ms: ms(age),
            sent: Sent {
                counters: connection.sent,
                sections: connection.outbox.sections,
                bytes: connection.outbox.bytes,
            },
            protection: *session,
            ..Self::default()
        };
        statistics.received.update(connection);
        statistics.path.update(&PathSource {
            controller,
            path: &connection.path,
            drift_ppm,
        });
        if let Some(report) = &connection.peer {
            statistics.peer.insert(Peer::default()).update(report);
        }
        statistics
    }
}

#[cfg(test)]
mod tests {
    use comity_congestion::Phase;
    use comity_transport::timeline::{inbox, outbox};

    use super::*;

    /// Statistics of the transport in which every number differs. Times are binary fractions of a
    /// second, so milliseconds are exact.
    fn distinct() -> datagram::Statistics {
        let mut slack = inbox::Slack::default();
        // Of a hundred sections, 99 and 50 and 1 reach 4, 64 and 512 ms.
        (slack.early[2], slack.early[6], slack.early[9]) = (40, 50, 10);
        datagram::Statistics {
            sent: SentCounters {
                packets: 1,
                wire_bytes: 2,
                section_bytes: 3,
                retransmitted_bytes: 4,
                late_bytes: 5,
                lost_packets: 6,
                spurious_losses: 7,
                probes: 8,
                black_holes: 9,
                loss_events: 10,
                persistent_congestions: 11,
                marked_packets: 12,
            },
            received: ReceivedCounters {
                packets: 13,
                wire_bytes: 14,
                missing_packets: 15,
                duplicates: 16,
                marked_packets: 17,
            },
            path: datagram::PathStatistics {
                srtt: Some(Span::from_millis(125)),
                rtt_variation: Span::from_millis(250),
                latest_rtt: Some(Span::from_millis(375)),
                min_rtt: Some(Span::from_millis(500)),
                one_way_delay: Some(Span::from_millis(625)),
                window: DataSize::new(18),
                in_flight: DataSize::new(19),
                ssthresh: Some(DataSize::new(20)),
                pacing_rate: Some(Rate::from_mbps(21)),
                peak_rate: Some(Rate::from_mbps(22)),
                tokens: Some(-23),
                capacity: Some(Rate::from_mbps(24)),
                phase: Phase::Probing,
                target_bitrate: Some(Rate::from_mbps(25)),
                payload: 26,
            },
            outbox: outbox::Counters {
                bytes: ByteCounters {
                    submitted: 27,
                    queued: 28,
                    in_flight: 29,
                    acknowledged: 30,
                    expired_unsent: 31,
                    expired_in_network: 32,
                    lost: 33,
                    infeasible: 34,
                    dependency: 35,
                    cancelled: 36,
                },
                sections: SectionCounters {
                    submitted: 37,
                    open: 38,
                    acknowledged: 39,
                    expired_unsent: 40,
                    expired_in_network: 41,
                    lost: 42,
                    infeasible: 43,
                    dependency: 44,
                    shed: 45,
                    cancelled: 46,
                },
                ..outbox::Counters::default()
            },
            inbox: inbox::Counters {
                received: 47,
                delivered: 48,
                partial: 49,
                duplicate: 50,
                late: 51,
                held: 52,
                on_time: 53,
                complete_late: 54,
                gaps: GapCounters {
                    closed: 55,
                    obsolete: 56,
                    overdue: 57,
                    cancelled: 58,
                    dependency: 59,
                    expired: 60,
                    infeasible: 61,
                    shed: 62,
                },
                slack,
            },
            peer: Some(datagram::PeerReport {
                complete: 63,
                on_time: 64,
                late: 65,
                gaps: 66,
                bytes: 67,
                packets: 68,
                duplicates: 69,
                one_way_latest_us: 70_500,
                one_way_least_us: 71_500,
                jitter: Span::from_millis(750),
                buffered: 72,
                drift_ppb: -73,
            }),
        }
    }

    const JSON: &[&str] = &[
        r#"{"msTimeStamp":1000.0,"sent":{"pktSent":1,"byteSent":2,"byteSentPayload":3,"#,
        r#""byteRetrans":4,"byteSentLate":5,"pktSndLoss":6,"pktSndLossSpurious":7,"#,
        r#""pktSndMarked":12,"lossEvents":10,"probes":8,"blackHoles":9,"sections":{"#,
        r#""submitted":37,"open":38,"acknowledged":39,"expired_unsent":40,"#,
        r#""expired_in_network":41,"lost":42,"infeasible":43,"dependency":44,"shed":45,"#,
        r#""cancelled":46},"#,
        r#""bytes":{"submitted":27,"queued":28,"in_flight":29,"acknowledged":30,"#,
        r#""expired_unsent":31,"expired_in_network":32,"lost":33,"infeasible":34,"#,
        r#""dependency":35,"cancelled":36}},"#,
        r#""received":{"pktRecvUnique":13,"byteRecvUnique":14,"pktRcvLoss":15,"#,
        r#""pktRecvDuplicate":16,"pktRecvMarked":17,"byteRecvDelivered":48,"#,
        r#""byteRecvPartial":49,"byteRecvDuplicate":50,"byteRcvBelated":51,"byteRcvBuf":52,"#,
        r#""sectionsOnTime":53,"sectionsLate":54,"gaps":{"closed":55,"obsolete":56,"#,
        r#""overdue":57,"cancelled":58,"dependency":59,"expired":60,"infeasible":61,"#,
        r#""shed":62},"msSlackAtLeast":[4.0,64.0,512.0]},"#,
        r#""path":{"controller":"reno","phase":"Probing","msRTT":125.0,"msRTTVar":250.0,"#,
        r#""msRTTMin":500.0,"msOneWayDelay":625.0,"byteCongestionWindow":18,"#,
        r#""byteFlightSize":19,"byteSlowStartThreshold":20,"mbpsPacing":21.0,"#,
        r#""mbpsPacingPeak":22.0,"byteSaved":-23,"mbpsBandwidth":24.0,"mbpsTarget":25.0,"#,
        r#""bytePayload":26,"ppmClockDrift":0.5},"#,
        r#""peer":{"sectionsComplete":63,"sectionsOnTime":64,"sectionsLate":65,"#,
        r#""sectionsGap":66,"byteRecvUnique":67,"pktRecvUnique":68,"pktRecvDuplicate":69,"#,
        r#""msOneWayDelay":70.5,"msOneWayDelayMin":71.5,"msJitter":750.0,"byteRcvBuf":72,"#,
        r#""ppbClockDrift":-73},"#,
        r#""pacing":{"pktPaced":74,"usErrorMean":0.25,"usErrorP50":1.25,"usErrorP99":2.25,"#,
        r#""usErrorP999":3.25,"usErrorMax":4.25},"#,
        r#""protection":{"pktRecvForged":75,"pktRecvStale":76,"keyUpdates":77}}"#,
    ];

    #[test]
    fn json_keys_and_their_order_are_public() {
        let session = SessionStatistics {
            forged_packets: 75,
            stale_packets: 76,
            key_updates: 77,
        };
        let statistics = Statistics {
            pacing: Pacing {
                packets: 74,
                mean_us: 0.25,
                p50_us: 1.25,
                p99_us: 2.25,
                p999_us: 3.25,
                max_us: 4.25,
            },
            ..Statistics::new(Span::from_secs(1), "reno", &distinct(), &session, 0.5)
        };
        assert_eq!(serde_json::to_string(&statistics).unwrap(), JSON.concat());
    }

    #[test]
    fn unknown_values_are_null() {
        let mut transport = distinct();
        transport.path.window = DataSize::new(u64::MAX);
        transport.path.ssthresh = Some(DataSize::new(u64::MAX));
        transport.path.srtt = None;
        transport.peer = None;
        let session = SessionStatistics::default();
        let statistics = Statistics::new(Span::ZERO, "reno", &transport, &session, 0.0);
        let json = serde_json::to_value(&statistics).unwrap();
        for key in ["byteCongestionWindow", "byteSlowStartThreshold", "msRTT"] {
            assert!(json["path"][key].is_null(), "{key}: {json}");
        }
        assert!(json["peer"].is_null(), "{json}");
    }
}
