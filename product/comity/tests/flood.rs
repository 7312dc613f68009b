//! Ten thousand strangers with different addresses, against a listener that carries a stream.

mod common;

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use bytes::Bytes;
use comity::session::{
    Caller, CallerConfig, CallerCredentials, ConnectionId, Ecn, Listener, ListenerConfig,
    ListenerCredentials, PresharedKey, Randomness, Role,
};
use comity::transport::Transport;
use comity::{Config, Deliver, Endpoint, Importance, Section, StreamId, connect};
use comity_testkit::memory::{Counting, held};
use comity_transport::timeline::outbox::RECORD;
use comity_transport::timeline::{Delivery, Outgoing};
use comity_transport::wire::header::{self, Initial, Packet, Pattern};
use comity_transport::wire::parameters::Parameters;
use comity_units::{Seed, Span, Time};
use common::{CALL_TIMEOUT, Flights, Parts, World as _, opened, soon};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const START: Time = Time::from_secs(1_000);
const DELAY: Span = Span::from_millis(20);
const LATENCY: Span = Span::from_millis(200);

fn options() -> Config {
    Config::builder()
        .preshared_key(PresharedKey::new([1; 32]))
        .deliver(Deliver::Early)
        .connect_timeout(CALL_TIMEOUT)
        .build()
        .expect("valid options")
}

fn legitimate() -> SocketAddr {
    ([198, 51, 100, 7], 4_000).into()
}

fn listening() -> SocketAddr {
    ([192, 0, 2, 1], 5_000).into()
}

/// A first packet as a genuine caller would send it, but with the wrong key.
fn first_packet(stranger: u32, cookie: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Initial {
        source: ConnectionId::new(u64::from(stranger) + 1),
        pattern: Pattern::NNpsk0,
        cookie,
        message: &[7; 48],
    }
    .encode(&mut out)
    .expect("within the format");
    out
}

/// One packet of every kind that could cause a reply.
fn datagram(stranger: u32, connection: ConnectionId) -> Vec<u8> {
    let mut bytes = first_packet(stranger, &[]);
    match stranger % 7 {
        0 => {}
        1 => bytes = first_packet(stranger, &[9; 36]),
        // Another version, complete or too short.
        2 => bytes[4] = 77,
        3 => {
            bytes[4] = 77;
            bytes.truncate(200);
        }
        4 => bytes.truncate(1_199),
        // A packet to a known connection, and one to an unknown one.
        5 => {
            bytes[0] = 0x40;
            bytes[1..9].copy_from_slice(&connection.get().to_be_bytes());
        }
        _ => bytes[0] = 0x40,
    }
    bytes
}

struct World {
    now: Time,
    caller: Caller<Transport>,
    listener: Listener<Transport>,
    flights: Flights<(SocketAddr, SocketAddr, Vec<u8>)>,
    sequence: u64,
    /// The bytes that arrived from an address and that were sent to it.
    traffic: BTreeMap<SocketAddr, (usize, usize)>,
    received: Vec<Delivery<Bytes>>,
}

impl World {
    fn new() -> Self {
        let seed = Seed::new(1);
        let mut randomness = Randomness::seeded(seed);
        let mut parameters = Vec::new();
        options()
            .parameters()
            .encode(&mut parameters)
            .expect("our own");
        let key = || PresharedKey::new([1; 32]);
        let caller = Caller::new(
            START,
            listening(),
            CallerConfig::new(CallerCredentials::Shared(key()), parameters.clone()),
            Transport::opener(options(), seed.derive("caller")),
            randomness.split(),
        );
        let listener = Listener::new(
            START,
            ListenerConfig::new(ListenerCredentials::Shared(key()), parameters),
            Transport::opener(options(), seed.derive("listener")),
            randomness.split(),
        );
        Self {
            now: START,
            caller: caller.expect("valid"),
            listener: listener.expect("valid"),
            flights: Flights::new(),
            sequence: 0,
            traffic: BTreeMap::new(),
            received: Vec::new(),
        }
    }

    fn fly(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        self.sequence += 1;
        let at = (self.now + DELAY, self.sequence);
        self.flights.insert(at, (from, to, bytes));
    }

    fn connection(&self) -> Option<ConnectionId> {
        self.listener.ids().next()
    }

    fn run_for(&mut self, span: Span) {
        self.run(self.now + span);
    }

    fn submit(&mut self) {
        let now = self.now;
        let section = Outgoing {
            stream: StreamId(0),
            importance: Importance(1),
            source_time: now,
            deadline: now + LATENCY,
            needs: None,
            payload: Bytes::from(vec![7; 10_000]),
        };
        let session = self.caller.session_mut().expect("open");
        let transport = session.protocol_mut();
        transport.submit(now, section).expect("room");
    }
}

impl common::World for World {
    type Flight = (SocketAddr, SocketAddr, Vec<u8>);

    fn parts(&mut self) -> Parts<'_, Self::Flight> {
        Parts {
            now: &mut self.now,
            flights: &mut self.flights,
            caller: &mut self.caller,
            listener: &mut self.listener,
        }
    }

    fn arrive(&mut self, (from, to, mut bytes): Self::Flight) {
        if to == listening() {
            self.traffic.entry(from).or_default().0 += bytes.len();
            self.listener
                .handle_datagram(self.now, from, Ecn::Capable0, &mut bytes);
        } else {
            self.caller
                .handle_datagram(self.now, from, Ecn::Capable0, &mut bytes);
        }
    }

    fn settle(&mut self) {
        if let Some(id) = self.connection()
            && let Some(core) = self.listener.protocol_mut(id)
        {
            while let Some(delivery) = core.poll_delivery(self.now) {
                self.received.extend(delivery.each());
            }
            while core.poll_event(self.now).is_some() {}
            self.listener.make_ready(id);
        }
        let mut out = Vec::new();
        while let Some(sent) = self.caller.poll_transmit(self.now, &mut out) {
            let bytes = core::mem::take(&mut out);
            self.fly(legitimate(), sent.to, bytes);
        }
        while let Some(sent) = self.listener.poll_transmit(self.now, &mut out) {
            let bytes = core::mem::take(&mut out);
            self.traffic.entry(sent.to).or_default().1 += bytes.len();
            // Strangers receive nothing.
            if sent.to == legitimate() {
                self.fly(listening(), sent.to, bytes);
            }
        }
        while self.caller.poll_event().is_some() {}
        while self.listener.poll_event().is_some() {}
    }
}

#[test]
fn ten_thousand_strangers_gain_nothing_and_delay_nothing() {
    let mut world = World::new();
    world.run_for(Span::from_secs(1));
    let connection = world.connection().expect("the legitimate caller is in");
    world.traffic.clear();
    // The stream alone for a second, then with the strangers.
    let mut strangers = 0_u32;
    let mut submitted = 0;
    let mut before = 0;
    for millisecond in 0..4_000_u32 {
        if millisecond == 1_000 {
            before = held();
        }
        if millisecond % 40 == 0 {
            world.submit();
            submitted += 1;
        }
        if (1_000..3_000).contains(&millisecond) {
            for _ in 0..5 {
                let [_, high, middle, low] = strangers.to_be_bytes();
                let from = SocketAddr::from(([10, high, middle, low], 9));
                world.fly(from, listening(), datagram(strangers, connection));
                strangers += 1;
            }
        }
        world.run_for(Span::from_millis(1));
    }
    world.run_for(Span::from_secs(1));
    assert_eq!((strangers, submitted), (10_000, 100));

    // Each section of the legitimate caller arrives whole and on time.
    assert_eq!(world.received.len(), submitted);
    for delivery in &world.received {
        assert!(matches!(delivery, Delivery::Section(section) if !section.is_late));
    }
    assert_eq!(world.listener.connections(), 1);
    assert_eq!(world.listener.half_open(), 0);

    // Each reply is shorter than the packet that it answers.
    world.traffic.remove(&legitimate());
    assert_eq!(world.traffic.len(), 10_000);
    let mut answered = [0; 7];
    for stranger in 0..10_000_u32 {
        let [_, high, middle, low] = stranger.to_be_bytes();
        let from = SocketAddr::from(([10, high, middle, low], 9));
        let (received, sent) = world.traffic[&from];
        assert!(sent * 5 < received, "{sent} bytes for {received}");
        answered[(stranger % 7) as usize] += usize::from(sent > 0);
    }
    // By kind: a Retry, another Retry, the versions, nothing for a packet that is too short, and a
    // Reset for an unknown connection if no other reply waits.
    let each = |kind: usize| 10_000 / 7 + usize::from(kind < 10_000 % 7);
    assert_eq!(answered[..6], [each(0), each(1), each(2), 0, 0, 0]);
    assert!((1..=each(6)).contains(&answered[6]), "{}", answered[6]);

    // The memory of this test and of sections that wait for the application is not the listener's.
    let traffic = core::mem::take(&mut world.traffic);
    let taken = core::mem::take(&mut world.received);
    drop((traffic, taken));
    let grown = held() - before;
    assert!(grown < 200_000, "{grown} bytes");
}

/// The only reply of a listener, after a packet from this address.
fn replied(
    listener: &mut Listener<Transport>,
    now: Time,
    from: SocketAddr,
    packet: &[u8],
) -> Vec<u8> {
    let mut packet = packet.to_vec();
    listener.handle_datagram(now, from, Ecn::NotCapable, &mut packet);
    let mut reply = Vec::new();
    listener
        .poll_transmit(now, &mut reply)
        .map_or_else(Vec::new, |_| reply)
}

fn listener(credentials: ListenerCredentials) -> Listener<Transport> {
    let mut parameters = Vec::new();
    let own = options().parameters();
    own.encode(&mut parameters).expect("our own");
    let seed = Seed::new(1);
    let config = ListenerConfig::new(credentials, parameters);
    let opener = Transport::opener(options(), seed);
    Listener::new(START, config, opener, Randomness::seeded(seed)).expect("valid")
}

/// Strangers with valid cookies cause key exchanges. The budget counts them by network in tables of
/// a fixed size.
#[test]
fn the_budget_takes_no_memory_however_many_networks_call() {
    let mut listener = listener(ListenerCredentials::Shared(PresharedKey::new([1; 32])));
    let mut now = START;
    let mut before = 0;
    for stranger in 0..60_000_u32 {
        let [_, high, middle, low] = (stranger * 256).to_be_bytes();
        let from = SocketAddr::from(([10 + high, middle, low, 1], 9));
        let retry = replied(&mut listener, now, from, &first_packet(stranger, &[]));
        let Ok(Packet::Retry(retry)) = header::decode(&retry) else {
            panic!("{stranger}: {retry:?}");
        };
        let _ = replied(
            &mut listener,
            now,
            from,
            &first_packet(stranger, retry.cookie),
        );
        while listener.poll_event().is_some() {}
        now += Span::from_micros(400);
        if stranger == 1_000 {
            before = held();
        }
    }
    let statistics = listener.statistics();
    assert!(statistics.refused > 40_000, "{statistics:?}");
    let grown = held() - before;
    assert!(grown < 20_000, "{grown} bytes");
}

/// Callers that prove themselves and leave: their tickets are kept while they are valid and no
/// longer.
#[test]
fn tickets_of_closed_connections_are_forgotten() {
    let mut listener = listener(ListenerCredentials::Insecure);
    let mut parameters = Vec::new();
    let own = options().parameters();
    own.encode(&mut parameters).expect("our own");
    let mut randomness = Randomness::seeded(Seed::new(2));
    let mut now = START;
    let mut held_at = Vec::new();
    // Ten a second, each half open for 5 s, with a ticket that is valid for 16 s.
    for call in 0..1_200_u32 {
        let mut caller = Caller::new(
            now,
            listening(),
            CallerConfig::new(CallerCredentials::Insecure, parameters.clone()),
            Transport::opener(options(), Seed::new(3)),
            randomness.split(),
        )
        .expect("valid");
        let from = SocketAddr::from(([10, 0, (call >> 4) as u8, 1], 9));
        let mut out = Vec::new();
        // An Initial, another with the cookie, and a Confirm packet.
        for _ in 0..3 {
            out.clear();
            caller.poll_transmit(now, &mut out).expect("a message");
            let mut reply = replied(&mut listener, now, from, &out);
            caller.handle_datagram(now, listening(), Ecn::NotCapable, &mut reply);
        }
        assert!(caller.session().is_some(), "{call}");
        drop(caller);
        now += Span::from_millis(100);
        listener.on_timer(now);
        while listener.poll_event().is_some() {}
        if call % 400 == 399 {
            held_at.push(held());
        }
    }
    assert_eq!(listener.half_open(), 49);
    assert_eq!(listener.statistics().given_up, 1_151);
    // A ticket takes some 20 bytes, so 800 tickets would take 16,000.
    let grown = held_at[2] - held_at[0];
    assert!(grown < 4_000, "{grown} bytes");
}

/// The same with sockets: each stranger has its own address in 127.0.0.0/8.
#[tokio::test]
async fn strangers_at_the_socket_do_not_disturb_a_stream() {
    const SECTIONS: u64 = 400;
    let endpoint = Endpoint::bind(([127, 0, 0, 1], 0).into(), options()).expect("a free port");
    let address = endpoint.local_address();
    let (caller, listener) = soon(opened(connect(address, options()), &endpoint)).await;
    let strangers = std::thread::spawn(move || {
        let mut answers = 0;
        let mut reply = [0; 65_535];
        for batch in 0..20_u8 {
            let sockets: Vec<UdpSocket> = (1..=100)
                .map(|host| {
                    UdpSocket::bind(SocketAddr::from(([127, 7, batch, host], 0))).expect("loopback")
                })
                .collect();
            for (stranger, socket) in (0..).zip(&sockets) {
                // Noise of every length up to the maximum, and one packet that elicits a reply.
                for length in [0, 1, 13, 1_199, 65_507] {
                    let noise: Vec<u8> = (0..length).map(|at: usize| (at * 37) as u8).collect();
                    socket.send_to(&noise, address).expect("loopback takes it");
                }
                let first = first_packet(u32::from(batch) * 100 + stranger, &[]);
                socket.send_to(&first, address).expect("loopback takes it");
            }
            for socket in &sockets {
                let patience = Some(Duration::from_secs(2));
                socket.set_read_timeout(patience).expect("a timeout");
                let mut received = 0;
                // A flood may fill the system's buffers, so some strangers get no reply.
                if let Ok(length) = socket.recv(&mut reply) {
                    answers += 1;
                    received += length;
                }
                socket.set_nonblocking(true).expect("a mode");
                while let Ok(length) = socket.recv(&mut reply) {
                    received += length;
                }
                assert!(received <= 1_200, "{received} bytes for a first packet");
            }
        }
        answers
    });
    let send = async {
        for section in 0..SECTIONS {
            let payload = Bytes::from(vec![section as u8; 5_000]);
            let section = Section::new(payload).deadline(Duration::MAX);
            caller.send(section).await.expect("room");
        }
        caller.finish().await.expect("all is settled");
    };
    let receive = async {
        for expected in 0..SECTIONS {
            let item = listener.recv().await.expect("a section");
            let section = item.into_section().expect("no gap");
            assert!(section.payload.iter().all(|&byte| byte == expected as u8));
        }
    };
    tokio::join!(send, receive);
    let answers = tokio::task::spawn_blocking(move || strangers.join());
    let answers = answers.await.expect("it ran").expect("no stranger objects");
    assert!(answers > 0, "some were answered");
    assert!(endpoint.stats().connections <= 1);
}

/// A peer that acknowledges nothing makes sections wait. Their records take the memory that the
/// endpoint's budget counts for them.
#[test]
fn records_in_a_send_buffer_take_what_they_count() {
    const SECTIONS: u64 = 1_000;
    let peer = Parameters::default();
    let mut transport =
        Transport::open(START, Role::Listener, &options(), 57, peer, Seed::new(1)).unwrap();
    let before = held();
    let mut needs = None;
    for _ in 0..SECTIONS {
        let section = Outgoing {
            stream: StreamId(0),
            importance: Importance(1),
            source_time: START,
            deadline: START + Span::from_secs(60),
            needs,
            payload: Bytes::from(vec![1]),
        };
        needs = Some(transport.submit(START, section).expect("room"));
    }
    let each = (held() - before) as u64 / SECTIONS;
    assert!((RECORD / 2..=RECORD).contains(&each), "{each}");
}
