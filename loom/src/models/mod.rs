//! The models: each does what the endpoint's thread and its handles do around the real code.

mod inbound;
mod memory;
mod panics;
mod requests;
mod room;
mod sleep;
mod system;
