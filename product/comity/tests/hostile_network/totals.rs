//! The conditions at the end, between the counters of both ends, the network's record and the view
//! of the applications.

use std::collections::BTreeMap;

use comity::transport::Delivery;
use comity::{Fate, GapReason, Reason, Reliability, StreamId};

use super::{Side, World, byte, id_of};

impl World {
    /// Every section has one fate, both ends agree on it, and whole sections have their bytes.
    pub(super) fn check_sections(&self, from: Side) {
        let sender = &self.applications[from as usize];
        let receiver = &self.applications[from.peer() as usize];
        let is_full = self.config.settings().effective_reliability() == Reliability::Full;
        let (mut whole, mut gaps, mut bytes, mut delivered) = (0, 0, 0, 0);
        let mut acknowledged = 0;
        let mut streams: BTreeMap<StreamId, u64> = BTreeMap::new();
        let mut received_once = BTreeMap::new();
        for (&stream, deliveries) in &receiver.received {
            let ids: Vec<_> = deliveries
                .iter()
                .map(|(_, delivery)| id_of(delivery))
                .collect();
            // Later sections may have earlier deadlines, unless all have one latency.
            assert!(
                !self.has_one_latency || ids.is_sorted(),
                "{stream}: {ids:?}"
            );
            for (id, delivery) in ids.into_iter().zip(deliveries) {
                let before = received_once.insert((stream, id), delivery);
                assert!(before.is_none(), "{stream}, {id} twice");
            }
        }
        for (&(stream, id), &(length, latency, outcome)) in &sender.submitted {
            *streams.entry(stream).or_default() += 1;
            bytes += u64::from(length);
            let Some((at, delivery)) = received_once.get(&(stream, id)) else {
                let known = received_once.keys().filter(|(known, _)| *known == stream);
                panic!(
                    "{from:?}: {stream}, {id} is not reported, only {:?}: {length} bytes, {outcome:?}",
                    known.map(|(_, id)| id.0).collect::<Vec<_>>()
                );
            };
            // Skipped numbers have no bytes, and no outcome.
            let fate = outcome.map(|outcome| outcome.fate);
            assert_eq!(fate.is_none(), length == 0, "{stream}, {id}");
            acknowledged += u64::from(fate == Some(Fate::Acknowledged));
            match delivery {
                Delivery::Section(section) => {
                    whole += 1;
                    delivered += u64::from(length);
                    assert_eq!(section.meta.length, length);
                    let meta = &section.meta;
                    assert_eq!(meta.deadline.saturating_since(meta.source_time), latency);
                    let right = (0..length as usize).map(|at| byte(from, stream, id, at));
                    assert!(section.payload.iter().copied().eq(right), "{stream}, {id}");
                    assert!(section.completed <= *at);
                }
                Delivery::Gap(gap) => {
                    gaps += 1;
                    // The bytes may have arrived after the section became a gap; an acknowledgement
                    // does not show that.
                    assert!(gap.reason != GapReason::Closed, "{stream}, {id}");
                    let is_withdrawn = sender.cancelled.contains(&(stream, id))
                        || matches!(fate, None | Some(Fate::Dropped(Reason::Dependency)));
                    assert!(!is_full || is_withdrawn, "{stream}, {id}: {fate:?}");
                    if let Some(partial) = &gap.partial {
                        for (at, &got) in partial.payload.iter().enumerate() {
                            let is_missing = partial
                                .missing
                                .iter()
                                .any(|part| part.contains(&(at as u32)));
                            let right = if is_missing {
                                0
                            } else {
                                byte(from, stream, id, at)
                            };
                            assert_eq!(got, right, "{stream}, {id}, {at}");
                        }
                    }
                }
            }
        }
        // The receiver reports exactly the numbers that the sender assigned.
        for (stream, received) in &receiver.received {
            assert_eq!(
                streams.get(stream),
                Some(&(received.len() as u64)),
                "{stream}"
            );
        }
        let sent = self.statistics(from).sent;
        let received = self.statistics(from.peer()).received;
        assert!(is_full || sent.counters.late_bytes == 0);
        assert_eq!(sent.sections.submitted, sender.submitted.len() as u64);
        assert_eq!(sent.sections.sum(), sent.sections.submitted);
        assert_eq!(
            (sent.sections.open, sent.sections.acknowledged),
            (0, acknowledged)
        );
        assert_eq!((sent.bytes.submitted, sent.bytes.sum()), (bytes, bytes));
        assert_eq!(received.on_time_sections + received.late_sections, whole);
        assert_eq!(received.gaps.sum(), gaps);
        assert_eq!(whole + gaps, sent.sections.submitted);
        assert_eq!(
            (received.delivered_bytes, received.buffered_bytes),
            (delivered, 0)
        );
    }

    /// Every packet that left has one fate, and both ends count the same ones.
    pub(super) fn check_packets(&self, from: Side) {
        let ledger = &self.ledgers[from as usize];
        let sent = self.statistics(from).sent.counters;
        let receiver = self.statistics(from.peer());
        assert_eq!(sent.packets, ledger.data);
        assert_eq!(receiver.received.counters.packets, ledger.accepted);
        let protection = receiver.protection;
        assert_eq!(
            protection.forged_packets + protection.stale_packets,
            ledger.refused
        );
        assert!(receiver.received.counters.duplicates <= protection.stale_packets);
        assert!(ledger.to_elsewhere <= ledger.data);
        // The network itself has lost no datagram.
        let mut arrived = 0;
        for departure in &ledger.departures {
            arrived += u64::from(departure.arrivals > 0);
            let is_accounted = departure.is_withheld || departure.in_flight > 0;
            assert!(departure.arrivals > 0 || is_accounted, "{}", departure.at);
        }
        assert!(ledger.accepted <= arrived);
    }
}
