//! The ends of connections and endpoints, and their notifications.

use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use comity::causes::CallError;
use comity::{
    CloseCode, CloseReason, ConnectError, Deliver, Endpoint, Event, Reason, Section, SectionId,
    SendError, StreamId, connect,
};

use super::{loopback, options, pair, payload};
use crate::common::soon;

#[tokio::test]
async fn closing_an_endpoint_notifies_its_peers() {
    let options = options().build().unwrap();
    let (caller, _listener, endpoint) = pair(options.clone(), options).await;
    endpoint.close().await;
    assert_eq!(
        caller.closed().await,
        CloseReason::Peer {
            code: CloseCode::SHUTDOWN,
            reason: String::new()
        }
    );
    assert!(endpoint.accept().await.is_none());
}

/// A stopped listener must not connect a caller that it will drop.
#[tokio::test]
async fn stop_accepting_keeps_connections_and_answers_no_caller() {
    let options = options();
    let config = options.clone().build().unwrap();
    let (caller, listener, endpoint) = pair(config.clone(), config).await;
    endpoint.stop_accepting();
    caller.send(Section::new("on time")).await.unwrap();
    let item = soon(listener.recv()).await.unwrap();
    assert_eq!(item.into_section().unwrap().payload, "on time");
    let hasty = options.connect_timeout(Duration::from_millis(300));
    let again = connect(endpoint.local_address(), hasty.build().unwrap()).await;
    assert!(
        matches!(again, Err(ConnectError::Call(CallError::NoAnswer { .. }))),
        "{again:?}"
    );
    assert_eq!(endpoint.stats().connections, 1);
}

#[tokio::test]
async fn after_the_end_every_call_returns() {
    let options = options().build().unwrap();
    let (caller, listener, endpoint) = pair(options.clone(), options).await;
    let address = endpoint.local_address();
    soon(endpoint.close()).await;
    let again = soon(endpoint.connect(address)).await;
    assert!(
        matches!(again, Err(ConnectError::EndpointClosed)),
        "{again:?}"
    );
    assert_eq!(endpoint.stats().connections, 0);
    soon(endpoint.close()).await;
    assert!(soon(endpoint.accept()).await.is_none());
    for connection in [&caller, &listener] {
        let end = soon(connection.closed()).await;
        assert_eq!(connection.close_reason(), Some(end.clone()));
        assert!(soon(connection.recv()).await.is_none());
        assert_eq!(soon(connection.finish()).await, Err(end.clone()));
        let refused = soon(connection.send(Section::new("late"))).await;
        assert_eq!(refused, Err(SendError::Closed(end)));
        connection.stats();
        connection.cancel(StreamId(0), SectionId(0));
        connection.close(CloseCode::APPLICATION, "again");
        assert!(connection.finish_stream(StreamId(0)).is_err());
        assert!(connection.skip(StreamId(0), Reason::Shed).is_err());
    }
}

/// Close overtakes accepted sections that still wait. These have an outcome and are counted.
#[tokio::test]
async fn sections_accepted_before_the_close_have_an_outcome() {
    let options = options().build().unwrap();
    for streams in [1, 3] {
        let (caller, _listener, _endpoint) = pair(options.clone(), options.clone()).await;
        let mut events = caller.events();
        let mut given = BTreeSet::new();
        for number in 0..600 {
            let stream = StreamId(number % streams);
            let section = Section::new(payload(number.into(), 500)).stream(stream);
            given.insert((stream, caller.try_send(section).unwrap()));
        }
        caller.close(CloseCode::APPLICATION, "");
        let mut settled = BTreeSet::new();
        while let Some(event) = soon(events.next()).await {
            match event {
                Event::Outcome(outcome) => {
                    let section = (outcome.stream, outcome.section);
                    assert!(settled.insert(section), "{outcome:?} twice");
                }
                Event::Missed(_) => panic!("{event:?}"),
                _ => {}
            }
        }
        assert_eq!(settled, given);
        let sent = caller.stats().sent;
        assert_eq!(sent.sections.submitted, 600);
        assert_eq!(sent.sections.sum(), 600, "{:?}", sent.sections);
        assert_eq!(sent.bytes.submitted, 600 * 500);
    }
}

#[tokio::test]
async fn every_waiting_task_is_woken_at_the_end() {
    let options = options().build().unwrap();
    let (caller, listener, _endpoint) = pair(options.clone(), options).await;
    let listener = Arc::new(listener);
    let waiting: Vec<_> = (0..5)
        .map(|_| {
            let listener = listener.clone();
            tokio::spawn(async move {
                let mut items = 0;
                while listener.recv().await.is_some() {
                    items += 1;
                }
                items
            })
        })
        .collect();
    for section in 0..40 {
        let given = Section::new(payload(section, 5_000)).deadline(Duration::MAX);
        caller.send(given).await.unwrap();
    }
    assert_eq!(soon(caller.finish()).await, Ok(()));
    let mut items = 0;
    for task in waiting {
        items += soon(task).await.unwrap();
    }
    assert_eq!(items, 40);
}

/// Checks that the peer announced its end.
#[track_caller]
fn assert_shut_down(end: &CloseReason) {
    assert!(
        matches!(
            end,
            CloseReason::Peer {
                code: CloseCode::SHUTDOWN,
                ..
            }
        ),
        "{end}"
    );
}

#[tokio::test]
async fn waiting_calls_return_the_reason_of_the_end() {
    let options = options().build().unwrap();
    let endpoint = Endpoint::bind(loopback(), options.clone()).unwrap();
    let caller = connect(endpoint.local_address(), options).await.unwrap();
    endpoint.close().await;
    let end = caller.closed().await;
    assert_shut_down(&end);
}

/// A box between a caller and a listener. After the listener's answer to the handshake, which needs
/// one more datagram, the box holds the caller's datagrams until they are released.
#[derive(Debug)]
struct Holding {
    front: UdpSocket,
    back: UdpSocket,
    listener: SocketAddr,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    caller: Option<SocketAddr>,
    has_answered: bool,
    is_let_go: bool,
    held: Vec<Vec<u8>>,
}

/// The first byte of the packet after which a caller is connected.
const ACCEPT: u8 = 0x70;

impl Holding {
    fn start(listener: SocketAddr) -> Arc<Self> {
        let holding = Arc::new(Self {
            front: UdpSocket::bind(loopback()).unwrap(),
            back: UdpSocket::bind(loopback()).unwrap(),
            listener,
            state: Mutex::default(),
        });
        let (up, down) = (holding.clone(), holding.clone());
        std::thread::spawn(move || up.carry_up());
        std::thread::spawn(move || down.carry_down());
        holding
    }

    fn carry_up(&self) {
        let mut buffer = [0; 65_535];
        while let Ok((length, from)) = self.front.recv_from(&mut buffer) {
            let mut state = self.state.lock().unwrap();
            state.caller = Some(from);
            state.held.push(buffer[..length].to_vec());
            self.pass(&mut state);
        }
    }

    fn carry_down(&self) {
        let mut buffer = [0; 65_535];
        while let Ok((length, _)) = self.back.recv_from(&mut buffer) {
            let mut state = self.state.lock().unwrap();
            state.has_answered |= buffer[0] == ACCEPT;
            let caller = state.caller.unwrap();
            self.front.send_to(&buffer[..length], caller).unwrap();
        }
    }

    fn pass(&self, state: &mut State) {
        if state.has_answered && !state.is_let_go {
            return;
        }
        for datagram in state.held.drain(..) {
            self.back.send_to(&datagram, self.listener).unwrap();
        }
    }

    fn let_go(&self) {
        let mut state = self.state.lock().unwrap();
        state.is_let_go = true;
        self.pass(&mut state);
    }
}

/// The listener closes when the caller is connected and the listener cannot know it yet.
#[tokio::test]
async fn a_caller_with_an_answered_handshake_is_notified_of_the_end() {
    let options = options().build().unwrap();
    let endpoint = Endpoint::bind(loopback(), options.clone()).unwrap();
    let holding = Holding::start(endpoint.local_address());
    let address = holding.front.local_addr().unwrap();
    let caller = soon(connect(address, options)).await.unwrap();
    assert_eq!(endpoint.stats().connections, 0);
    let closing = {
        let endpoint = endpoint.clone();
        tokio::spawn(async move { endpoint.close().await })
    };
    // It accepts no more connections, so the close has begun.
    assert!(soon(endpoint.accept()).await.is_none());
    holding.let_go();
    let end = soon(caller.closed()).await;
    assert_shut_down(&end);
    soon(closing).await.unwrap();
}

/// Sections that arrived early are delivered on time after their sender has left.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "real time is what it is about")]
async fn received_sections_are_delivered_at_their_deadlines_after_the_peer_ended() {
    let paced = options()
        .deliver(Deliver::Paced)
        .latency(Duration::from_secs(2))
        .build()
        .unwrap();
    let (caller, listener, _endpoint) = pair(paced.clone(), paced).await;
    let began = Instant::now();
    for step in 0..10 {
        let source_time = began + Duration::from_millis(50 * step);
        let section = Section::new(payload(step, 1_000)).source_time(source_time);
        caller.send(section).await.unwrap();
    }
    caller.finish_stream(StreamId(0)).unwrap();
    soon(caller.finish()).await.unwrap();
    let mut sections = 0;
    while let Some(item) = soon(listener.recv()).await {
        let received = item.into_section().expect("no gap");
        let deadline = received.about.deadline.expect("one");
        // The clocks differ a little, and reported times are rounded.
        assert!(Instant::now() + Duration::from_millis(2) >= deadline);
        sections += 1;
    }
    assert_eq!(sections, 10);
    // The clocks are related to within a round trip: tens of milliseconds on a busy machine.
    assert!(began.elapsed() >= Duration::from_millis(450 + 2_000 - 100));
}
