//! Random steps of a flow, and the setups and parameters to run them with.

use comity_congestion::table::{Domain, Parameters, Row, Setup, Value};
use comity_congestion::{LossCause, Report};
use comity_units::{DataSize, Rate, Span};
use proptest::prelude::*;

/// One step of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// The oldest packets are acknowledged, at most those in flight.
    Acknowledge {
        /// How many.
        packets: u8,
        /// The measured round-trip time, if one is measured.
        rtt: Option<Span>,
        /// Whether the first of them was marked by the network.
        marked: bool,
    },
    /// The receiver's half reports.
    Feedback(Report),
    /// The application has less (or again more) to send than the flow may send.
    LimitByApplication(bool),
    /// Packets are declared lost, unless nothing was sent since the last reaction.
    Lose {
        /// How many.
        packets: u8,
        /// How the loss was detected.
        cause: LossCause,
        /// Whether the recovery restarts from one segment.
        restart: bool,
    },
    /// The recovery is over.
    Recover,
    /// The flow sends as its window allows.
    Send {
        /// The maximum number of packets.
        packets: u8,
    },
    /// The flow resumes after a pause of this many timeouts, unless packets are in flight.
    Restart {
        /// More than one makes a pause.
        timeouts: u8,
    },
    /// The last losses were spurious.
    Spurious,
    /// The retransmission timer expires, unless nothing is in flight.
    TimeOut {
        /// Whether a duplicate acknowledgement had arrived.
        duplicate_seen: bool,
    },
    /// Time passes.
    Wait(Span),
    /// Time passes until the controller's wake-up.
    Wake,
}

/// Operations in the proportions of a busy flow with frequent disturbances.
pub fn operation() -> impl Strategy<Value = Operation> {
    let span = prop_oneof![
        6 => (0u64..300_000_000).prop_map(Span::from_nanos),
        1 => (0u64..100).prop_map(Span::from_secs),
    ];
    let rtt = prop_oneof![
        1 => Just(None),
        6 => (1u64..400_000_000).prop_map(|nanos| Some(Span::from_nanos(nanos))),
    ];
    prop_oneof![
        8 => (1u8..=40).prop_map(|packets| Operation::Send { packets }),
        10 => (1u8..=20, rtt, prop::bool::weighted(0.1))
            .prop_map(|(packets, rtt, marked)| Operation::Acknowledge { packets, rtt, marked }),
        6 => span.prop_map(Operation::Wait),
        2 => (1u8..=10, cause(), prop::bool::weighted(0.2))
            .prop_map(|(packets, cause, restart)| Operation::Lose { packets, cause, restart }),
        2 => Just(Operation::Recover),
        1 => any::<bool>().prop_map(|duplicate_seen| Operation::TimeOut { duplicate_seen }),
        1 => any::<bool>().prop_map(Operation::LimitByApplication),
        1 => Just(Operation::Spurious),
        1 => (1u8..20).prop_map(|timeouts| Operation::Restart { timeouts }),
        1 => report().prop_map(Operation::Feedback),
        1 => Just(Operation::Wake),
    ]
}

fn cause() -> impl Strategy<Value = LossCause> {
    prop_oneof![
        4 => Just(LossCause::Reordering),
        1 => Just(LossCause::Delay),
        1 => Just(LossCause::Mark),
    ]
}

fn report() -> impl Strategy<Value = Report> {
    prop_oneof![
        Just(Report::None),
        any::<u16>().prop_map(|level| Report::Wave { level }),
        (0.0f64..=1.0, any::<u32>()).prop_map(|(rate, received)| Report::LossEvents {
            rate,
            received: Rate::from_bps(u64::from(received)),
        }),
        any::<(u32, u32)>().prop_map(|(round, packets)| Report::Count { round, packets }),
    ]
}

/// Setups with segments of one byte to a jumbo frame, with and without limits.
pub fn setup() -> impl Strategy<Value = Setup> {
    (
        1u64..9_000,
        1u64..20,
        prop::option::of(1u64..200),
        prop::option::of(1u64..400),
    )
        .prop_map(|(mss, initial, ssthresh, limit)| {
            let segments = |count: u64| DataSize::new(mss) * count;
            Setup {
                initial_window: segments(initial),
                initial_ssthresh: ssthresh.map_or(DataSize::MAX, segments),
                max_window: limit.map_or(DataSize::MAX, segments),
                ..Setup::new(DataSize::new(mss))
            }
        })
}

/// The defaults of a row, and every other value of each of its flags and choices.
pub fn variants(row: &Row) -> Vec<Parameters> {
    let mut variants = vec![Parameters::new()];
    for parameter in row.parameters {
        let others: Vec<Value> = match (&parameter.domain, &parameter.default) {
            (Domain::Flag, Value::Flag(default)) => vec![Value::Flag(!default)],
            (Domain::Choice(choices), default) => choices
                .iter()
                .map(|choice| Value::Text((*choice).into()))
                .filter(|choice| choice != default)
                .collect(),
            _ => Vec::new(),
        };
        variants.extend(
            others
                .into_iter()
                .map(|value| Parameters::new().with(parameter.name, value)),
        );
    }
    variants
}
