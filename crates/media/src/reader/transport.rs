//! Transport packets, and what stands between them where they break: which of it goes where.

use std::collections::{BTreeMap, VecDeque};

use comity_units::Time;
use mpeg2ts_reader::packet::Packet;

use super::ReaderConfig;
use super::demux::Demux;
use super::framing::{Framed, Framing};
use super::slices::Slicer;
use crate::header::PACKET;
use crate::psi::{self, Gatherer};
use crate::section::{Event, Notice};

/// How many packets may pass before the programs are known: 770 kB, several seconds of most streams.
const SEARCHED: usize = 4096;

/// A transport stream, from bytes to events.
#[derive(Debug)]
pub(super) struct Transport {
    config: ReaderConfig,
    framing: Framing,
    stage: Stage,
    /// When the latest bytes came, of a live source.
    arrival: Option<Time>,
}

#[derive(Debug)]
enum Stage {
    /// What the programs are is not known yet; the packets wait.
    Searching {
        held: Vec<Stretch>,
        length: usize,
        search: Search,
    },
    Streams(Box<Demux>),
    Slices(Box<Slicer>),
}

/// Whole packets in a row, or the bytes of a break.
#[derive(Debug)]
struct Stretch {
    is_raw: bool,
    bytes: Vec<u8>,
}

impl Transport {
    /// A stream whose packets stand `stride` apart.
    pub(super) fn new(config: ReaderConfig, stride: usize) -> Self {
        let stage = Stage::Searching {
            held: Vec::new(),
            length: 0,
            search: Search::default(),
        };
        Self {
            config,
            framing: Framing::new(stride),
            stage,
            arrival: None,
        }
    }

    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        arrival: Option<Time>,
        events: &mut VecDeque<Event>,
    ) {
        let (stage, config) = (&mut self.stage, &self.config);
        self.arrival = arrival;
        self.framing
            .push(bytes, |framed| stage.take(framed, arrival, config, events));
    }

    pub(super) fn finish(&mut self, events: &mut VecDeque<Event>) {
        let (stage, config, arrival) = (&mut self.stage, &self.config, self.arrival);
        let mut is_cut = false;
        self.framing.finish(|framed| {
            is_cut |= matches!(framed, Framed::Cut(_));
            stage.take(framed, arrival, config, events);
        });
        stage.begin(arrival, config, events);
        match stage {
            Stage::Searching { .. } => {}
            Stage::Streams(demux) => demux.finish(is_cut, events),
            Stage::Slices(slicer) => slicer.finish(events),
        }
    }
}

impl Stage {
    fn take(
        &mut self,
        framed: Framed<'_>,
        arrival: Option<Time>,
        config: &ReaderConfig,
        events: &mut VecDeque<Event>,
    ) {
        let (bytes, packet) = match framed {
            Framed::Packet(packet) => (&packet[..], Some(packet)),
            Framed::Raw(bytes) => (bytes, None),
            Framed::Lost(skipped) | Framed::Cut(skipped) => {
                return events.push_back(Event::Notice(Notice::LostSync { skipped }));
            }
        };
        if let Self::Searching { length, .. } = self {
            // The search ends at the same byte however the bytes were cut.
            let room = (SEARCHED * PACKET).saturating_sub(*length);
            let room = if packet.is_some() { PACKET } else { room };
            let (bytes, behind) = bytes.split_at(room.min(bytes.len()));
            if self.hold(bytes, packet) {
                self.begin(arrival, config, events);
            }
            if !behind.is_empty() {
                self.take(Framed::Raw(behind), arrival, config, events);
            }
            return;
        }
        match (self, packet) {
            (Self::Searching { .. }, _) => {}
            (Self::Streams(demux), Some(packet)) => demux.packet(packet, arrival, events),
            (Self::Streams(demux), None) => demux.raw(bytes, arrival, events),
            (Self::Slices(slicer), Some(packet)) => {
                slicer.packet(packet, clock_reference(packet), arrival, events);
            }
            (Self::Slices(slicer), None) => slicer.raw(bytes, arrival, events),
        }
    }

    /// Holds what comes while it is searched; whether that is over.
    fn hold(&mut self, bytes: &[u8], packet: Option<&[u8; PACKET]>) -> bool {
        let Self::Searching {
            held,
            length,
            search,
        } = self
        else {
            return false;
        };
        let is_raw = packet.is_none();
        match held.last_mut().filter(|last| last.is_raw == is_raw) {
            Some(last) => last.bytes.extend(bytes),
            None => held.push(Stretch {
                is_raw,
                bytes: bytes.to_vec(),
            }),
        }
        *length += bytes.len();
        if let Some(packet) = packet {
            search.packet(packet);
        }
        search.is_over() || *length >= SEARCHED * PACKET
    }

    /// Ends the search: with what was found, or without.
    fn begin(
        &mut self,
        arrival: Option<Time>,
        config: &ReaderConfig,
        events: &mut VecDeque<Event>,
    ) {
        let Self::Searching {
            held,
            length,
            search,
        } = self
        else {
            return;
        };
        let (held, bytes) = (core::mem::take(held), *length as u64);
        *self = if search.maps.values().any(Option::is_some) {
            let mut demux = Demux::new(*config);
            for (&pid, map) in &search.maps {
                demux.learn_program(pid);
                if let Some(map) = map {
                    demux.learn_streams(pid, map, events);
                }
            }
            Self::Streams(Box::new(demux))
        } else {
            events.push_back(Event::Notice(Notice::NoProgram { bytes }));
            Self::Slices(Box::new(Slicer::packets(config)))
        };
        for stretch in held {
            if stretch.is_raw {
                self.take(Framed::Raw(&stretch.bytes), arrival, config, events);
            } else {
                for packet in stretch.bytes.as_chunks::<PACKET>().0 {
                    self.take(Framed::Packet(packet), arrival, config, events);
                }
            }
        }
    }
}

/// The clock reference of a packet that has one, in ticks of 90 kHz.
fn clock_reference(packet: &[u8; PACKET]) -> Option<(u16, u64)> {
    let packet = Packet::try_new(packet)?;
    let clock = packet.adaptation_field()?.pcr().ok()?;
    Some((packet.pid().into(), clock.base()))
}

/// Looks for the program association table and the maps that it names.
#[derive(Debug, Default)]
struct Search {
    gatherers: BTreeMap<u16, Gatherer>,
    knows_programs: bool,
    maps: BTreeMap<u16, Option<psi::ProgramMap>>,
}

impl Search {
    fn packet(&mut self, packet: &[u8; PACKET]) {
        let Some(packet) = Packet::try_new(packet) else {
            return;
        };
        let pid = u16::from(packet.pid());
        if pid != psi::PAT && !self.maps.contains_key(&pid) {
            return;
        }
        let Some(payload) = packet.payload() else {
            return;
        };
        let gatherer = self.gatherers.entry(pid).or_default();
        for section in gatherer
            .push(payload, packet.payload_unit_start_indicator())
            .0
        {
            if pid == psi::PAT {
                for program in psi::programs(&section).into_iter().flatten() {
                    self.maps.entry(program).or_insert(None);
                    self.knows_programs = true;
                }
            } else if let Some(map) = psi::program_map(&section) {
                self.maps.insert(pid, Some(map));
            }
        }
    }

    fn is_over(&self) -> bool {
        self.knows_programs && self.maps.values().all(Option::is_some)
    }
}
