//! The tests of the crate's public interface, in one program: it links once, and its tests run
//! beside one another.

mod applications;
mod aqm;
mod bbr;
mod closed_forms;
mod columnar;
mod common;
mod custom;
mod directions;
mod encoder;
mod fairness_against_ns2;
#[path = "keys/main.rs"]
mod keys;
mod libra;
mod linux_tcp;
mod media_peers;
mod ns2_drops;
mod ns2_networks;
mod overrides;
mod parameters;
mod pictures;
#[path = "properties/main.rs"]
mod properties;
mod psp_scale;
mod result_sets;
mod results;
mod results_of_runs;
mod rtt;
mod scale;
mod scenario_files;
mod scenario_links;
mod scenario_never_panics;
mod scenario_problems;
mod scenario_reference;
mod sections;
mod series;
mod sharing;
mod short_flows;
mod sources;
mod standstill;
mod store;
mod tcp_real;
mod tfrc;
mod tltcp;
mod trace_capture;
mod trace_pcapng;
