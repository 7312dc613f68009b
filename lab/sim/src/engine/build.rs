//! From a network's description to an engine.

mod controller;
mod flow;
mod links;
mod sections;
mod workload;

use comity_units::{Seed, Time};

pub(super) use flow::tcp_ends;
pub(super) use sections::section_ends;
pub(super) use workload::{datagram_source, section_producer, tcp_workload};

use super::event::{Class, Event};
use super::flow::start_times;
use super::links::Watch;
use super::packet::Arena;
use super::paths::{Paths, Use};
use super::queue::EventQueue;
use super::route::Router;
use super::{Engine, MEASURE, NO_LINK, Observer, RunOptions, consistency, standstill};
use crate::custom::CustomControllers;
use crate::network::{FlowError, Network, NetworkError, TransportSpec};
use flow::build_flow;
use links::build_links;

impl<O: Observer> Engine<O> {
    pub(crate) fn build(
        network: &Network,
        seed: Seed,
        options: &RunOptions,
        custom: &dyn CustomControllers,
        observer: O,
    ) -> Result<Self, NetworkError> {
        consistency::names(network)?;
        consistency::times(network)?;
        // A queue too small for any packet is no error here: the packets are dropped.
        standstill::check(network)?;
        let watch = Watch {
            warmup: Time::ZERO + network.warmup,
            end: Time::ZERO + network.duration,
        };
        let mut links = build_links(network, seed)?;
        let mut router = Router::new(network);
        let mut paths = Paths::default();
        let mut flows = Vec::with_capacity(network.flows.len());
        let any_serves = links.iter().any(|link| !link.decides_at_once());
        let mut queue = EventQueue::new(links.len(), any_serves);
        let mut shared = Vec::new();
        let starts = start_times(network, seed);
        for (index, (spec, started_at)) in network.flows.iter().zip(starts).enumerate() {
            let (there, back) = match spec.transport {
                TransportSpec::Datagram(_) => (Use::Datagrams, Use::Nothing),
                TransportSpec::Sections(_) => (Use::Sections, Use::Reports),
                TransportSpec::Tcp(_) => (Use::Segments, Use::Answers),
                TransportSpec::Command(_) => return Err(FlowError::Command.of(spec)),
            };
            let (source, destination) = (spec.source, spec.destination);
            let forward = paths.find(&mut router, (source, destination, there));
            let backward = paths.find(&mut router, (destination, source, back));
            let flow = forward
                .and_then(|forward| Ok((forward, backward?)))
                .and_then(|ways| {
                    build_flow(
                        network,
                        (spec, started_at),
                        seed,
                        ways,
                        &paths,
                        (custom, &mut shared),
                    )
                })
                .map_err(|error| error.of(spec))?;
            let source = index as u32 * 2;
            // A flow that arrives after its stop never starts.
            if flow.started_at < flow.stop_at {
                queue.schedule(Event::new(flow.started_at, Class::Control, source));
                if flow.stop_at < watch.end {
                    queue.schedule(Event::new(flow.stop_at, Class::Control, source + 1));
                }
            }
            flows.push(flow);
        }
        queue.schedule(Event::new(watch.warmup, Class::Control, MEASURE));
        paths.count_users(&flows, &mut links);
        if options.collapse {
            paths.mark_ahead(&mut flows, &links);
        }
        Ok(Self {
            queue,
            arena: Arena::default(),
            links,
            flows,
            paths: paths.entries,
            watch,
            observer,
            events: 0,
            current: NO_LINK,
            order: 0,
            depth: 0,
            is_measuring: false,
        })
    }
}
