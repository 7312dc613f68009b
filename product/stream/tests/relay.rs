//! Relays between connections over loopback sockets.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use comity::credentials::PresharedKey;
use comity::parts::Time;
use comity::uri::{Host, Role};
use comity::{
    CloseCode, CloseReason, Config, ConfigBuilder, Connection, Deliver, Endpoint, GapReason,
    Importance, Item, Reason, Reliability, Section, SectionId, StreamId, connect,
};
use comity_media::{Entry, LAYOUT_FEATURE, Reader, ReaderConfig, named_sections, section_name};
use comity_stream::{
    Counters, Dialer, Due, Ending, Error, Event, Fanout, FanoutOptions, MediaUnit, Missing,
    MissingReason, Monitor, Observer, Receiver, Reconnect, Redial, Relay, Reports, Source,
    SourceItem, TransportMonitor, kind_of,
};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

fn options() -> ConfigBuilder {
    Config::builder()
        .preshared_key(PresharedKey::new([7; 32]))
        .latency(Duration::from_secs(5))
        .deliver(Deliver::Early)
}

/// Turns a hang into a failure.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), what)
        .await
        .expect("somebody waits for ever")
}

fn listener(config: &Config, observer: Observer) -> (Dialer, SocketAddr) {
    let role = Role::Listener {
        host: Some(Host::Ip([127, 0, 0, 1].into())),
        port: 0,
    };
    let dialer = Dialer::open(&role, config.clone(), Reconnect::No.into(), observer).unwrap();
    let address = dialer.local_address().unwrap();
    (dialer, address)
}

fn caller(address: SocketAddr, config: &Config, redial: Redial, observer: Observer) -> Dialer {
    let role = Role::Caller {
        host: Host::Ip(address.ip()),
        port: address.port(),
        bind: None,
    };
    Dialer::open(&role, config.clone(), redial, observer).unwrap()
}

/// A relay that listens at both ends, its events, and its stop.
struct Running {
    monitor: Monitor,
    /// The addresses to send to and to receive from.
    addresses: [SocketAddr; 2],
    missing: Arc<Mutex<Vec<Missing>>>,
    words: mpsc::UnboundedReceiver<&'static str>,
    stop: oneshot::Sender<()>,
    relay: JoinHandle<Result<Ending, Error>>,
}

impl Running {
    fn new(config: &Config, options: FanoutOptions) -> Self {
        let missing = Arc::new(Mutex::new(Vec::new()));
        let (events_out, words) = mpsc::unbounded_channel();
        let listed = missing.clone();
        let observer = Observer::new(move |event| {
            let word = match event {
                Event::Missing(missing) => {
                    listed.lock().unwrap().push((*missing).clone());
                    "missing"
                }
                Event::Connected(_) => "connected",
                Event::Disconnected(..) => "disconnected",
                Event::LeftBehind { .. } => "left behind",
                _ => return,
            };
            let _ = events_out.send(word);
        });
        let (input, from) = listener(config, observer.clone());
        let (output, to) = listener(config, observer.clone());
        let source = Receiver::new(input, Duration::ZERO);
        let relay = Relay::new(source, Fanout::new(output, options), observer);
        let (stop, stopped) = oneshot::channel();
        let stopped = async {
            if stopped.await.is_err() {
                pending::<()>().await;
            }
        };
        Self {
            monitor: relay.monitor(),
            addresses: [from, to],
            missing,
            words,
            stop,
            relay: tokio::spawn(relay.run(stopped)),
        }
    }

    /// Waits until the relay has reported `word` this many times more.
    async fn waits_for(&mut self, word: &str, times: usize) {
        for _ in 0..times {
            while soon(self.words.recv()).await.expect("the relay is gone") != word {}
        }
    }
}

/// The numbers of whole sections, and the reasons of gaps, until the end.
async fn receive_all(receiver: &Connection) -> Vec<Result<Vec<u8>, GapReason>> {
    let mut items = Vec::new();
    while let Some(item) = soon(receiver.recv()).await {
        match item {
            Item::Section(section) => items.push(Ok(section.payload.to_vec())),
            Item::Gap(gap) => items.extend(gap.sections().map(|_| Err(gap.reason))),
        }
    }
    items
}

#[tokio::test]
async fn one_input_goes_to_many_outputs_with_its_gaps() {
    let config = options().build().unwrap();
    let copies = FanoutOptions {
        max_subscribers: 3,
        ..FanoutOptions::default()
    };
    let mut running = Running::new(&config, copies);
    let [from, to] = running.addresses;
    let mut receivers = Vec::new();
    for _ in 0..3 {
        receivers.push(soon(connect(to, config.clone())).await.unwrap());
    }
    running.waits_for("connected", 3).await;
    let sender = soon(connect(from, config)).await.unwrap();
    soon(sender.send(Section::new(vec![0; 3_000])))
        .await
        .unwrap();
    sender.skip(StreamId(0), Reason::Shed).unwrap();
    let last = Section::new(vec![2; 3_000]).needs(SectionId(0));
    soon(sender.send(last)).await.unwrap();
    let finish = async { soon(sender.finish()).await.unwrap() };
    let [one, two, three] = &receivers[..] else {
        panic!("three of them")
    };
    let (one, two, three, ()) = tokio::join!(
        receive_all(one),
        receive_all(two),
        receive_all(three),
        finish
    );
    // A relay does not shed: behind it, a section that it did not get counts as withdrawn.
    let expected = [
        Ok(vec![0; 3_000]),
        Err(GapReason::Dropped(Reason::Cancelled)),
        Ok(vec![2; 3_000]),
    ];
    for items in [one, two, three] {
        assert_eq!(items, expected);
    }
    assert_eq!(soon(running.relay).await.unwrap().unwrap(), Ending::Done);
    let missing = running.missing.lock().unwrap();
    let [gap] = &missing[..] else {
        panic!("{missing:?}")
    };
    assert_eq!(
        (gap.stream, gap.id, gap.reason),
        (StreamId(0), SectionId(1), MissingReason::Shed)
    );
    let snapshot = running.monitor.snapshot();
    assert_eq!(
        (snapshot.passed.sections(), snapshot.passed.missing()),
        (2, 1)
    );
    let (input, output) = (
        snapshot.input.totals.unwrap(),
        snapshot.output.totals.unwrap(),
    );
    assert_eq!((input.connections, input.on_time, input.gaps), (1, 2, 1));
    // Each receiver has two sections and a skipped number.
    assert_eq!((output.connections, output.submitted), (3, 9));
    assert_eq!(output.acknowledged, 6);
    assert!(snapshot.output.connections.is_empty(), "all are over");
}

/// However many sections a source skips, a relay breaks no limit of the receiver behind it, and the
/// gaps take neither time nor lines: one entry for each run.
#[tokio::test]
async fn a_source_that_skips_any_number_of_sections_harms_nobody_behind_a_relay() {
    let config = options().reliability(Reliability::Full).build().unwrap();
    let running = Running::new(&config, FanoutOptions::default());
    let [from, to] = running.addresses;
    let receiver = soon(connect(to, config.clone())).await.unwrap();
    let sender = soon(connect(from, config)).await.unwrap();
    let runs = [5_000, 1 << 20, 1 << 40];
    let stream = StreamId(0);
    let give = async {
        for (number, run) in (0..).zip(runs) {
            soon(sender.send(Section::new(vec![number; 3_000])))
                .await
                .unwrap();
            sender.skip_run(stream, run, Reason::Cancelled).unwrap();
        }
        for _ in 0..5_000 {
            sender.skip(stream, Reason::Cancelled).unwrap();
        }
        soon(sender.send(Section::new(vec![9; 3_000])))
            .await
            .unwrap();
        soon(sender.finish()).await.unwrap();
    };
    let take = async {
        let (mut whole, mut items, mut next) = (Vec::new(), 0, 0);
        while let Some(item) = soon(receiver.recv()).await {
            assert_eq!(item.id(), SectionId(next), "in order, none left out");
            items += 1;
            next += match item {
                Item::Section(section) => {
                    whole.push(section.payload[0]);
                    1
                }
                Item::Gap(gap) => gap.count,
            };
        }
        (whole, items, next)
    };
    let ((), (whole, items, next)) = tokio::join!(give, take);
    assert!(soon(receiver.closed()).await.is_clean());
    assert_eq!(whole, [0, 1, 2, 9]);
    assert_eq!(next, 4 + runs.iter().sum::<u64>() + 5_000);
    assert!(items < 6_000, "{items} items");
    assert_eq!(soon(running.relay).await.unwrap().unwrap(), Ending::Done);
    let missing = running.missing.lock().unwrap();
    assert!(missing.len() < 6_000, "{} entries", missing.len());
    let counted: u64 = missing.iter().map(|missing| missing.count).sum();
    assert_eq!(counted, next - 4);
    assert_eq!(running.monitor.snapshot().passed.missing(), counted);
}

#[tokio::test]
async fn a_receiver_that_stalls_is_left_and_holds_up_nobody() {
    let config = options()
        .reliability(Reliability::Full)
        .send_buffer(100_000)
        .receive_buffer(100_000)
        .build()
        .unwrap();
    let copies = FanoutOptions {
        max_subscribers: 2,
        ..FanoutOptions::default()
    };
    let mut running = Running::new(&config, copies);
    let [from, to] = running.addresses;
    let reader = soon(connect(to, config.clone())).await.unwrap();
    // It takes less than the reader's send buffer holds. So a reader that waits for a processor is
    // never the one that is left behind.
    let small = options()
        .reliability(Reliability::Full)
        .receive_buffer(65_536)
        .build()
        .unwrap();
    let stalled = soon(connect(to, small)).await.unwrap();
    running.waits_for("connected", 2).await;
    let sender = soon(connect(from, config)).await.unwrap();
    let send = async {
        for number in 0..100_u8 {
            let section = Section::new(vec![number; 10_000]);
            soon(sender.send(section)).await.unwrap();
        }
        soon(sender.finish()).await.unwrap();
    };
    let (items, ()) = tokio::join!(receive_all(&reader), send);
    // The reader has all of a megabyte; the stalled one can hold a few buffers of it.
    assert_eq!(items.len(), 100);
    assert!(items.iter().all(Result::is_ok));
    running.waits_for("left behind", 1).await;
    assert_eq!(soon(running.relay).await.unwrap().unwrap(), Ending::Done);
    let reason = soon(stalled.closed()).await.to_string();
    assert!(reason.contains("too far behind"), "{reason}");
    let unsent = running.monitor.snapshot().output.unsent.unwrap();
    assert!((1..100).contains(&unsent.no_room), "{unsent:?}");
    let missing = running.missing.lock().unwrap();
    assert_eq!(missing.len() as u64, unsent.no_room);
    assert!(
        missing
            .iter()
            .all(|gap| gap.reason == MissingReason::NoRoom)
    );
}

#[tokio::test]
async fn what_did_not_arrive_is_listed_by_its_fate() {
    let config = options().build().unwrap();
    let followed = FanoutOptions {
        reports: Reports::Unarrived,
        ..FanoutOptions::default()
    };
    let mut running = Running::new(&config, followed);
    let [from, to] = running.addresses;
    let receiver = soon(connect(to, config.clone())).await.unwrap();
    running.waits_for("connected", 1).await;
    let sender = soon(connect(from, config)).await.unwrap();
    running.waits_for("connected", 1).await;
    // Nothing is acknowledged any more.
    receiver.stop_receiving();
    let section = Section::new(vec![1; 3_000]).deadline(Duration::from_secs(3));
    soon(sender.send(section)).await.unwrap();
    soon(sender.finish()).await.unwrap();
    let error = soon(running.relay).await.unwrap().unwrap_err();
    assert!(
        matches!(error, Error::NothingArrived { submitted: 1 }),
        "{error}"
    );
    let snapshot = running.monitor.snapshot();
    assert_eq!(
        (snapshot.passed.sections(), snapshot.passed.missing()),
        (1, 0)
    );
    let missing = running.missing.lock().unwrap();
    let [gap] = &missing[..] else {
        panic!("{missing:?}")
    };
    assert_eq!((gap.id, gap.reason), (SectionId(0), MissingReason::Expired));
    assert_eq!((gap.length, gap.missing_bytes), (Some(3_000), Some(3_000)));
}

/// A source of items from a channel.
struct Given(mpsc::UnboundedReceiver<SourceItem>);

impl Source for Given {
    async fn next(&mut self) -> Result<Option<SourceItem>, Error> {
        Ok(self.0.recv().await)
    }

    fn cut(&mut self) {
        self.0.close();
    }

    fn refuse(&mut self, reason: &str) {
        panic!("{reason}");
    }

    async fn close(&mut self, _reason: Option<&str>) {}

    fn counters(&self) -> Counters {
        Counters::of_media(Arc::default(), TransportMonitor::default())
    }
}

/// Two receivers miss the same sections, and some are damaged at the source too.
#[tokio::test]
async fn each_section_is_listed_once_with_its_last_reason() {
    let config = options().build().unwrap();
    let missing: Arc<Mutex<Vec<Missing>>> = Arc::default();
    let (events_out, mut words) = mpsc::unbounded_channel();
    let listed = missing.clone();
    let observer = Observer::new(move |event| {
        match event {
            Event::Missing(missing) => listed.lock().unwrap().push((*missing).clone()),
            Event::Connected(_) => {}
            _ => return,
        }
        let _ = events_out.send(());
    });
    let (output, to) = listener(&config, observer.clone());
    let options = FanoutOptions {
        max_subscribers: 2,
        reports: Reports::Unarrived,
        ..FanoutOptions::default()
    };
    let (give, given) = mpsc::unbounded_channel();
    let relay = Relay::new(Given(given), Fanout::new(output, options), observer);
    let monitor = relay.monitor();
    let relay = tokio::spawn(relay.run(pending()));
    let unit = |id, length, needs: Option<u64>, is_damaged| {
        SourceItem::Unit(MediaUnit {
            stream: StreamId(1),
            id: SectionId(id),
            importance: Importance(1),
            source_time: tokio::time::Instant::now().into_std(),
            due: Due::AfterLatency(Duration::ZERO),
            needs: needs.map(SectionId),
            payload: vec![0xff; length].into(),
            frame: None,
            is_damaged,
        })
    };
    // Nobody is there.
    give.send(unit(0, 100, None, true)).unwrap();
    soon(words.recv()).await.unwrap();
    let mut receivers = Vec::new();
    for _ in 0..2 {
        let receiver = soon(connect(to, config.clone())).await.unwrap();
        soon(words.recv()).await.unwrap();
        receivers.push(receiver);
    }
    give.send(unit(1, 3_000, None, true)).unwrap();
    let at_source = Missing {
        stream: StreamId(1),
        id: SectionId(2),
        count: 1,
        kind: None,
        reason: MissingReason::Source,
        length: None,
        missing_bytes: None,
        source_time: None,
    };
    give.send(SourceItem::Missing(at_source)).unwrap();
    // One without any bytes cannot be sent, nor one that needs it.
    give.send(unit(3, 0, None, false)).unwrap();
    give.send(unit(4, 100, Some(3), true)).unwrap();
    give.send(unit(5, 100, None, false)).unwrap();
    drop(give);
    let (one, two) = tokio::join!(receive_all(&receivers[0]), receive_all(&receivers[1]));
    assert_eq!(one, two);
    assert_eq!(one.iter().filter(|item| item.is_ok()).count(), 2);
    assert_eq!(soon(relay).await.unwrap().unwrap(), Ending::Done);
    let missing = missing.lock().unwrap();
    let mut list: Vec<_> = missing.iter().map(|gap| (gap.id.0, gap.reason)).collect();
    list.sort_unstable();
    let expected = [
        (0, MissingReason::Unconnected),
        (1, MissingReason::Damaged),
        (2, MissingReason::Source),
        (3, MissingReason::Unfit),
        (4, MissingReason::Dependency),
    ];
    assert_eq!(list, expected);
    let passed = monitor.snapshot().passed;
    let damaged = passed.gaps[&MissingReason::Damaged];
    assert_eq!((damaged, passed.missing()), (3, 1), "{passed:?}");
}

#[tokio::test]
async fn a_relay_that_is_stopped_passes_on_what_has_arrived() {
    // Sections that had arrived are waited for as long as the latency.
    let config = options().latency(Duration::from_secs(3)).build().unwrap();
    let mut running = Running::new(&config, FanoutOptions::default());
    let [from, to] = running.addresses;
    let receiver = soon(connect(to, config.clone())).await.unwrap();
    running.waits_for("connected", 1).await;
    let sender = soon(connect(from, config)).await.unwrap();
    soon(sender.send(Section::new(vec![1; 3_000])))
        .await
        .unwrap();
    while sender.stats().sent.sections.acknowledged == 0 {
        tokio::task::yield_now().await;
    }
    running.stop.send(()).unwrap();
    assert_eq!(receive_all(&receiver).await, [Ok(vec![1; 3_000])]);
    assert_eq!(soon(running.relay).await.unwrap().unwrap(), Ending::Stopped);
    assert!(soon(sender.closed()).await.is_clean());
    assert!(running.missing.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_lost_connection_is_dialled_again_as_the_policy_says() {
    let config = options().build().unwrap();
    let endpoint = Endpoint::bind(([127, 0, 0, 1], 0).into(), config.clone()).unwrap();
    let address = endpoint.local_address();
    let dialer = |when| caller(address, &config, quick(when), Observer::default());
    let mut receiver = Receiver::new(dialer(Reconnect::Lost), Duration::ZERO);
    let accept = async || {
        let connection = soon(endpoint.accept()).await.unwrap();
        soon(connection.send(Section::new("hello"))).await.unwrap();
        connection
    };
    for _ in 0..3 {
        let (item, connection) = tokio::join!(soon(receiver.next()), accept());
        assert!(matches!(item.unwrap(), Some(SourceItem::Unit(_))));
        connection.close(CloseCode::APPLICATION, "try again");
    }
    let (item, connection) = tokio::join!(soon(receiver.next()), accept());
    assert!(matches!(item.unwrap(), Some(SourceItem::Unit(_))));
    // A peer that is done is not called again.
    let (item, finished) = tokio::join!(soon(receiver.next()), soon(connection.finish()));
    assert!(item.unwrap().is_none());
    finished.unwrap();
    let side = receiver.counters().side();
    assert_eq!(side.totals.unwrap().connections, 4);

    let mut receiver = Receiver::new(dialer(Reconnect::No), Duration::ZERO);
    let (item, connection) = tokio::join!(soon(receiver.next()), accept());
    assert!(matches!(item.unwrap(), Some(SourceItem::Unit(_))));
    connection.close(CloseCode::APPLICATION, "go away");
    let error = soon(receiver.next()).await.unwrap_err();
    assert!(matches!(&error, Error::Lost(reason) if reason.to_string().contains("go away")));
}

#[tokio::test]
async fn a_receiver_that_always_reconnects_outlasts_its_senders() {
    let config = options().build().unwrap();
    let endpoint = Endpoint::bind(([127, 0, 0, 1], 0).into(), config.clone()).unwrap();
    let address = endpoint.local_address();
    let dialer = caller(
        address,
        &config,
        quick(Reconnect::Always),
        Observer::default(),
    );
    let mut receiver = Receiver::new(dialer, Duration::ZERO);
    for _ in 0..2 {
        let send = async {
            let connection = soon(endpoint.accept()).await.unwrap();
            soon(connection.send(Section::new("hello"))).await.unwrap();
            soon(connection.finish()).await.unwrap();
        };
        let (item, ()) = tokio::join!(soon(receiver.next()), send);
        assert!(matches!(item.unwrap(), Some(SourceItem::Unit(_))));
    }
}

/// A policy with pauses that no test notices.
fn quick(when: Reconnect) -> Redial {
    Redial {
        first_pause: Duration::from_millis(1),
        max_pause: Duration::from_millis(2),
        ..when.into()
    }
}

#[tokio::test]
async fn a_first_call_is_repeated_only_where_the_policy_says_so() {
    let config = options()
        .connect_timeout(Duration::from_millis(300))
        .build()
        .unwrap();
    // Nobody listens there yet.
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let mut once = caller(
        address,
        &config,
        quick(Reconnect::Lost),
        Observer::default(),
    );
    let error = soon(once.connection()).await.unwrap_err();
    assert!(matches!(&error, Error::Call { address: called, .. } if *called == address));
    assert!(error.may_pass());
    let (events_out, mut events_in) = mpsc::unbounded_channel();
    let observer = Observer::new(move |event| {
        if let Event::Redialling { was_connected, .. } = event {
            events_out.send(*was_connected).unwrap();
        }
    });
    let mut always = caller(address, &config, quick(Reconnect::Always), observer);
    tokio::select! {
        connection = always.connection() => panic!("{connection:?}"),
        was_connected = soon(events_in.recv()) => assert_eq!(was_connected, Some(false)),
    }
    let endpoint = Endpoint::bind(address, config).unwrap();
    let (connection, accepted) = tokio::join!(soon(always.connection()), soon(endpoint.accept()));
    assert!(connection.is_ok() && accepted.is_some());
}

#[tokio::test]
async fn a_dropped_relay_closes_its_connections_though_a_monitor_is_kept() {
    let config = options().build().unwrap();
    let mut running = Running::new(&config, FanoutOptions::default());
    let [from, to] = running.addresses;
    let receiver = soon(connect(to, config.clone())).await.unwrap();
    let sender = soon(connect(from, config)).await.unwrap();
    running.waits_for("connected", 2).await;
    let before: Instant = running.monitor.began();
    assert_eq!(running.monitor.source_connections().len(), 1);
    assert_eq!(running.monitor.sink_connections().len(), 1);
    running.relay.abort();
    for connection in [&sender, &receiver] {
        let reason = soon(connection.closed()).await;
        assert!(matches!(reason, CloseReason::Peer { .. }), "{reason}");
    }
    let snapshot = running.monitor.snapshot();
    assert!(snapshot.elapsed_s >= 0.0 && running.monitor.began() == before);
    assert_eq!(snapshot.input.totals.unwrap().connections, 1);
    assert!(snapshot.input.connections.is_empty());
}

/// The sections of the clip, in the order of their times, as a sender reads them.
fn clip() -> Vec<MediaUnit> {
    let mut reader = Reader::new(ReaderConfig {
        layouts: true,
        ..ReaderConfig::default()
    });
    let bytes = include_bytes!("../../../experiments/demo/clip/clip.ts");
    reader.push(bytes).unwrap();
    reader.finish().unwrap();
    let began = tokio::time::Instant::now().into_std();
    let events = std::iter::from_fn(|| reader.poll());
    let units = events.filter_map(|event| match event {
        comity_media::Event::Section(section) => Some(MediaUnit {
            stream: StreamId(section.stream),
            id: SectionId(section.number),
            importance: section.importance,
            source_time: began + section.source_time.saturating_since(Time::ZERO).into(),
            due: Due::AfterLatency(section.deadline.into()),
            needs: section.to_frame().bound_to().map(SectionId),
            frame: Some(section.to_frame()),
            is_damaged: section.is_damaged,
            payload: section.payload,
        }),
        _ => None,
    });
    let mut units: Vec<_> = units.collect();
    units.sort_by_key(|unit| unit.source_time);
    units
}

/// A receiver that comes late gets tables, the announcement of layouts, the layouts so far that its
/// first picture needs, and then that picture, whether sections may be left out or not.
#[tokio::test]
async fn a_late_receiver_gets_what_its_first_picture_needs_before_it() {
    for reliability in [Reliability::Full, Reliability::Timeline] {
        let config = options().reliability(reliability);
        let config = config.features(LAYOUT_FEATURE).build().unwrap();
        let (events_out, mut words) = mpsc::unbounded_channel();
        let observer = Observer::new(move |event| {
            if let Event::Connected(_) = event {
                let _ = events_out.send(());
            }
        });
        let (output, to) = listener(&config, observer.clone());
        let options = FanoutOptions {
            max_subscribers: 2,
            sheds: false,
            ..FanoutOptions::default()
        };
        let (give, given) = mpsc::unbounded_channel();
        let relay = Relay::new(Given(given), Fanout::new(output, options), observer);
        let monitor = relay.monitor();
        let relay = tokio::spawn(relay.run(pending()));
        let early = soon(connect(to, config.clone())).await.unwrap();
        soon(words.recv()).await.unwrap();
        let early = tokio::spawn(async move { receive_all(&early).await });
        let mut units = clip();
        let after = units.split_off(units.len() / 2);
        let before = units.len() as u64;
        for unit in units {
            give.send(SourceItem::Unit(unit)).unwrap();
        }
        while monitor.snapshot().passed.sections() < before {
            tokio::task::yield_now().await;
        }
        let late = soon(connect(to, config)).await.unwrap();
        soon(words.recv()).await.unwrap();
        for unit in after {
            give.send(SourceItem::Unit(unit)).unwrap();
        }
        drop(give);
        let mut items = Vec::new();
        while let Some(item) = soon(late.recv()).await {
            let Item::Section(section) = item else {
                panic!("{item:?}")
            };
            items.push(section);
        }
        let kinds: Vec<_> = items.iter().map(|item| kind_of(&item.payload)).collect();
        let first = kinds.iter().position(|kind| *kind == Some("key"));
        let first = first.expect("a picture");
        assert_eq!(Entry::of(&items[first].payload), Some(Entry::Yes));
        // SDT, PAT, PMT, and the announcement; then what is due before the picture.
        let expected = ["table", "table", "table", "layout"].map(Some);
        assert_eq!(kinds[..4], expected, "{:?}", &kinds[..=first]);
        let name = section_name(1, &items[first].payload).unwrap();
        let is_named = { items.iter() }.any(|item| named_sections(&item.payload).contains(&name));
        assert!(is_named, "{:?}", &kinds[..=first]);
        assert!(items.len() > 100, "{}", items.len());
        soon(early).await.unwrap();
        assert_eq!(soon(relay).await.unwrap().unwrap(), Ending::Done);
    }
}
