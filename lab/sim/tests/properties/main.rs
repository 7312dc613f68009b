//! Properties of every network: packets are conserved, links keep order, windows bound the data in
//! flight, and a run depends only on its network and seed.

mod draws;
mod every_network;
mod flows;
mod invariants;
mod paths;
mod record;
