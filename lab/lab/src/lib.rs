//! Runs a scenario on real packets, beside the TCP of the Linux kernel and any other program.
//!
//! Each end of a flow is a network namespace with one TUN device. A [`router`](crate) thread reads
//! IP packets from these devices, carries them over the links of `comity-link` along the paths that
//! the simulator would choose, and writes them to the device of the other end. Rates, queues,
//! losses and their random streams are those of a simulated run with the same seed.
//!
//! | flow | ends |
//! |---|---|
//! | `transport = "tcp"` | the kernel: one socket at each end, its controller by `TCP_CONGESTION` |
//! | `transport = "sections"` | a Comity endpoint in its own process at each end, encrypted |
//! | `transport = "datagram"` | a plain UDP socket at each end |
//! | `transport = "command"` | any two programs |
//!
//! The result is a [`RunReport`](comity_sim::report::RunReport) with the columns of a simulated run
//! and the lateness of the router ([`World::Lab`](comity_sim::report::World)).
//!
//! Requirements: Linux, root, `/dev/net/tun` and iproute2 ([`missing`] lists what the host lacks).
//! The lab does not change the host's own network. It removes its namespaces when it ends. A lab
//! also removes those of killed labs when it starts.

mod capture;
mod child;
mod clock;
mod command;
pub mod endpoint;
mod error;
mod flows;
mod host;
mod namespace;
mod packet;
mod records;
mod report;
mod requirements;
mod router;
mod run;
mod sections;
mod settings;
mod stack;
mod tcp;
mod tcp_flow;
mod tcp_info;
mod timeline;
mod udp;

pub use child::Role;
pub use clock::Clock;
pub use error::Error;
pub use namespace::remove_stale;
pub use records::make_folder;
pub use requirements::missing;
pub use run::{check, run};
pub use settings::{EndpointCall, EndpointCommand, Settings};
