//! From a network's description to an engine.

mod error;
mod flow;
mod links;
mod sections;

use comity_units::{Seed, Time};

pub use error::BuildError;
pub(super) use links::{first_delay, mean_rate};
pub(super) use sections::section_producer;

use super::links::Watch;
use super::packet::Arena;
use super::paths::{Paths, Use};
use super::queue::{Class, Event, EventQueue};
use super::route::Router;
use super::standstill::stands_still;
use super::{Engine, MEASURE, NO_LINK, Observer, RunOptions};
use crate::network::{Network, NodeId, TransportSpec};
use flow::build_flow;
use links::build_links;

impl<'o, O: Observer> Engine<'o, O> {
    pub(super) fn build(
        network: &Network,
        seed: Seed,
        options: &RunOptions,
        observer: &'o mut O,
    ) -> Result<Self, BuildError> {
        check_names(network)?;
        if network.warmup >= network.duration {
            let (warmup, duration) = (network.warmup, network.duration);
            return Err(BuildError::Warmup { warmup, duration });
        }
        let watch = Watch {
            warmup: Time::ZERO + network.warmup,
            end: Time::ZERO + network.duration,
        };
        let mut links = build_links(network, seed)?;
        let mut router = Router::new(
            network,
            network
                .links
                .iter()
                .map(|l| first_delay(&l.config))
                .collect(),
        );
        let mut paths = Paths::default();
        let mut flows = Vec::with_capacity(network.flows.len());
        let any_serves = links.iter().any(|link| !link.decides_at_once());
        let mut queue = EventQueue::new(links.len(), any_serves);
        let mut shared = Vec::new();
        for (index, spec) in network.flows.iter().enumerate() {
            let (there, back) = match spec.transport {
                TransportSpec::Datagram(_) => (Use::Datagrams, Use::Nothing),
                TransportSpec::Sections(_) => (Use::Sections, Use::Reports),
                TransportSpec::Tcp(_) => (Use::Segments, Use::Answers),
                TransportSpec::Command(_) => {
                    let flow = spec.name.clone();
                    return Err(BuildError::Command { flow });
                }
            };
            let (source, destination) = (spec.source, spec.destination);
            let forward = paths.find(network, &mut router, spec, (source, destination, there))?;
            let backward = paths.find(network, &mut router, spec, (destination, source, back))?;
            if stands_still(network, spec, paths.links(forward), paths.links(backward)) {
                let flow = spec.name.clone();
                return Err(BuildError::Standstill { flow });
            }
            let flow = build_flow(
                network,
                spec,
                seed,
                (forward, backward),
                &paths,
                &mut shared,
            )?;
            let source = index as u32 * 2;
            queue.schedule(Event::new(flow.started_at, Class::Control, source));
            if flow.stop_at < watch.end {
                queue.schedule(Event::new(flow.stop_at, Class::Control, source + 1));
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

fn check_names(network: &Network) -> Result<(), BuildError> {
    let links = network.links.iter().map(|link| &link.name);
    let flows = network.flows.iter().map(|flow| &flow.name);
    for mut names in [links.collect::<Vec<_>>(), flows.collect()] {
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(BuildError::DuplicateName {
                name: pair[0].clone(),
            });
        }
    }
    let known = network.nodes.len() as u32;
    let check = |user: String, node: NodeId| match node.0 < known {
        true => Ok(()),
        false => Err(BuildError::UnknownNode { user, node: node.0 }),
    };
    for link in &network.links {
        check(format!("link {:?}", link.name), link.from)?;
        check(format!("link {:?}", link.name), link.to)?;
    }
    for flow in &network.flows {
        check(format!("flow {:?}", flow.name), flow.source)?;
        check(format!("flow {:?}", flow.name), flow.destination)?;
    }
    Ok(())
}
