//! Peers whose address changes while they stream, over real sockets. A box between them changes the
//! source port from one packet to the next, as a translator may.

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use comity::credentials::PresharedKey;
use comity::{
    Config, Connection, Deliver, Endpoint, Event, Item, Section, SectionId, StreamId, connect,
};
use comity_units::Rate;

use crate::common::{CALL_TIMEOUT, opened};

const SEND_BUFFER: u64 = 100_000;

fn loopback() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// The rate of both ends' streams.
fn options() -> Config {
    Config::builder()
        .preshared_key(PresharedKey::new([7; 32]))
        .deliver(Deliver::Early)
        .max_rate(Rate::from_mbps(20))
        .send_buffer(SEND_BUFFER)
        .connect_timeout(CALL_TIMEOUT)
        .build()
        .expect("valid options")
}

/// The box's treatment of the caller's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Upstream {
    /// They leave from this port.
    From(usize),
    /// One packet leaves from this port, and nothing after it.
    OnceFrom(usize),
    Held,
}

#[derive(Debug)]
struct State {
    upstream: Upstream,
    caller: Option<SocketAddr>,
    /// The lengths of packets from each port to the listener, and of the listener's packets to it.
    sent: [Vec<usize>; 2],
    came: [Vec<usize>; 2],
    /// The caller's newest packets, whether or not the box passed them on.
    captured: VecDeque<Vec<u8>>,
}

/// A box between the caller and the listener.
#[derive(Debug)]
struct Middle {
    front: UdpSocket,
    backs: [UdpSocket; 2],
    listener: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
}

impl Middle {
    fn start(listener: SocketAddr) -> Arc<Self> {
        let bind = || UdpSocket::bind(loopback()).unwrap();
        let middle = Arc::new(Self {
            front: bind(),
            backs: [bind(), bind()],
            listener,
            state: Mutex::new(State {
                upstream: Upstream::From(0),
                caller: None,
                sent: Default::default(),
                came: Default::default(),
                captured: VecDeque::new(),
            }),
            changed: Condvar::new(),
        });
        let up = middle.clone();
        std::thread::spawn(move || up.carry_up());
        for port in [0, 1] {
            let down = middle.clone();
            std::thread::spawn(move || down.carry_down(port));
        }
        middle
    }

    fn carry_up(&self) {
        let mut buffer = [0; 65_535];
        while let Ok((length, from)) = self.front.recv_from(&mut buffer) {
            let mut state = self.state.lock().unwrap();
            state.caller = Some(from);
            state.captured.push_back(buffer[..length].to_vec());
            if state.captured.len() > 64 {
                state.captured.pop_front();
            }
            let port = match state.upstream {
                Upstream::From(port) => Some(port),
                Upstream::OnceFrom(port) => {
                    state.upstream = Upstream::Held;
                    Some(port)
                }
                Upstream::Held => None,
            };
            if let Some(port) = port {
                state.sent[port].push(length);
                // The state stays locked until then, so a reply finds the entry.
                self.backs[port]
                    .send_to(&buffer[..length], self.listener)
                    .unwrap();
            }
            self.changed.notify_all();
        }
    }

    fn carry_down(&self, port: usize) {
        let mut buffer = [0; 65_535];
        while let Ok((length, _)) = self.backs[port].recv_from(&mut buffer) {
            let mut state = self.state.lock().unwrap();
            state.came[port].push(length);
            if let Some(caller) = state.caller {
                self.front.send_to(&buffer[..length], caller).unwrap();
            }
            self.changed.notify_all();
        }
    }

    fn set(&self, upstream: Upstream) {
        self.state.lock().unwrap().upstream = upstream;
    }

    /// Waits until the condition holds, or long enough for the failure of another part of the test
    /// to show: a runtime does not end before what blocks in it.
    async fn until(self: &Arc<Self>, is_so: impl Fn(&State) -> bool + Send + 'static) {
        let middle = self.clone();
        let waiting = tokio::task::spawn_blocking(move || {
            let state = middle.state.lock().unwrap();
            let limit = Duration::from_secs(60);
            let waited = middle
                .changed
                .wait_timeout_while(state, limit, |state| !is_so(state));
            !waited.unwrap().1.timed_out()
        });
        assert!(waiting.await.unwrap(), "the condition never held");
    }

    fn port(&self, port: usize) -> SocketAddr {
        self.backs[port].local_addr().unwrap()
    }
}

/// Two ends that stream to each other through a box.
struct Streaming {
    caller: Connection,
    listener: Connection,
    middle: Arc<Middle>,
    _endpoint: Endpoint,
}

const LENGTH: usize = 3_000;

fn payload(section: u64) -> Vec<u8> {
    (0..LENGTH as u64)
        .map(|at| (at ^ (at >> 8) ^ section.wrapping_mul(37)) as u8)
        .collect()
}

impl Streaming {
    async fn start() -> Self {
        let endpoint = Endpoint::bind(loopback(), options()).unwrap();
        let middle = Middle::start(endpoint.local_address());
        let front = middle.front.local_addr().unwrap();
        let (caller, listener) = opened(connect(front, options()), &endpoint).await;
        Self {
            caller,
            listener,
            middle,
            _endpoint: endpoint,
        }
    }

    /// Streams both ways while `happening` goes on. Every section must arrive whole, once and in
    /// order, and both ends must count it.
    async fn while_streaming(self, happening: impl AsyncFnOnce(&Self)) {
        let is_over = AtomicBool::new(false);
        let send = async |connection: &Connection| {
            let mut next = 0;
            while !is_over.load(Ordering::Relaxed) {
                let section = Section::new(payload(next)).deadline(Duration::MAX);
                connection.send(section).await.unwrap();
                next += 1;
            }
            // A single byte is the last one.
            let section = Section::new(vec![0]).deadline(Duration::MAX);
            connection.send(section).await.unwrap();
            connection.finish_stream(StreamId(0)).unwrap();
            // Everything is settled: closing loses nothing that the other end waits for.
            connection.room(SEND_BUFFER as usize).await;
            next + 1
        };
        let receive = async |connection: &Connection| {
            let mut next = 0;
            loop {
                let item = connection.recv().await.expect("it is not over");
                assert_eq!(item.id(), SectionId(next));
                let Item::Section(section) = item else {
                    panic!("a gap: {item:?}");
                };
                next += 1;
                if section.payload.len() == 1 {
                    return next;
                }
                assert!(section.payload == payload(next - 1));
            }
        };
        let happening = async {
            happening(&self).await;
            is_over.store(true, Ordering::Relaxed);
        };
        let (_, up, down, came_up, came_down) = tokio::join!(
            happening,
            send(&self.caller),
            send(&self.listener),
            receive(&self.listener),
            receive(&self.caller)
        );
        assert_eq!((came_up, came_down), (up, down));
        self.caller.finish().await.unwrap();
        assert!(self.listener.closed().await.is_clean());
        for (end, sent, came) in [(&self.caller, up, down), (&self.listener, down, up)] {
            let statistics = end.stats();
            assert_eq!(statistics.sent.sections.submitted, sent);
            assert_eq!(statistics.sent.sections.acknowledged, sent);
            let bytes = (sent - 1) * LENGTH as u64 + 1;
            assert_eq!(statistics.sent.bytes.acknowledged, bytes);
            let received = &statistics.received;
            assert_eq!(received.on_time_sections + received.late_sections, came);
            assert_eq!(received.delivered_bytes, (came - 1) * LENGTH as u64 + 1);
            assert_eq!(statistics.protection.forged_packets, 0);
        }
    }
}

#[tokio::test]
async fn a_stream_continues_from_another_port_after_validation() {
    let streaming = Streaming::start().await;
    let mut events = streaming.listener.events();
    streaming
        .while_streaming(async |ends| {
            let middle = &ends.middle;
            let [old, new] = [0, 1].map(|port| middle.port(port));
            middle.until(|state| state.came[0].len() > 100).await;
            // One packet comes from the new port, and the challenge to it gets no response.
            middle.set(Upstream::OnceFrom(1));
            // A second packet to it fits only if that one packet was large.
            middle.until(|state| !state.came[1].is_empty()).await;
            let (sent, came, stayed) = {
                let state = middle.state.lock().unwrap();
                let sums = [&state.sent[1], &state.came[1]].map(|list| list.iter().sum::<usize>());
                (sums[0], sums[1], state.came[0].len())
            };
            assert!(
                came <= 3 * sent,
                "{came} bytes to an address that sent {sent}"
            );
            assert!(stayed > 100, "the stream stays where it was");
            assert_eq!(ends.listener.peer_address(), old);
            // From here on, only the new port works.
            middle.set(Upstream::From(1));
            let moved = loop {
                match events.next().await.expect("it is not over") {
                    Event::PathChanged { from, to } => break (from, to),
                    Event::Closed(end) => panic!("{end}"),
                    _ => {}
                }
            };
            assert_eq!(moved, (old, new));
            assert_eq!(ends.listener.peer_address(), new);
            let before = middle.state.lock().unwrap().came[1].len();
            middle
                .until(move |state| state.came[1].len() > before + 200)
                .await;
        })
        .await;
}

/// An attacker on the path copies each packet of the caller and sends the copy from its own address
/// before the original.
#[tokio::test]
async fn a_replayed_packet_from_elsewhere_moves_nothing() {
    let streaming = Streaming::start().await;
    let mut events = streaming.listener.events();
    streaming
        .while_streaming(async |ends| {
            let middle = &ends.middle;
            let home = middle.port(0);
            middle.until(|state| state.came[0].len() > 100).await;
            let attacker = UdpSocket::bind(loopback()).unwrap();
            let caught = Duration::from_secs(10);
            attacker.set_read_timeout(Some(caught)).unwrap();
            // The box holds the newest packet and those after it, until the attacker's copy has
            // arrived.
            middle.set(Upstream::Held);
            middle.state.lock().unwrap().captured.clear();
            middle.until(|state| !state.captured.is_empty()).await;
            let held = middle.state.lock().unwrap().captured.pop_front();
            let held = held.expect("it was there");
            attacker.send_to(&held, middle.listener).unwrap();
            let mut buffer = [0; 65_535];
            let (length, _) = attacker.recv_from(&mut buffer).unwrap();
            assert!(length <= 3 * held.len(), "{length} for {}", held.len());
            // From here on the caller's packets arrive too, and the copy is repeated.
            middle.set(Upstream::From(0));
            let mut answered = length;
            let mut given = held.len();
            for _ in 0..50 {
                attacker.send_to(&held, middle.listener).unwrap();
                given += held.len();
            }
            let before = middle.state.lock().unwrap().came[0].len();
            middle
                .until(move |state| state.came[0].len() > before + 300)
                .await;
            attacker.set_nonblocking(true).unwrap();
            while let Ok((length, _)) = attacker.recv_from(&mut buffer) {
                answered += length;
            }
            // Copies are not genuine packets: only the first one caused a reply.
            assert!(answered <= 3 * held.len(), "{answered} for {given}");
            assert_eq!(ends.listener.peer_address(), home);
        })
        .await;
    while let Some(event) = events.next().await {
        assert!(!matches!(event, Event::PathChanged { .. }), "{event:?}");
    }
}
