//! The actions of the applications.

use bytes::Bytes;
use comity::transport::Outgoing;
use comity::{Importance, Reason, SectionId, SendError, Span, StreamId};
use proptest::prelude::*;

use super::{Side, World, byte};

#[derive(Clone, Debug)]
enum What {
    Submit { length: usize, needs: bool },
    Skip,
    Cancel,
}

/// The action of an application after a pause.
#[derive(Clone, Debug)]
pub(super) struct Action {
    pub(super) pause_ms: u64,
    side: Side,
    stream: u16,
    importance: u8,
    pub(super) latency_ms: u64,
    what: What,
}

pub(super) fn action() -> impl Strategy<Value = Action> {
    let what = prop_oneof![
        10 => (1_usize..9_000, prop::bool::weighted(0.3))
            .prop_map(|(length, needs)| What::Submit { length, needs }),
        1 => Just(What::Skip),
        1 => Just(What::Cancel),
    ];
    let side = prop_oneof![3 => Just(Side::Caller), 1 => Just(Side::Listener)];
    (0_u64..30, side, 0_u16..3, any::<u8>(), 50_u64..800, what).prop_map(
        |(pause_ms, side, stream, importance, latency_ms, what)| Action {
            pause_ms,
            side,
            stream,
            importance,
            latency_ms,
            what,
        },
    )
}

impl World {
    pub(super) fn act(&mut self, action: &Action) {
        let now = self.now;
        let side = action.side;
        let stream = StreamId(action.stream);
        let number = self.applications[side as usize]
            .submitted
            .keys()
            .filter(|(known, _)| *known == stream)
            .count() as u64;
        let previous = number.checked_sub(1).map(SectionId);
        let transport = self.transport(side).expect("it is open");
        match action.what {
            What::Cancel => {
                if let Some(previous) = previous
                    && transport.cancel(stream, previous)
                {
                    let application = &mut self.applications[side as usize];
                    application.cancelled.insert((stream, previous));
                }
            }
            What::Skip => {
                let id = transport.skip(now, stream, Reason::Shed).expect("open");
                assert_eq!(id, SectionId(number));
                let section = (0, Span::ZERO, None);
                let application = &mut self.applications[side as usize];
                application.submitted.insert((stream, id), section);
            }
            What::Submit { length, needs } => {
                let id = SectionId(number);
                let payload: Vec<u8> = (0..length).map(|at| byte(side, stream, id, at)).collect();
                let latency = Span::from_millis(action.latency_ms);
                let section = Outgoing {
                    stream,
                    importance: Importance(action.importance),
                    source_time: now,
                    deadline: now + latency,
                    needs: previous.filter(|_| needs),
                    payload: Bytes::from(payload),
                };
                match transport.submit(now, section) {
                    Ok(given) => {
                        assert_eq!(given, id);
                        let section = (length as u32, latency, None);
                        let application = &mut self.applications[side as usize];
                        application.submitted.insert((stream, id), section);
                    }
                    // Over a bad path the peer grants credit late.
                    Err(SendError::Full { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
}
