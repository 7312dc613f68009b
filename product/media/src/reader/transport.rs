//! A transport stream: finds its packets, its programs, and then its streams.

use std::collections::{BTreeMap, VecDeque};

use comity_units::{Span, Time};
use mpeg2ts_reader::packet::Packet;

use super::config::ReaderConfig;
use super::demux::Demux;
use super::error::Stop;
use super::framing::{Framed, Framing};
use crate::header::PACKET;
use crate::psi::{self, Gatherer};
use crate::section::{Event, Notice};

/// The maximum number of packets before the programs are known: 770 kB, or several seconds of most
/// streams. A live source with layouts waits for none of them.
const SEARCHED: usize = 4096;

/// A transport stream, converted from bytes to events.
#[derive(Debug)]
pub(super) struct Transport {
    config: ReaderConfig,
    stride: usize,
    framing: Framing,
    /// The arrival of the latest bytes of a live source.
    arrival: Option<Time>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// The programs are not yet known, and all bytes wait.
    Searching {
        held: Vec<u8>,
        search: Search,
    },
    Streams(Box<Demux>),
}

impl Transport {
    /// Begins a stream with packets `stride` bytes apart.
    pub(super) fn new(config: ReaderConfig, stride: usize) -> Self {
        Self {
            config,
            stride,
            framing: Framing::new(stride),
            arrival: None,
            stage: Stage::Searching {
                held: Vec::new(),
                search: Search::default(),
            },
        }
    }

    /// Adds bytes; for a live source, with their arrival time.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        arrival: Option<Time>,
        events: &mut VecDeque<Event>,
    ) -> Result<(), Stop> {
        self.arrival = arrival;
        match &mut self.stage {
            Stage::Searching { held, search } => {
                held.extend(bytes);
                let framed = self.framing.push(bytes, |framed| {
                    search.framed(framed);
                    Ok(())
                });
                // Layouts carry the packets that no table explains yet.
                let is_over = search.is_over() || arrival.is_some() && self.config.layouts;
                match is_over || framed.is_err() {
                    true => self.begin(events),
                    false => Ok(()),
                }
            }
            Stage::Streams(demux) => {
                demux.arrive(arrival);
                let framed = self
                    .framing
                    .push(bytes, |framed| demux.framed(framed, events));
                framed.map_err(|error| {
                    demux.interrupt(events);
                    demux.finish(events);
                    Stop::Failed(error)
                })
            }
        }
    }

    pub(super) fn finish(&mut self, events: &mut VecDeque<Event>) -> Result<(), Stop> {
        if let Stage::Searching { search, .. } = &mut self.stage {
            // Framing cannot fail here, at the end.
            let _ = self.framing.finish(|framed| {
                search.framed(framed);
                Ok(())
            });
            self.begin(events)?;
        }
        if let Stage::Streams(demux) = &mut self.stage {
            let framed = self.framing.finish(|framed| demux.framed(framed, events));
            demux.finish(events);
            framed.map_err(Stop::Failed)?;
        }
        Ok(())
    }

    /// Ends the search: reads the held bytes, or returns them if no program was found in a source
    /// that needs one.
    fn begin(&mut self, events: &mut VecDeque<Event>) -> Result<(), Stop> {
        let Stage::Searching { held, search } = &mut self.stage else {
            return Ok(());
        };
        let held = core::mem::take(held);
        let needs_program = self.arrival.is_none() || !self.config.layouts;
        if needs_program && !search.has_found() {
            return Err(Stop::Unknown(held));
        }
        if self.stride != PACKET {
            let bytes = self.stride as u64;
            events.push_back(Event::Notice(Notice::PacketsApart { bytes }));
        }
        let mut demux = Demux::new(self.config, self.arrival, events);
        for (&pid, map) in &search.maps {
            demux.learn_program(pid, events);
            if let Some(map) = map {
                demux.learn_streams(pid, map, events);
            }
        }
        self.framing = Framing::new(self.stride).of_live(self.arrival.is_some());
        self.stage = Stage::Streams(Box::new(demux));
        self.push(&held, self.arrival, events)
    }

    /// Handles a silence of a live source: nothing more has arrived up to `now`.
    pub(super) fn on_silence(&mut self, now: Time, events: &mut VecDeque<Event>) {
        if let Stage::Streams(demux) = &mut self.stage {
            demux.arrive(Some(now));
            demux.on_silence(events);
        }
    }

    /// When a live source has to be [woken](Self::wake), if nothing arrives before.
    pub(super) fn next_wakeup(&self) -> Option<Time> {
        match &self.stage {
            Stage::Searching { .. } => None,
            Stage::Streams(demux) => demux.next_wakeup(),
        }
    }

    /// Handles that a live source has sent nothing more up to `now`, which may be no silence.
    pub(super) fn wake(&mut self, now: Time, events: &mut VecDeque<Event>) {
        if let Stage::Streams(demux) = &mut self.stage {
            demux.arrive(Some(now));
            demux.wake(now, events);
        }
    }

    /// The progress of the streams by their own times, without jumps.
    pub(super) fn progress(&mut self) -> Span {
        match &mut self.stage {
            Stage::Searching { .. } => Span::ZERO,
            Stage::Streams(demux) => demux.progress(),
        }
    }
}

/// Searches for the program association table and its maps.
#[derive(Debug, Default)]
struct Search {
    packets: usize,
    gatherers: BTreeMap<u16, Gatherer>,
    knows_programs: bool,
    /// The map of each program, once it has come.
    maps: BTreeMap<u16, Option<Vec<u8>>>,
}

impl Search {
    fn framed(&mut self, framed: Framed<'_>) {
        if let Framed::Packet(packet, _) = framed {
            self.packet(packet);
        }
    }

    fn packet(&mut self, packet: &[u8; PACKET]) {
        // Data after the end of the search has no effect, however the bytes are split.
        if self.is_over() {
            return;
        }
        self.packets += 1;
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
            } else if psi::program_map(&section).is_some() {
                self.maps.insert(pid, Some(section));
            }
        }
    }

    fn is_over(&self) -> bool {
        let is_known = self.knows_programs && self.maps.values().all(Option::is_some);
        is_known || self.packets >= SEARCHED
    }

    fn has_found(&self) -> bool {
        self.maps.values().any(Option::is_some)
    }
}
