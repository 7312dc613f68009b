//! How regularly packets arrive.

use comity_units::{Span, Time};

use crate::engine::{FlowEvent, FlowEventKind, LinkEvent, Observer};
use crate::series::Recorder;

/// An [`Observer`] of the times between the arrivals of a flow's packets at its destination, in measured time,
/// beside a [`Recorder`] where there is one.
#[derive(Debug)]
pub(super) struct ArrivalGaps {
    measured_from: Time,
    flows: Vec<Gaps>,
    pub(super) recorder: Option<Recorder>,
}

/// The mean and the sum of squares so far, by Welford's updating.
#[derive(Clone, Copy, Debug, Default)]
struct Gaps {
    last: Option<Time>,
    count: u64,
    mean_s: f64,
    squares: f64,
}

impl ArrivalGaps {
    pub(super) fn new(flows: usize, warmup: Span, recorder: Option<Recorder>) -> Self {
        Self {
            measured_from: Time::ZERO + warmup,
            flows: vec![Gaps::default(); flows],
            recorder,
        }
    }

    /// Mean, standard deviation and count of each flow, in the order of the network.
    pub(super) fn columns(&self) -> Vec<[f64; 3]> {
        self.flows
            .iter()
            .map(|gaps| {
                let count = gaps.count as f64;
                let mean = if gaps.count > 0 {
                    gaps.mean_s
                } else {
                    f64::NAN
                };
                [mean, (gaps.squares / count).sqrt(), count]
            })
            .collect()
    }
}

impl Observer for ArrivalGaps {
    fn on_link(&mut self, link: u32, event: &LinkEvent<'_>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.on_link(link, event);
        }
    }

    fn on_flow(&mut self, flow: u32, event: &FlowEvent<'_>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.on_flow(flow, event);
        }
        let is_arrival = event.at_destination && matches!(event.kind, FlowEventKind::Received(_));
        if !is_arrival || event.now < self.measured_from {
            return;
        }
        let Some(gaps) = self.flows.get_mut(flow as usize) else {
            return;
        };
        if let Some(span) = gaps.last.and_then(|last| event.now.since(last)) {
            let seconds = span.as_secs_f64();
            gaps.count += 1;
            let change = seconds - gaps.mean_s;
            gaps.mean_s += change / gaps.count as f64;
            gaps.squares += change * (seconds - gaps.mean_s);
        }
        gaps.last = Some(event.now);
    }
}
