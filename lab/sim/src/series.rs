//! Values over time, recorded by an observer.

use std::collections::VecDeque;

use comity_units::{Span, Time};

use crate::engine::{Fate, FlowEvent, FlowEventKind, LinkEvent, Observer};
use crate::network::Network;
use crate::report::{FlowSeries, LinkSeries, Series};

/// An [`Observer`] that counts events in bins of equal length from the start of the run.
///
/// An event at the boundary of two bins belongs to the later one. An event at the end of the run
/// belongs to the last bin, and a later event to none. A packet counts as dropped or lost when it
/// was offered, and as carried when its last bit left. Its queueing delay belongs to the bin of its
/// offer.
#[derive(Clone, Debug)]
pub struct Recorder {
    bin: Span,
    bins: usize,
    end: Time,
    flows: Vec<FlowRecord>,
    links: Vec<LinkRecord>,
}

#[derive(Clone, Debug, Default)]
struct FlowRecord {
    series: FlowSeries,
    /// The retransmissions of the sender so far.
    retransmitted: u64,
    /// The sender's state: window, threshold, smoothed round-trip time.
    state: [u64; 3],
    /// Whether the transport has such a state.
    has_state: bool,
    /// The number of bins whose end state is known.
    known: usize,
}

#[derive(Clone, Debug, Default)]
struct LinkRecord {
    series: LinkSeries,
    /// The departures of packets waiting or in service.
    departures: VecDeque<Time>,
    /// The last bin for which the queue is recorded.
    looked: usize,
}

impl Recorder {
    /// A recorder for one run of `network`, in bins of `bin`, which is at least a nanosecond.
    pub fn new(network: &Network, bin: Span) -> Self {
        let bin = bin.max(Span::from_nanos(1));
        let bins = network.duration.as_nanos().div_ceil(bin.as_nanos()) as usize;
        let flow = FlowRecord {
            series: FlowSeries {
                delivered_bytes: vec![0; bins],
                sent_packets: vec![0; bins],
                sent_wire_bytes: vec![0; bins],
                retransmitted_packets: vec![0; bins],
                cwnd_bytes: Vec::with_capacity(bins),
                ssthresh_bytes: Vec::with_capacity(bins),
                srtt_ns: Vec::with_capacity(bins),
            },
            ..FlowRecord::default()
        };
        let link = LinkRecord {
            series: LinkSeries {
                carried_bytes: vec![0; bins],
                dropped_packets: vec![0; bins],
                max_queue_packets: vec![0; bins],
                max_queueing_delay_ns: vec![0; bins],
            },
            ..LinkRecord::default()
        };
        Self {
            bin,
            bins,
            end: Time::ZERO + network.duration,
            flows: vec![flow; network.flows.len()],
            links: vec![link; network.links.len()],
        }
    }

    /// The series up to the end of the run.
    pub fn finish(mut self) -> Series {
        let (bin, bins) = (self.bin, self.bins);
        for flow in &mut self.flows {
            flow.carry_on(bins);
            if !flow.has_state {
                let FlowSeries {
                    cwnd_bytes,
                    ssthresh_bytes,
                    srtt_ns,
                    ..
                } = &mut flow.series;
                for state in [cwnd_bytes, ssthresh_bytes, srtt_ns] {
                    state.clear();
                }
            }
        }
        for link in &mut self.links {
            link.look(bins.saturating_sub(1), bin);
        }
        Series {
            bin,
            flows: self.flows.into_iter().map(|flow| flow.series).collect(),
            links: self.links.into_iter().map(|link| link.series).collect(),
            convergence: None,
        }
    }

    /// The bin of `time`, unless the run is over by then.
    fn number(&self, time: Time) -> Option<usize> {
        let bin = (time.as_nanos() / self.bin.as_nanos()) as usize;
        (time <= self.end).then(|| bin.min(self.bins.saturating_sub(1)))
    }
}

fn add<T: std::ops::AddAssign>(column: &mut [T], bin: usize, amount: T) {
    if let Some(sum) = column.get_mut(bin) {
        *sum += amount;
    }
}

impl FlowRecord {
    /// Sets the current state for all bins before `end` that have none yet.
    fn carry_on(&mut self, end: usize) {
        let [window, ssthresh, srtt] = self.state;
        let series = &mut self.series;
        series.cwnd_bytes.resize(end.max(self.known), window);
        series.ssthresh_bytes.resize(end.max(self.known), ssthresh);
        series.srtt_ns.resize(end.max(self.known), srtt);
        self.known = self.known.max(end);
    }
}

impl LinkRecord {
    /// Records the queue at the beginning of every bin up to `bin`.
    fn look(&mut self, bin: usize, length: Span) {
        while self.looked < bin {
            self.looked += 1;
            self.leave_by(Time::ZERO + length * self.looked as u64);
            self.peak(self.looked);
            if self.departures.is_empty() {
                // Nothing changes until the next packet.
                self.looked = bin;
            }
        }
    }

    fn leave_by(&mut self, time: Time) {
        while self.departures.front().is_some_and(|left| *left <= time) {
            self.departures.pop_front();
        }
    }

    fn peak(&mut self, bin: usize) {
        let waiting = u32::try_from(self.departures.len()).unwrap_or(u32::MAX);
        if let Some(peak) = self.series.max_queue_packets.get_mut(bin) {
            *peak = waiting.max(*peak);
        }
    }
}

impl Observer for Recorder {
    fn on_link(&mut self, link: u32, event: &LinkEvent<'_>) {
        let length = self.bin;
        let departure = event.fate.departure();
        let left = departure.and_then(|departure| self.number(departure));
        let (Some(offered), Some(record)) = (
            self.number(event.offered_at),
            self.links.get_mut(link as usize),
        ) else {
            return;
        };
        if let Some(left) = left {
            let wire = u64::from(event.packet.wire);
            add(&mut record.series.carried_bytes, left, wire);
        }
        if !matches!(event.fate, Fate::Carried { .. }) {
            add(&mut record.series.dropped_packets, offered, 1);
        }
        if let Fate::Carried { start, .. } | Fate::Lost { start, .. } = event.fate
            && let Some(longest) = record.series.max_queueing_delay_ns.get_mut(offered)
        {
            let delay = start.saturating_since(event.offered_at).as_nanos();
            *longest = delay.max(*longest);
        }
        record.look(offered, length);
        record.leave_by(event.offered_at);
        record.departures.extend(departure);
        record.peak(offered);
    }

    fn on_flow(&mut self, flow: u32, event: &FlowEvent<'_>) {
        let (Some(bin), Some(record)) = (self.number(event.now), self.flows.get_mut(flow as usize))
        else {
            return;
        };
        record.carry_on(bin);
        if let Some(state) = event.state {
            record.has_state = true;
            record.state = [state.window, state.ssthresh, state.srtt_ns];
            let again = state.retransmitted.saturating_sub(record.retransmitted);
            record.retransmitted = state.retransmitted;
            let again = u32::try_from(again).unwrap_or(u32::MAX);
            add(&mut record.series.retransmitted_packets, bin, again);
        }
        match event.kind {
            FlowEventKind::Delivered(bytes) => {
                add(&mut record.series.delivered_bytes, bin, bytes);
            }
            FlowEventKind::Sent(packet) if !event.at_destination => {
                add(&mut record.series.sent_packets, bin, 1);
                let wire = u64::from(packet.wire);
                add(&mut record.series.sent_wire_bytes, bin, wire);
            }
            _ => {}
        }
    }
}
