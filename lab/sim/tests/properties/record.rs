//! The events of a run for its observers.

use std::collections::BTreeMap;

use comity_sim::{Body, Fate, FlowEvent, FlowEventKind, LinkEvent, Observer};
use comity_units::Time;

/// The time and kind of an event, with the number or sequence number of the packet.
pub(crate) type Happening = (Time, &'static str, u64);

/// The offer of a packet to a link: time, flow and direction, and its fate.
pub(crate) type Offer = (Time, (u32, bool), Fate);

/// All observed events, by entity.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Record {
    /// The offers to each link.
    pub(crate) links: BTreeMap<u32, Vec<Offer>>,
    /// The events of each endpoint.
    pub(crate) ends: BTreeMap<(u32, bool), Vec<Happening>>,
    /// For each flow: the packets received at the source.
    pub(crate) returned: BTreeMap<u32, u64>,
    /// For each flow: the maximum of outstanding data.
    pub(crate) max_in_flight: BTreeMap<u32, u64>,
    /// For each flow: how much of its stream was sent.
    pub(crate) sent_up_to: BTreeMap<u32, u64>,
    pub(crate) delivered: BTreeMap<u32, u64>,
}

impl Observer for Record {
    fn on_link(&mut self, link: u32, event: &LinkEvent<'_>) {
        let flow = (event.packet.flow, event.packet.is_return);
        self.links
            .entry(link)
            .or_default()
            .push((event.offered_at, flow, event.fate));
    }

    fn on_flow(&mut self, flow: u32, event: &FlowEvent<'_>) {
        let number = |body: &Body| match body {
            Body::Datagram(number) => *number,
            Body::Sections(packet) => packet.number.get(),
            Body::Tcp(segment) => {
                u64::from(segment.sequence.get()) << 32 | u64::from(segment.acknowledgement.get())
            }
        };
        let (what, number) = match event.kind {
            FlowEventKind::Sent(packet) => ("sent", number(&packet.body)),
            FlowEventKind::Received(packet) => ("received", number(&packet.body)),
            FlowEventKind::Timer => ("timer", 0),
            FlowEventKind::Delivered(bytes) => ("delivered", bytes),
        };
        if what != "timer" {
            let end = self.ends.entry((flow, event.at_destination)).or_default();
            end.push((event.now, what, number));
        }
        match event.kind {
            FlowEventKind::Received(_) if !event.at_destination => {
                *self.returned.entry(flow).or_default() += 1;
            }
            FlowEventKind::Delivered(bytes) => *self.delivered.entry(flow).or_default() += bytes,
            FlowEventKind::Sent(packet) if !event.at_destination => {
                if let Body::Tcp(segment) = packet.body
                    && segment.payload > 0
                {
                    // These runs are far too short for sequence numbers to wrap; number 0 is the
                    // SYN's.
                    let end = u64::from(segment.sequence.get()) - 1 + u64::from(segment.payload);
                    let up_to = self.sent_up_to.entry(flow).or_default();
                    *up_to = end.max(*up_to);
                }
            }
            _ => {}
        }
        if let Some(state) = event.state {
            let most = self.max_in_flight.entry(flow).or_default();
            *most = state.in_flight.max(*most);
        }
    }
}
