//! Frames that own their content, and strategies that draw them.

use comity_congestion::{Report, Tag};
use comity_transport::timeline::Reason;
use comity_transport::wire::frame::{
    Ack, AckRange, AckRanges, Close, Credit, Data, Dropped, EcnCounts, End, Floor, Frame, Framing,
    PROOF_MASK, ReceiverReport, Section, SectionHeader,
};
use comity_transport::wire::limits::{
    DEFAULT_IMPORTANCE, MAX_ACK_RANGES, MAX_DRIFT_PPB, MAX_OPEN_SECTIONS, MAX_SECTION,
    MAX_SECTION_COUNT, MAX_SECTION_ID, MAX_TIME_US,
};
use comity_transport::wire::{CloseCode, Stamp, varint};
use comity_units::{PacketNumber, Rate, Span, Time};
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Clone, Debug)]
pub(crate) enum Recipe {
    Ack {
        ranges: Vec<AckRange>,
        delay: Span,
        arrival: Stamp,
        ecn: Option<EcnCounts>,
        proof: Option<u8>,
    },
    Close {
        code: CloseCode,
        reason: String,
    },
    Plain(Frame<'static>),
    Section {
        header: SectionHeader,
        framing: Framing,
        data: Vec<u8>,
    },
}

impl Recipe {
    pub(crate) fn frame(&self) -> Frame<'_> {
        match self {
            Self::Ack {
                ranges,
                delay,
                arrival,
                ecn,
                proof,
            } => Frame::Ack(Ack {
                ranges: AckRanges::new(ranges).expect("the ranges descend"),
                delay: *delay,
                arrival: *arrival,
                ecn: *ecn,
                proof: *proof,
            }),
            Self::Close { code, reason } => Frame::Close(Close::new(*code, reason)),
            Self::Plain(frame) => *frame,
            Self::Section {
                header,
                framing,
                data,
            } => Frame::Section(Section {
                header: *header,
                framing: *framing,
                data: Data::Bytes(data),
            }),
        }
    }

    /// Whether it must be the last frame.
    pub(crate) fn is_last(&self) -> bool {
        matches!(
            self,
            Self::Section {
                framing: Framing::ToEnd,
                ..
            }
        )
    }
}

/// Numbers of all magnitudes, not only large ones.
pub(crate) fn number(most: u64) -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32).prop_map(move |(value, shift)| {
        let value = value >> shift;
        if value > most {
            value % (most + 1)
        } else {
            value
        }
    })
}

pub(crate) fn span() -> impl Strategy<Value = Span> {
    number(MAX_TIME_US).prop_map(Span::from_micros)
}

pub(crate) fn ack_ranges() -> impl Strategy<Value = Vec<AckRange>> {
    (
        number(varint::MAX),
        vec((number(1 << 40), number(1 << 40)), 1..=MAX_ACK_RANGES),
    )
        .prop_map(|(largest, steps)| {
            let mut next = Some(largest);
            let mut ranges = Vec::new();
            for (length, gap) in steps {
                let Some(last) = next else { break };
                let first = last.saturating_sub(length);
                ranges.push(AckRange {
                    first: PacketNumber::new(first),
                    last: PacketNumber::new(last),
                });
                next = first.checked_sub(gap + 2);
            }
            ranges
        })
}

fn ecn_counts() -> impl Strategy<Value = EcnCounts> {
    (
        number(varint::MAX),
        number(varint::MAX),
        number(varint::MAX),
    )
        .prop_map(|(ect0, ect1, ce)| EcnCounts { ect0, ect1, ce })
}

pub(crate) fn section_header() -> impl Strategy<Value = SectionHeader> {
    let piece = (
        number(u64::from(MAX_SECTION - 1)),
        any::<u64>(),
        any::<bool>(),
    );
    let after = prop_oneof![
        number(MAX_TIME_US - 1),
        // Whole milliseconds.
        number((MAX_TIME_US - 1) / 1_000).prop_map(|after| after * 1_000),
    ];
    let times = (number(MAX_TIME_US), proptest::option::of(after));
    let needs = proptest::option::of(any::<u64>());
    let importance = prop_oneof![Just(DEFAULT_IMPORTANCE), any::<u8>()];
    let numbers = (number(MAX_SECTION_ID), number(MAX_SECTION_ID));
    ((any::<u16>(), numbers, importance), piece, times, needs).prop_map(
        |((stream, (section, below), importance), piece, times, needs)| {
            let (total, offset, is_retransmission) = piece;
            let (source_time, after) = times;
            let source_time = Time::from_micros(source_time);
            SectionHeader {
                stream,
                section,
                floor: section - below % (section + 1),
                offset: (offset % (total + 1)) as u32,
                total: total as u32 + 1,
                source_time,
                deadline: after.map_or(Time::MAX, |after| source_time + Span::from_micros(after)),
                importance,
                needs: needs.filter(|_| section > 0).map(|needs| needs % section),
                is_retransmission,
            }
        },
    )
}

fn section() -> impl Strategy<Value = Recipe> {
    (section_header(), any::<bool>(), vec(any::<u8>(), 1..2_000)).prop_map(
        |(header, with_length, mut data)| {
            data.truncate((header.total - header.offset) as usize);
            let framing = if with_length {
                Framing::Length
            } else {
                Framing::ToEnd
            };
            Recipe::Section {
                header,
                framing,
                data,
            }
        },
    )
}

fn dropped() -> impl Strategy<Value = Dropped> {
    let reason = proptest::sample::select(&Reason::ALL[..]);
    (any::<u16>(), number(MAX_SECTION_ID), reason).prop_map(|(stream, section, reason)| Dropped {
        stream,
        section,
        reason,
    })
}

fn tag() -> impl Strategy<Value = Tag> {
    prop_oneof![
        (any::<u16>(), 1..=u16::MAX, any::<u16>()).prop_map(|(wave, segments, position)| {
            Tag::Wave {
                wave,
                segments,
                position: position % segments + 1,
            }
        }),
        (any::<u32>(), span()).prop_map(|(round, rtt)| Tag::Round { round, rtt }),
        (any::<u32>(), span()).prop_map(|(number, rtt)| Tag::Numbered { number, rtt }),
    ]
}

fn report() -> impl Strategy<Value = Report> {
    prop_oneof![
        (1..=u16::MAX).prop_map(|level| Report::Wave { level }),
        (0.0..=1.0, number(varint::MAX)).prop_map(|(rate, received)| Report::LossEvents {
            rate,
            received: Rate::from_bps(received),
        }),
        any::<(u32, u32)>().prop_map(|(round, packets)| Report::Count { round, packets }),
    ]
}

fn receiver_report() -> impl Strategy<Value = ReceiverReport> {
    let delay = -(MAX_TIME_US as i64)..=MAX_TIME_US as i64;
    (
        proptest::array::uniform8(number(varint::MAX)),
        delay.clone(),
        delay,
        span(),
        -MAX_DRIFT_PPB..=MAX_DRIFT_PPB,
    )
        .prop_map(|(counters, latest, least, jitter, drift_ppb)| {
            let [
                complete,
                on_time,
                late,
                with_gaps,
                bytes,
                packets,
                duplicates,
                buffered,
            ] = counters;
            ReceiverReport {
                complete,
                on_time,
                late,
                with_gaps,
                bytes,
                packets,
                duplicates,
                one_way_latest_us: latest,
                one_way_least_us: least,
                jitter,
                buffered,
                drift_ppb,
            }
        })
}

pub(crate) fn recipe() -> impl Strategy<Value = Recipe> {
    prop_oneof![
        (1_usize..40).prop_map(|length| Recipe::Plain(Frame::Padding { length })),
        Just(Recipe::Plain(Frame::Ping)),
        Just(Recipe::Plain(Frame::Blocked)),
        (
            ack_ranges(),
            span(),
            any::<u32>(),
            proptest::option::of(ecn_counts()),
            proptest::option::of(0..=PROOF_MASK)
        )
            .prop_map(|(ranges, delay, arrival, ecn, proof)| Recipe::Ack {
                ranges,
                delay,
                arrival: Stamp::from_micros(arrival),
                ecn,
                proof,
            }),
        section(),
        (any::<u16>(), number(MAX_SECTION_COUNT))
            .prop_map(|(stream, floor)| Recipe::Plain(Frame::Floor(Floor { stream, floor }))),
        dropped().prop_map(|dropped| Recipe::Plain(Frame::Dropped(dropped))),
        (number(varint::MAX), 1..=MAX_OPEN_SECTIONS as u32)
            .prop_map(|(bytes, sections)| Recipe::Plain(Frame::Credit(Credit { bytes, sections }))),
        tag().prop_map(|tag| Recipe::Plain(Frame::Tag(tag))),
        report().prop_map(|report| Recipe::Plain(Frame::Feedback(report))),
        receiver_report().prop_map(|report| Recipe::Plain(Frame::ReceiverReport(report))),
        any::<[u8; 8]>().prop_map(|bytes| Recipe::Plain(Frame::PathChallenge(bytes))),
        any::<[u8; 8]>().prop_map(|bytes| Recipe::Plain(Frame::PathResponse(bytes))),
        (number(varint::MAX), ".{0,80}").prop_map(|(code, reason)| Recipe::Close {
            code: CloseCode::new(code),
            reason,
        }),
        (any::<u16>(), number(MAX_SECTION_COUNT))
            .prop_map(|(stream, sections)| { Recipe::Plain(Frame::End(End { stream, sections })) }),
    ]
}
