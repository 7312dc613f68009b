//! What holds in every network: packets are conserved, links keep order, windows bound what is in
//! flight, and a run depends on nothing but its network and seed.

use crate::common;

mod draws;
mod every_network;
mod flows;
mod laws;
mod paths;
mod record;
