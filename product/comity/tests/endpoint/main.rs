//! Connections over loopback sockets.

mod addresses;
mod closing;
mod memory;
mod roaming;
mod strangers;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use comity::causes::RefusedCaller;
use comity::credentials::{PresharedKey, StaticKey};
use comity::parts::SEALING;
use comity::{
    BindError, CloseCode, CloseReason, Config, ConfigBuilder, ConfigError, ConnectError,
    Connection, Deliver, Endpoint, EndpointEvent, Event, Fate, GapReason, Item, Reason,
    Reliability, Section, SectionId, SendError, StreamId, connect,
};

use crate::common::{CALL_TIMEOUT, opened, soon};

fn options() -> ConfigBuilder {
    Config::builder()
        .preshared_key(PresharedKey::new([7; 32]))
        .deliver(Deliver::Early)
        .connect_timeout(CALL_TIMEOUT)
}

fn loopback() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

async fn pair(caller: Config, listener: Config) -> (Connection, Connection, Endpoint) {
    let endpoint = Endpoint::bind(loopback(), listener).unwrap();
    let address = endpoint.local_address();
    let (called, accepted) = opened(connect(address, caller), &endpoint).await;
    (called, accepted, endpoint)
}

/// `length` bytes that identify their section.
fn payload(section: u64, length: usize) -> Vec<u8> {
    (0..length as u64)
        .map(|at| (at ^ (at >> 8) ^ section.wrapping_mul(37)) as u8)
        .collect()
}

#[tokio::test]
async fn a_clean_transfer_is_exact_in_both_directions() {
    let options = options().build().unwrap();
    let (caller, listener, _endpoint) = pair(options.clone(), options).await;
    let lengths = |section: u64| (section * section * 97 % 60_000 + 1) as usize;
    const SECTIONS: u64 = 200;
    let send = async |connection: &Connection| {
        for section in 0..SECTIONS {
            let given = Section::new(payload(section, lengths(section))).deadline(Duration::MAX);
            assert_eq!(connection.send(given).await.unwrap(), SectionId(section));
        }
        connection.finish_stream(StreamId(0)).unwrap();
    };
    let receive = async |connection: &Connection| {
        for section in 0..SECTIONS {
            let item = connection.recv().await.unwrap();
            assert_eq!(item.id(), SectionId(section));
            let received = item.into_section().expect("no gap");
            assert!(received.payload == payload(section, lengths(section)));
            assert!(!received.is_late);
        }
    };
    tokio::join!(
        send(&caller),
        send(&listener),
        receive(&caller),
        receive(&listener)
    );
    let statistics = caller.stats();
    assert_eq!(statistics.sent.sections.submitted, SECTIONS);
    assert_eq!(statistics.received.on_time_sections, SECTIONS);
    assert_eq!(statistics.sent.counters.late_bytes, 0);
    assert!(caller.cipher().is_some());
}

#[tokio::test]
async fn finish_delivers_everything_and_both_ends_know_it() {
    let options = options().build().unwrap();
    let (caller, listener, _endpoint) = pair(options.clone(), options).await;
    for section in 0..50 {
        let given = Section::new(payload(section, 30_000)).deadline(Duration::MAX);
        caller.send(given).await.unwrap();
    }
    let receive = async {
        let mut sections = 0;
        while let Some(item) = listener.recv().await {
            assert_eq!(
                item.into_section().unwrap().payload,
                payload(sections, 30_000)
            );
            sections += 1;
        }
        sections
    };
    let (finished, received) = tokio::join!(caller.finish(), receive);
    assert_eq!(finished, Ok(()));
    assert_eq!(received, 50);
    let end = listener.closed().await;
    assert!(end.is_clean(), "{end}");
    assert!(matches!(
        end,
        CloseReason::Peer {
            code: CloseCode::DONE,
            ..
        }
    ));
    let refused = caller.try_send(Section::new("more")).unwrap_err();
    assert!(matches!(
        refused,
        SendError::Closed(CloseReason::Local { .. })
    ));
    assert_eq!(caller.stats().sent.sections.acknowledged, 50);
}

#[tokio::test]
async fn a_wrong_key_is_reported() {
    let endpoint = Endpoint::bind(loopback(), options().build().unwrap()).unwrap();
    let wrong = options_with([8; 32]).build().unwrap();
    let error = connect(endpoint.local_address(), wrong).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{}: refused the call, as with a wrong key; or the listener expects a passphrase or no \
             protection, or somebody on the path forged the refusal",
            endpoint.local_address()
        )
    );
    // One refusal for each first message of the caller.
    assert!((1..10).contains(&endpoint.stats().callers_refused));
}

fn options_with(key: [u8; 32]) -> ConfigBuilder {
    Config::builder().preshared_key(PresharedKey::new(key))
}

#[tokio::test]
async fn a_port_in_use_is_reported() {
    let options = options().build().unwrap();
    let endpoint = Endpoint::bind(loopback(), options.clone()).unwrap();
    let address = endpoint.local_address();
    let error = Endpoint::bind(address, options).unwrap_err();
    assert!(matches!(error, BindError::InUse { address: found } if found == address));
}

#[tokio::test]
async fn an_address_without_a_listener_is_reported() {
    let vacant = UdpSocket::bind(loopback()).unwrap();
    let address = vacant.local_addr().unwrap();
    drop(vacant);
    let error = connect(address, options().build().unwrap())
        .await
        .unwrap_err();
    assert!(
        matches!(&error, ConnectError::Unreachable { address: found, .. } if *found == address),
        "{error}"
    );
}

#[tokio::test]
async fn two_hundred_connections_share_a_socket() {
    const CONNECTIONS: u64 = 200;
    let options = options().max_waiting(256).build().unwrap();
    let endpoint = Endpoint::bind(loopback(), options.clone()).unwrap();
    let callers = Endpoint::for_calls(loopback(), options).unwrap();
    let address = endpoint.local_address();
    let calls = (0..CONNECTIONS).map(|number| {
        let callers = callers.clone();
        tokio::spawn(async move {
            let connection = callers.connect(address).await.unwrap();
            let given = Section::new(number.to_be_bytes().to_vec()).deadline(Duration::MAX);
            connection.send(given).await.unwrap();
            connection.finish().await.unwrap();
        })
    });
    let calls: Vec<_> = calls.collect();
    let mut numbers = Vec::new();
    for _ in 0..CONNECTIONS {
        let connection = soon(endpoint.accept()).await.unwrap();
        let section = connection.recv().await.unwrap().into_section().unwrap();
        let bytes: [u8; 8] = section.payload.as_ref().try_into().unwrap();
        numbers.push(u64::from_be_bytes(bytes));
        assert!(connection.recv().await.is_none());
    }
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..CONNECTIONS));
    for call in calls {
        call.await.unwrap();
    }
}

#[tokio::test]
async fn a_full_listener_is_reported() {
    let options = options().max_connections(1);
    let hasty = options.clone().connect_timeout(Duration::from_secs(2));
    let (options, hasty) = (options.build().unwrap(), hasty.build().unwrap());
    let (_caller, accepted, endpoint) = pair(options.clone(), options.clone()).await;
    let error = connect(endpoint.local_address(), hasty).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("reached its limit of connections"),
        "{error}"
    );
    drop(accepted);
}

#[tokio::test]
async fn a_receiver_that_never_reads_holds_at_most_its_buffer() {
    const BUFFER: u64 = 1 << 20;
    let options = options()
        .receive_buffer(BUFFER)
        .send_buffer(2 << 20)
        .build()
        .unwrap();
    let (caller, listener, _endpoint) = pair(options.clone(), options).await;
    // The sender stops at the latest when both buffers are full.
    let mut stopped: u64 = 0;
    let mut section = 0;
    loop {
        match caller.try_send(Section::new(payload(section, 50_000)).deadline(Duration::MAX)) {
            Ok(id) => {
                assert_eq!(id, SectionId(section));
                section += 1;
                stopped += 50_000;
                assert!(stopped < 100 * BUFFER, "nothing stops the sender");
            }
            Err(SendError::Full { .. }) => {
                let room = caller.room(50_000);
                let room = tokio::time::timeout(Duration::from_secs(3), room);
                if room.await.is_err() {
                    break;
                }
            }
            Err(other) => panic!("{other}"),
        }
    }
    let most = BUFFER + (2 << 20) + BUFFER / 4 + 3 * 50_000;
    assert!(stopped <= most, "{stopped} of {most} bytes were taken");
    assert!(stopped >= 2 << 20);
    assert!(listener.stats().received.buffered_bytes <= BUFFER);
    // It continues without loss when the receiver reads.
    for expected in 0..section {
        let item = listener.recv().await.unwrap();
        assert_eq!(item.id(), SectionId(expected));
        assert!(matches!(item, Item::Section(_)));
    }
}

/// All tasks that wait for room wake up, even one whose section never fits.
#[tokio::test]
async fn a_task_can_wait_for_room_without_a_section() {
    let buffer = 100_000;
    let sending = options().send_buffer(buffer).build().unwrap();
    let (caller, listener, _endpoint) = pair(sending, options().build().unwrap()).await;
    caller.room(buffer as usize).await;
    caller.room(buffer as usize + 1).await;
    for section in 0..20 {
        caller.room(60_000).await;
        // Two sections do not fit: there is room for the next one after this one has arrived.
        let given = Section::new(payload(section, 60_000)).deadline(Duration::MAX);
        let id = caller.try_send(given).expect("room");
        assert_eq!(id, SectionId(section));
        tokio::join!(caller.room(40_001), caller.room(50_000), async {
            let received = listener.recv().await.unwrap().into_section();
            assert!(received.unwrap().payload == payload(section, 60_000));
        });
    }
    caller.close(CloseCode::DONE, "");
    caller.closed().await;
    caller.room(1).await;
}

/// Carries datagrams between one caller and a listener, until it is cut.
struct Relay {
    address: SocketAddr,
    cut: Arc<AtomicBool>,
}

impl Relay {
    fn to(listener: SocketAddr) -> Self {
        let socket = UdpSocket::bind(loopback()).unwrap();
        let address = socket.local_addr().unwrap();
        let cut = Arc::new(AtomicBool::new(false));
        let is_cut = cut.clone();
        std::thread::spawn(move || {
            let mut caller = None;
            let mut buffer = [0; 65_535];
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                if is_cut.load(Ordering::Relaxed) {
                    return;
                }
                let to = if from == listener {
                    caller
                } else {
                    caller = Some(from);
                    Some(listener)
                };
                if let Some(to) = to {
                    socket.send_to(&buffer[..length], to).unwrap();
                }
            }
        });
        Self { address, cut }
    }
}

#[tokio::test]
async fn a_silent_peer_ends_the_connection() {
    let brief = options()
        .idle_timeout(Duration::from_millis(300))
        .keep_alive(Duration::from_millis(100));
    let options = brief.build().unwrap();
    let endpoint = Endpoint::bind(loopback(), options.clone()).unwrap();
    let relay = Relay::to(endpoint.local_address());
    let (caller, listener) = opened(connect(relay.address, options), &endpoint).await;
    relay.cut.store(true, Ordering::Relaxed);
    assert_eq!(
        caller.closed().await,
        CloseReason::Idle {
            after: Duration::from_millis(300)
        }
    );
    assert!(caller.recv().await.is_none());
    assert_eq!(
        caller.closed().await.to_string(),
        "no packet from the peer for 300 ms"
    );
    drop(listener);
}

#[tokio::test]
async fn statistics_cover_both_ends_and_pacing() {
    let row = comity_congestion::table::find("fixed").unwrap();
    let parameters = comity_congestion::table::Parameters::new()
        .with("rate", row.parse("rate", "40Mbps").unwrap());
    let options = options()
        .controller("fixed")
        .controller_parameters(parameters)
        .build()
        .unwrap();
    let (caller, listener, _endpoint) = pair(options.clone(), options).await;
    let mut events = caller.events();
    // 1 MB at 40 Mb/s take 0.2 s, in which the receiver reports at least once.
    for section in 0..20 {
        let given = Section::new(payload(section, 50_000)).deadline(Duration::MAX);
        caller.send(given).await.unwrap();
    }
    for _ in 0..20 {
        assert!(listener.recv().await.unwrap().into_section().is_some());
    }
    caller.finish().await.unwrap();
    let statistics = caller.stats();
    assert_eq!(statistics.sent.bytes.acknowledged, 1_000_000);
    let peer = statistics.peer.expect("the peer has reported");
    assert!(peer.section_bytes > 0 && peer.section_bytes <= 1_000_000);
    // All except the first few packets were paced.
    let packets = statistics.sent.counters.packets;
    let paced = statistics.pacing.packets;
    assert!(
        (packets / 2..=packets).contains(&paced),
        "{paced} of {packets}"
    );
    assert!(statistics.pacing.p50_us <= statistics.pacing.p99_us);
    assert!(statistics.pacing.p99_us <= statistics.pacing.max_us * 1.01);
    let json = serde_json::to_value(&statistics).unwrap();
    assert_eq!(json["sent"]["sections"]["acknowledged"], 20);
    assert!(json["path"]["msRTT"].as_f64().unwrap() > 0.0);
    let mut outcomes = 0;
    while let Some(event) = events.next().await {
        outcomes += usize::from(
            matches!(event, Event::Outcome(outcome) if outcome.fate == Fate::Acknowledged),
        );
    }
    assert_eq!(outcomes, 20);
}

/// A controller with a half at the receiver: the sender requests the peer's meter by name, tags and
/// reports cross real sockets, and everything arrives in both directions.
#[tokio::test]
async fn a_controller_with_a_meter_runs_between_sockets() {
    exchange("real").await;
}

/// A controller with its own calendar, which measures pairs of packets by their arrival times at
/// the peer.
#[tokio::test]
async fn a_controller_that_measures_pairs_runs_between_sockets() {
    exchange("libra").await;
}

/// Controllers that set the gaps between packets.
#[tokio::test]
async fn controllers_with_gap_pacing_run_between_sockets() {
    exchange("iftp").await;
    exchange("psp").await;
}

/// As in their papers, nothing is retransmitted: a lost section is a gap, and all others are whole.
#[tokio::test]
async fn controllers_with_gap_pacing_run_without_retransmissions() {
    const SECTIONS: u64 = 400;
    for controller in ["iftp", "psp"] {
        let options = options().controller(controller).build().unwrap();
        let (caller, listener, _endpoint) = pair(options.clone(), options).await;
        let give = async {
            for section in 0..SECTIONS {
                let given = Section::new(payload(section, 5_000)).deadline(Duration::MAX);
                caller.send(given).await.unwrap();
            }
            caller.finish().await.unwrap();
        };
        let take = async {
            let (mut whole, mut missing) = (0, 0);
            while whole + missing < SECTIONS {
                let section = whole + missing;
                match listener.recv().await.unwrap() {
                    Item::Section(received) => {
                        assert_eq!(received.id, SectionId(section), "{controller}");
                        assert!(received.payload == payload(section, 5_000));
                        whole += 1;
                    }
                    Item::Gap(gap) => {
                        assert_eq!(gap.id, SectionId(section), "{controller}");
                        missing += gap.count;
                    }
                }
            }
            (whole, missing)
        };
        let ((), (whole, missing)) = tokio::join!(give, take);
        let sent = caller.stats().sent;
        assert_eq!(whole + missing, SECTIONS);
        assert_eq!(sent.counters.retransmitted_bytes, 0, "{controller}");
        assert!(whole > SECTIONS / 2, "{controller}: {whole} of {SECTIONS}");
    }
}

#[tokio::test]
async fn controllers_with_rate_pacing_run_between_sockets() {
    exchange("rap").await;
    exchange("tfrc").await;
}

/// Two megabytes in each direction under this controller.
async fn exchange(controller: &str) {
    let options = options()
        .controller(controller)
        .reliability(Reliability::Timeline)
        .build()
        .unwrap();
    let (caller, listener, _endpoint) = pair(options.clone(), options).await;
    let send = async |connection: &Connection| {
        for section in 0..40 {
            let given = Section::new(payload(section, 50_000)).deadline(Duration::MAX);
            connection.send(given).await.unwrap();
        }
        connection.finish_stream(StreamId(0)).unwrap();
    };
    let receive = async |connection: &Connection| {
        for section in 0..40 {
            let received = connection.recv().await.unwrap().into_section();
            assert!(received.unwrap().payload == payload(section, 50_000));
        }
    };
    tokio::join!(
        send(&caller),
        send(&listener),
        receive(&caller),
        receive(&listener)
    );
    caller.finish().await.unwrap();
    assert!(listener.closed().await.is_clean());
}

/// The peer learns the reliability of the controller's paper or the configured one, in either order
/// of the setters.
#[test]
fn a_controller_whose_paper_retransmits_nothing_retransmits_nothing() {
    for (controller, usual) in [("steady", "Timeline"), ("iftp", "None"), ("psp", "None")] {
        let learned = |builder: ConfigBuilder| {
            let options = builder.build().unwrap();
            format!("{:?}", options.parameters().reliability)
        };
        assert_eq!(learned(options().controller(controller)), usual);
        for chosen in [Reliability::Timeline, Reliability::None, Reliability::Full] {
            let before = options().reliability(chosen).controller(controller);
            let behind = options().controller(controller).reliability(chosen);
            assert_eq!(learned(before), format!("{chosen:?}"), "{controller}");
            assert_eq!(learned(behind), format!("{chosen:?}"), "{controller}");
        }
    }
}

#[tokio::test]
async fn invalid_options_are_refused_with_the_reason() {
    let no_credentials = Config::builder().build().unwrap_err();
    assert!(matches!(no_credentials, ConfigError::NoCredentials));
    let two = options().insecure().build().unwrap_err();
    assert_eq!(
        two.to_string(),
        "credentials: both a pre-shared key and insecure are set; expected only one of them"
    );
    let latency = options().latency(Duration::ZERO).build().unwrap_err();
    assert_eq!(
        latency.to_string(),
        "latency: is 0s; expected a time from 1ms to 3600s"
    );
    let own = StaticKey::new([3; 32]);
    let one_way = Config::builder().static_key(own).build().unwrap();
    let call = connect(loopback(), one_way.clone()).await.unwrap_err();
    assert!(matches!(call, ConnectError::Config(_)), "{call}");
    let listen = Endpoint::bind(loopback(), one_way).unwrap_err();
    assert_eq!(
        listen.to_string(),
        "static key: the list of accepted keys is missing; it is needed to listen"
    );
}

#[tokio::test]
async fn dropped_calls_lose_nothing_and_send_nothing() {
    let sender = options().send_buffer(65_536).build().unwrap();
    let (caller, listener, _endpoint) = pair(sender, options().build().unwrap()).await;
    let given = |section| Section::new(payload(section, 30_000)).deadline(Duration::MAX);
    // Nothing has been sent, so this section is dropped with certainty.
    tokio::select! {
        biased;
        item = listener.recv() => panic!("{item:?} from nowhere"),
        () = std::future::ready(()) => {}
    }
    // A call that was polled once has sent either its section or nothing. The next number shows
    // which.
    let mut next = 0;
    while next < 60 {
        tokio::select! {
            biased;
            sent = caller.send(given(next)) => {
                assert_eq!(sent, Ok(SectionId(next)));
                next += 1;
            }
            () = std::future::ready(()) => tokio::task::yield_now().await,
        }
    }
    let receive = async {
        let mut received = 0;
        loop {
            let item = tokio::select! {
                biased;
                item = listener.recv() => item,
                () = std::future::ready(()) => {
                    tokio::task::yield_now().await;
                    continue;
                }
            };
            let Some(item) = item else { break };
            assert_eq!(item.id(), SectionId(received));
            assert!(item.into_section().unwrap().payload == payload(received, 30_000));
            received += 1;
        }
        received
    };
    let (finished, received) = soon(async { tokio::join!(caller.finish(), receive) }).await;
    assert_eq!((finished, received), (Ok(()), 60));
    // A call without an answer also ends with the endpoint.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let endpoint = Endpoint::for_calls(loopback(), options().build().unwrap()).unwrap();
    tokio::select! {
        biased;
        called = endpoint.connect(silent.local_addr().unwrap()) => panic!("{called:?}"),
        () = std::future::ready(()) => {}
    }
    soon(endpoint.close()).await;
}

#[tokio::test]
async fn skipped_sections_and_their_dependents_are_gaps() {
    let options = options().latency(Duration::from_secs(20)).build().unwrap();
    let (caller, listener, _endpoint) = pair(options.clone(), options).await;
    let stream = StreamId(3);
    assert_eq!(caller.skip(stream, Reason::Cancelled), Ok(SectionId(0)));
    assert_eq!(caller.skip(stream, Reason::Shed), Ok(SectionId(1)));
    let given = Section::new("here").stream(stream);
    caller
        .send(given.clone().needs(SectionId(0)))
        .await
        .unwrap();
    caller.send(given).await.unwrap();
    let receive = async {
        let mut items = Vec::new();
        while let Some(item) = listener.recv().await {
            match item {
                Item::Section(section) => items.push((section.id.0, None)),
                Item::Gap(gap) => {
                    assert!(gap.partial.is_none(), "nothing of it was sent");
                    items.extend(gap.sections().map(|id| (id.0, Some(gap.reason))));
                }
            }
        }
        items
    };
    let (finished, items) = soon(async { tokio::join!(caller.finish(), receive) }).await;
    assert_eq!(finished, Ok(()));
    let dropped = |reason| Some(GapReason::Dropped(reason));
    assert_eq!(
        items,
        [
            (0, dropped(Reason::Cancelled)),
            (1, dropped(Reason::Shed)),
            (2, dropped(Reason::Dependency)),
            (3, None),
        ]
    );
    let sent = caller.stats().sent;
    let sections = sent.sections;
    assert_eq!(
        (
            sections.cancelled,
            sections.shed,
            sections.dependency,
            sections.acknowledged,
            sections.submitted
        ),
        (1, 1, 1, 1, 4)
    );
    // Only the two submitted sections have bytes.
    assert_eq!(sent.bytes.submitted, 8);
}

#[tokio::test]
async fn nothing_is_acknowledged_before_it_is_accepted() {
    let options = options().build().unwrap();
    let endpoint = Endpoint::bind(loopback(), options.clone()).unwrap();
    let caller = connect(endpoint.local_address(), options).await.unwrap();
    let mut events = caller.events();
    let brief = Section::new(payload(0, 5_000)).deadline(Duration::from_secs(2));
    caller.send(brief).await.unwrap();
    let Some(Event::Outcome(outcome)) = events.next().await else {
        panic!("a section has an outcome");
    };
    assert_eq!(outcome.fate, Fate::ExpiredInNetwork);
    let statistics = caller.stats();
    assert_eq!(statistics.sent.sections.acknowledged, 0);
    assert!(
        statistics
            .peer
            .is_none_or(|peer| peer.complete_sections == 0)
    );
    // Connections that are accepted later are served as well.
    let accepted = soon(endpoint.accept()).await.unwrap();
    let later = Section::new(payload(1, 5_000)).deadline(Duration::MAX);
    caller.send(later).await.unwrap();
    let received = loop {
        let item = accepted.recv().await.unwrap();
        if item.id() == SectionId(1) {
            break item.into_section().unwrap();
        }
    };
    assert_eq!(received.payload, payload(1, 5_000));
    assert_eq!(caller.finish().await, Ok(()));
    assert_eq!(caller.stats().sent.sections.acknowledged, 1);
}

#[tokio::test]
async fn callers_beyond_the_limit_are_refused_until_there_is_room() {
    let listener = options().max_served(1).build().unwrap();
    let endpoint = Endpoint::bind(loopback(), listener).unwrap();
    let address = endpoint.local_address();
    let mut events = endpoint.events();
    let options = options()
        .connect_timeout(Duration::from_secs(20))
        .build()
        .unwrap();
    let (first, accepted) = opened(connect(address, options.clone()), &endpoint).await;
    // Both ends know that they are connected.
    first.send(Section::new("media")).await.unwrap();
    accepted.recv().await.unwrap();
    let second = tokio::spawn(connect(address, options));
    let refused = events.next().await.unwrap();
    assert!(
        matches!(
            refused,
            EndpointEvent::Refused {
                why: RefusedCaller::Busy,
                ..
            }
        ),
        "{refused:?}"
    );
    drop((first, accepted));
    let second = second.await.unwrap().unwrap();
    let accepted = soon(endpoint.accept()).await.unwrap();
    second.send(Section::new("more")).await.unwrap();
    assert!(accepted.recv().await.is_some());
}

#[tokio::test]
async fn stop_receiving_keeps_every_section_that_the_peer_counts() {
    let options = || Config::builder().preshared_key(PresharedKey::new([7; 32]));
    let options = options().latency(Duration::from_secs(20)).build().unwrap();
    let (caller, listener, _endpoint) = pair(options.clone(), options).await;
    let mut events = caller.events();
    for section in 0..40 {
        if section == 20 {
            let first = events.next().await;
            assert!(matches!(first, Some(Event::Outcome(_))), "{first:?}");
            listener.stop_receiving();
        }
        let given = Section::new(payload(section, 3_000));
        caller.send(given).await.unwrap();
    }
    listener.close(CloseCode::DONE, "");
    let (mut whole, mut gaps) = (0, 0);
    while let Some(item) = listener.recv().await {
        assert_eq!(item.id(), SectionId(whole + gaps), "each in its order");
        match item {
            Item::Section(_) => whole += 1,
            Item::Gap(gap) => {
                assert_eq!(gap.reason, GapReason::Closed);
                gaps += gap.count;
            }
        }
    }
    caller.closed().await;
    let sent = caller.stats().sent.sections;
    assert!((1..=20).contains(&whole), "{whole}, {gaps}");
    assert!(sent.acknowledged <= whole, "{sent:?}");
    assert!(sent.acknowledged >= 1, "{sent:?}");
}

/// Datagrams of a handshake have 1,200 bytes, whatever the size of later ones.
#[tokio::test]
async fn every_accepted_datagram_size_carries_sections() {
    for size in [629, 1_029, 1_199, 65_000] {
        let options = options().payload(size - SEALING).build().unwrap();
        let (caller, listener, _endpoint) = pair(options.clone(), options).await;
        let given = Section::new(payload(3, 200_000)).deadline(Duration::MAX);
        caller.send(given).await.unwrap();
        let received = soon(listener.recv()).await.unwrap();
        let received = received.into_section().expect("no gap");
        assert!(received.payload == payload(3, 200_000), "{size}");
        let packets = caller.stats().sent.counters.packets;
        assert!(packets >= u64::from(200_000 / size), "{size}: {packets}");
    }
    for size in [628, 65_001] {
        assert!(options().payload(size - SEALING).build().is_err());
    }
}
