//! Tests: a panic ends one connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use comity_congestion::{Controller, Decision, Event};
use comity_transport::wire::CloseCode;

use super::{Connection, Endpoint, connect};
use crate::Deliver;
use crate::config::Config;
use crate::error::{CloseReason, SendError};
use crate::section::Section;
use crate::session::Closed;

const PANIC: &str = "this panic is part of the test";

/// A controller that panics once `is_armed`.
#[derive(Debug)]
struct Defective {
    is_armed: Arc<AtomicBool>,
    method: Method,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Method {
    Event,
    Decision,
}

impl Controller for Defective {
    fn on_event(&mut self, _event: Event<'_>) {
        let panics = self.method == Method::Event && self.is_armed.load(Ordering::SeqCst);
        assert!(!panics, "{PANIC}");
    }

    fn decision(&self) -> Decision {
        let panics = self.method == Method::Decision && self.is_armed.load(Ordering::SeqCst);
        assert!(!panics, "{PANIC}");
        Decision::default()
    }
}

/// Turns a hang into a failure.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), what)
        .await
        .expect("somebody waits for ever")
}

/// A busy machine takes seconds to print a backtrace, and the endpoint waits for it. No section may
/// be late, and no idle timeout may expire, within that time.
fn config() -> Config {
    let config = Config::builder().insecure().deliver(Deliver::Early);
    let config = config.latency(Duration::from_secs(30));
    config
        .idle_timeout(Duration::from_secs(60))
        .build()
        .unwrap()
}

fn endpoint() -> Endpoint {
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    Endpoint::bind(loopback, config()).unwrap()
}

/// A connection to the endpoint: the caller's end and the endpoint's.
async fn pair(endpoint: &Endpoint) -> (Connection, Connection) {
    let call = connect(endpoint.local_address(), config());
    let (caller, accepted) = soon(async { tokio::join!(call, endpoint.accept()) }).await;
    (caller.unwrap(), accepted.unwrap())
}

async fn exchange(from: &Connection, to: &Connection) {
    soon(from.send(Section::new("section"))).await.unwrap();
    let section = soon(to.recv()).await.and_then(|item| item.into_section());
    assert_eq!(section.unwrap().payload, "section");
}

/// Panics in the thread of the application, which does not notice it.
fn panic_once(connection: &Connection) {
    let mut calls = 0;
    connection.with_transport(|transport, _| {
        calls += 1;
        assert!(calls > 1, "{PANIC}");
        assert!(
            transport.close_reason().is_some(),
            "the second time it is closed"
        );
    });
    assert_eq!(calls, 2);
}

/// The connection is over at both ends, and the endpoint works on.
async fn only_it_ended(
    endpoint: &Endpoint,
    (caller, accepted): (&Connection, &Connection),
    (other_caller, other): (&Connection, &Connection),
) {
    let internal = CloseReason::Session(Closed::Internal);
    assert_eq!(soon(accepted.closed()).await, internal);
    let refused = soon(accepted.send(Section::new("more"))).await;
    assert_eq!(refused, Err(SendError::Closed(internal)));
    assert!(soon(accepted.recv()).await.is_none());
    let reason = soon(caller.closed()).await;
    let is_internal =
        matches!(reason, CloseReason::Peer { code, .. } if code == CloseCode::INTERNAL);
    assert!(is_internal, "{reason:?}");
    assert_eq!(endpoint.stats().internal_errors, 1);
    exchange(other, other_caller).await;
    exchange(other_caller, other).await;
    let (new_caller, new) = pair(endpoint).await;
    exchange(&new_caller, &new).await;
    assert_eq!(endpoint.stats().internal_errors, 1);
}

#[tokio::test]
async fn a_panic_of_a_controller_ends_only_its_connection() {
    for method in [Method::Event, Method::Decision] {
        let endpoint = endpoint();
        let (caller, accepted) = pair(&endpoint).await;
        let (other_caller, other) = pair(&endpoint).await;
        exchange(&accepted, &caller).await;
        exchange(&other, &other_caller).await;
        let is_armed = Arc::new(AtomicBool::new(false));
        accepted.with_transport(|transport, now| {
            let is_armed = is_armed.clone();
            transport.set_controller(now, Box::new(Defective { is_armed, method }));
        });
        let before = accepted.stats().sent.counters.packets;
        is_armed.store(true, Ordering::SeqCst);
        accepted.try_send(Section::new("that breaks it")).unwrap();
        soon(accepted.closed()).await;
        only_it_ended(&endpoint, (&caller, &accepted), (&other_caller, &other)).await;
        let counters = accepted.stats().sent.counters;
        assert!(counters.packets >= before, "{counters:?}");
    }
}

#[tokio::test]
async fn a_panic_in_a_call_of_the_application_ends_the_connection() {
    let endpoint = endpoint();
    let (caller, accepted) = pair(&endpoint).await;
    let (other_caller, other) = pair(&endpoint).await;
    exchange(&accepted, &caller).await;
    panic_once(&accepted);
    only_it_ended(&endpoint, (&caller, &accepted), (&other_caller, &other)).await;
}

/// The calling end panics. Its thread serves one call, and its peer is notified of the end.
#[tokio::test]
async fn a_caller_that_panics_notifies_its_peer() {
    let endpoint = endpoint();
    let (caller, accepted) = pair(&endpoint).await;
    panic_once(&caller);
    let internal = CloseReason::Session(Closed::Internal);
    assert_eq!(soon(caller.closed()).await, internal);
    let reason = soon(accepted.closed()).await;
    let is_internal =
        matches!(reason, CloseReason::Peer { code, .. } if code == CloseCode::INTERNAL);
    assert!(is_internal, "{reason:?}");
    assert_eq!(endpoint.stats().internal_errors, 0);
}
