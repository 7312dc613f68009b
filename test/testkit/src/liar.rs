//! A receiver that lies about arrivals. It knows everything except the tokens of packets that did
//! not arrive.

use std::collections::{BTreeMap, BTreeSet};

use comity_congestion::{Report, Tag};
use comity_transport::wire::frame::{self, Ack, AckRange, AckRanges, Content, Frame, PROOF_MASK};
use comity_units::{PacketNumber, Seed};

/// What a receiver lies about.
#[derive(Clone, Copy, Debug)]
pub enum Lie {
    /// It acknowledges all packets up to the largest that arrived, except those that its peer
    /// skipped on purpose, which it knows.
    Acks,
    /// Its acknowledgements are true, and this function changes its reports.
    Reports(Change),
    /// Its acknowledgements are true. Those without a report name all packets. Those with one name
    /// only the newest packet, so that all others may have arrived, and the report counts all
    /// packets of the round.
    Narrow,
}

/// Makes a false report from a true one.
pub type Change = fn(&Report) -> Report;

/// Changes the packets of an end.
#[derive(Debug)]
pub struct Liar {
    lie: Lie,
    /// The numbers that its peer sent, with their tokens and the rounds that they count in.
    sent: BTreeMap<u64, (u8, Option<u32>)>,
    seed: Seed,
    /// The false frames that it has sent.
    frames: u64,
    /// The numbers of its packets with false frames.
    lies: BTreeSet<u64>,
    /// How many of its false packets reached its peer while that was open.
    pub received: u64,
}

impl Liar {
    /// Creates a liar that guesses tokens with this seed.
    pub const fn new(lie: Lie, seed: Seed) -> Self {
        Self {
            lie,
            sent: BTreeMap::new(),
            seed,
            frames: 0,
            lies: BTreeSet::new(),
            received: 0,
        }
    }

    /// Its peer sent a packet.
    ///
    /// # Panics
    /// If the payload cannot be read: an error in the test.
    pub fn on_sent(&mut self, number: PacketNumber, payload: &[u8]) {
        let read = frame::decode(payload, Content::Present).expect("the peer's own");
        let token = read.departure.as_micros() as u8 & PROOF_MASK;
        let round = read.frames.filter_map(|frame| match frame {
            Ok(Frame::Tag(Tag::Round { round, rtt })) if !rtt.is_zero() => Some(round),
            _ => None,
        });
        self.sent.insert(number.get(), (token, round.last()));
    }

    /// A packet reached its peer, which is open.
    pub fn on_received(&mut self, number: PacketNumber) {
        self.received += u64::from(self.lies.remove(&number.get()));
    }

    /// The payload that replaces that of packet `number`.
    ///
    /// # Panics
    /// If the payload cannot be read: an error in the test.
    pub fn change(&mut self, number: PacketNumber, payload: &[u8]) -> Vec<u8> {
        let before = self.frames;
        let is_narrow = matches!(self.lie, Lie::Narrow) && number.get() % 2 == 1;
        let read = frame::decode(payload, Content::Present).expect("the end's own");
        let mut changed = Vec::new();
        let mut newest = PacketNumber::ZERO;
        frame::encode_departure(read.departure, &mut changed);
        for frame in read.frames {
            let frame = frame.expect("the end's own");
            let written = match (frame, self.lie) {
                (Frame::Ack(ack), Lie::Acks) => {
                    let ranges = self.all_up_to(ack.ranges.largest());
                    let ranges = AckRanges::new(&ranges).expect("they descend");
                    let is_lie = ranges != ack.ranges;
                    self.frames += u64::from(is_lie);
                    let guess =
                        self.seed.derive("guess").index(self.frames).get() as u8 & PROOF_MASK;
                    let proof = ack.proof.map(|truth| if is_lie { guess } else { truth });
                    Frame::Ack(Ack {
                        ranges,
                        proof,
                        ..ack
                    })
                    .encode(&mut changed)
                }
                (Frame::Ack(ack), Lie::Narrow) if is_narrow => {
                    newest = ack.ranges.largest();
                    let ranges = [AckRange {
                        first: newest,
                        last: newest,
                    }];
                    let ranges = AckRanges::new(&ranges).expect("one range");
                    let proof = self.sent.get(&newest.get()).map(|(token, _)| *token);
                    Frame::Ack(Ack {
                        ranges,
                        proof,
                        ..ack
                    })
                    .encode(&mut changed)
                }
                (Frame::Feedback(_), Lie::Narrow) if !is_narrow => Ok(()),
                (Frame::Feedback(Report::Count { round, packets }), Lie::Narrow) => {
                    let up_to = self.sent.range(..=newest.get());
                    let all = up_to.filter(|(_, (_, its))| *its == Some(round)).count();
                    let all = u32::try_from(all).expect("few packets");
                    self.frames += u64::from(all > packets);
                    let packets = all.max(packets);
                    Frame::Feedback(Report::Count { round, packets }).encode(&mut changed)
                }
                (Frame::Feedback(report), Lie::Reports(change)) => {
                    let changed_report = change(&report);
                    self.frames += u64::from(changed_report != report);
                    Frame::Feedback(changed_report).encode(&mut changed)
                }
                _ => frame.encode(&mut changed),
            };
            written.expect("within the format");
        }
        if self.frames > before {
            self.lies.insert(number.get());
        }
        changed
    }

    /// The sent numbers in ranges, from the largest down, as many as fit into one frame.
    fn all_up_to(&self, largest: PacketNumber) -> Vec<AckRange> {
        let mut ranges: Vec<AckRange> = Vec::new();
        for (number, _) in self.sent.range(..=largest.get()).rev().take(2_000) {
            let number = PacketNumber::new(*number);
            match ranges.last_mut() {
                Some(range) if range.first == number.next() => range.first = number,
                _ => ranges.push(AckRange {
                    first: number,
                    last: number,
                }),
            }
        }
        ranges.truncate(64);
        ranges
    }
}
