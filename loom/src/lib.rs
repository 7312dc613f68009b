//! What the endpoint's thread and the application's threads share, under every interleaving:
//! `make verify PARTS=loom`.
//!
//! The code is that of `product/comity`, with loom's atomics and locks in place of std's, and a
//! model of tokio's `Notify`. A thread that waits for ever is a deadlock, which loom reports. Loom
//! takes `SeqCst` for `AcqRel`: what passes here does not depend on a total order of all accesses.
//! `docs/design/verification.md` lists what each model would find.
#![cfg(test)]
#![allow(dead_code, reason = "a model uses a part of each file")]

#[path = "../../product/comity/src/memory/budget.rs"]
mod budget;
#[path = "../../product/comity/src/endpoint/inbound.rs"]
mod inbound;
#[path = "../../product/comity/src/session/locking.rs"]
mod locking;
#[path = "../../product/comity/src/memory/payloads.rs"]
mod payloads;
#[path = "../../product/comity/src/endpoint/requests.rs"]
mod requests;
#[path = "../../product/comity/src/endpoint/room.rs"]
mod room;
#[path = "../../product/comity/src/endpoint/sleep.rs"]
mod sleep;

mod contain;
mod models;
mod notify;
mod sync;

mod memory {
    pub(crate) use crate::budget::{MemoryBudget, MemoryShare};
    pub(crate) use crate::payloads::{Charge, PayloadKey, Payloads};
}

mod session {
    pub(crate) use crate::locking::{lock, lock_or_fail, recover, use_locked};

    /// The owner of connections.
    pub(crate) type Holder = u8;
}

use loom::model::Builder;

/// Every interleaving with up to so many switches away from a thread that could go on. A lost
/// wake-up needs two; more than three take minutes.
fn check(switches: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(switches);
    builder.check(model);
}
