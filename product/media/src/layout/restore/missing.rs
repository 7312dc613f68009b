//! What a restorer writes where layouts are missing.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::super::action::Action;
use super::super::model::{Layout, Packet, Run, TABLES};
use super::super::waiting::{Lookup, State, Stream};
use super::{MAX_REMEMBERED, Restorer};
use crate::header::{Header, PACKET};

impl Restorer {
    /// Writes the sections that a missing layout before this one described. Returns whether there
    /// are any.
    pub(super) fn write_stale(
        &mut self,
        layout: &Layout,
        follows_gap: bool,
        out: &mut Vec<Action>,
    ) -> bool {
        let stale = self.stale(layout, follows_gap);
        for (_, action) in &stale {
            if let Action::Remultiplex(_, payload) = action
                && let Ok((Header::Unit(unit), _)) = Header::decode(payload)
            {
                self.remultiplexed.insert(unit.pid);
            }
        }
        let has_stale = !stale.is_empty();
        write(stale, out);
        has_stale
    }

    /// The sections that a missing layout before this one described: in each stream, those before
    /// the first section that this layout names, or has in a carried packet. In another stream,
    /// those that arrived before all named ones.
    fn stale(&mut self, layout: &Layout, follows_gap: bool) -> Vec<(u64, Action)> {
        let mut stale = Vec::new();
        let mut earliest = u64::MAX;
        let mut seen = BTreeSet::new();
        for packet in &layout.packets {
            let is_first = packet.counter().is_some() && seen.insert(packet.pid());
            if let Packet::Whole { pid, run, .. } = packet
                && is_first
                && self.carried.follows_gap(*pid, &self.streams)
                && let Some((id, number, from)) = self.carried_unit(run)
                && let Some(stream) = self.streams.get_mut(&id)
            {
                (stream.has_gap, stream.has_begun) = (false, true);
                earliest = earliest.min(add_before(stream, id, number, from, &mut stale));
            }
            for run in packet.runs() {
                let id = run.section.stream;
                if id != TABLES
                    && let Some(stream) = self.streams.get_mut(&id)
                    && (stream.has_gap || !stream.has_begun)
                    && let Some(number) = stream.position_of(&run.section)
                {
                    let may_have_gap = stream.may_have_gap();
                    (stream.has_gap, stream.has_begun) = (false, true);
                    if may_have_gap {
                        let from = run.from as usize;
                        earliest = earliest.min(add_before(stream, id, number, from, &mut stale));
                    }
                }
            }
        }
        let unnamed = { self.streams.iter_mut() }
            .filter(|&(&id, ref stream)| follows_gap && stream.has_gap && id != TABLES);
        for (&id, stream) in unnamed {
            let carried = stream.carried;
            for (&number, held) in &mut stream.held {
                if held.arrival >= earliest || Some(number) < carried {
                    continue;
                }
                let action = held.remultiplex(id, usize::MAX);
                if let Some(Action::Continue(pid, _)) = action {
                    self.remultiplexed.insert(pid);
                }
                stale.extend(action.map(|action| (held.arrival, action)));
            }
        }
        stale
    }

    /// The unit with bytes in this carried packet: its stream, its number, and the position of the
    /// packet in it.
    fn carried_unit(&mut self, run: &Run) -> Option<(u16, u64, usize)> {
        let stream = self.streams.get_mut(&run.section.stream)?;
        let Lookup::Here(number) = stream.find(&run.section) else {
            return None;
        };
        let bytes = stream.held.get(&number)?.content(run)?;
        let packet = *bytes.first_chunk::<PACKET>()?;
        self.carried.unit_of(&packet, &self.streams)
    }

    /// Writes all sections that wait, without a layout.
    pub(super) fn remultiplex_all(&mut self, out: &mut Vec<Action>) {
        let mut stale = Vec::new();
        for (&id, stream) in &mut self.streams {
            let carried = stream.carried;
            for (&number, held) in &mut stream.held {
                let is_due = Some(number) >= carried;
                let action = is_due.then(|| held.remultiplex(id, usize::MAX)).flatten();
                stale.extend(action.map(|action| (held.arrival, action)));
                let before = held.cost();
                held.state = State::Remultiplexed;
                if id != TABLES {
                    held.payload = Bytes::new();
                }
                self.held -= before - held.cost();
            }
            while stream.held.len() > MAX_REMEMBERED
                && let Some((&first, _)) = stream.held.first_key_value()
            {
                self.held -= stream.pass(first + 1);
            }
        }
        write(stale, out);
    }
}

/// Adds what to write of the sections before this one, and of its own first `from` bytes. Returns
/// the arrival of this one; the maximum if it has not arrived.
fn add_before(
    stream: &mut Stream,
    id: u16,
    number: u64,
    from: usize,
    stale: &mut Vec<(u64, Action)>,
) -> u64 {
    let mut arrival = u64::MAX;
    for (&at, held) in stream.held.range_mut(..=number) {
        if at == number {
            arrival = held.arrival;
        }
        // A section that begins in a missing layout is written whole too.
        let end = if at < number { usize::MAX } else { from };
        if end > 0 && Some(at) >= stream.carried {
            let action = held.remultiplex(id, end);
            stale.extend(action.map(|action| (held.arrival, action)));
        }
    }
    arrival
}

/// Writes these sections in the order of arrival.
fn write(mut stale: Vec<(u64, Action)>, out: &mut Vec<Action>) {
    stale.sort_by_key(|&(arrival, _)| arrival);
    out.extend(stale.into_iter().map(|(_, action)| action));
}
