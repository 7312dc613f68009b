//! Sections with deadlines between two hosts, in virtual time over a path that loses packets.

use comity_tcp::timeline::{DeadlineClock, TimelineConfig};
use comity_tcp_host::framing::SectionReader;
use comity_tcp_host::{
    Config, ConnectionId, Delivery, Event, Framing, Piece, PieceKind, Section, SectionStatistics,
    StreamError,
};
use comity_units::{Span, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::world::{App, Fate, World, bytes, config, read};

fn timelined(host: usize, timeline: TimelineConfig, framing: Framing) -> Config {
    let mut config = config(host);
    config.tcp.timeline = Some(timeline);
    config.framing = framing;
    config.send_buffer = 60_000;
    config
}

/// One section: the wait before it is submitted, its length and its lifetime.
type Plan = (u64, usize, u64);

/// An application that reads pieces, `read` bytes at a time.
fn reader(read: usize) -> App {
    App {
        pieces: Some(Vec::new()),
        read,
        shuts_down: true,
        ..App::default()
    }
}

/// Submits sections as planned, ends the stream, and waits for both applications. Returns the
/// connection of the sender.
fn run(world: &mut World, plan: &[Plan], read: usize) -> ConnectionId {
    let id = world.open(0, true, App::default(), reader(read));
    world.run_for(Span::from_millis(50));
    for (number, (wait, length, life)) in plan.iter().enumerate() {
        world.run_for(Span::from_millis(*wait));
        let deadline = world.now + Span::from_millis(*life);
        let app = world.apps[0].get_mut(&id).unwrap();
        app.sections.push((bytes(number as u8, *length), deadline));
        world.run_for(Span::ZERO);
    }
    world.apps[0].get_mut(&id).unwrap().shuts_down = true;
    world.run_for(Span::from_secs(600));
    id
}

/// The application of the receiving host.
fn receiver(world: &World) -> &App {
    world.apps[1].first_key_value().unwrap().1
}

fn statistics(world: &World, id: ConnectionId) -> SectionStatistics {
    world.hosts[0].section_statistics(id).unwrap()
}

/// The new bytes of each packet of the sender, from an offset in the stream to another, with the
/// time. Some leave after those behind them.
fn first_sent(world: &World) -> Vec<(Time, u64, u64)> {
    let (mut initial, mut is_sent) = (None, Vec::new());
    let mut sent = Vec::new();
    for (at, from, packet) in world.records.iter().filter(|record| record.1 == 0) {
        assert_eq!(*from, 0);
        let (header, payload) = read(packet);
        if header.syn {
            initial = Some(header.sequence_number.wrapping_add(1));
        }
        let start = header.sequence_number.wrapping_sub(initial.unwrap()) as usize;
        let end = start + payload.len();
        if payload.is_empty() {
            continue;
        }
        is_sent.resize(is_sent.len().max(end), false);
        let mut next = start;
        for run in is_sent[start..end].chunk_by_mut(|a, b| a == b) {
            let first = next;
            next += run.len();
            if !run[0] {
                run.fill(true);
                sent.push((*at, first as u64, next as u64));
            }
        }
    }
    sent
}

/// The pieces follow each other without a hole, data and gaps take turns as they should, and the
/// data is that of `stream` in its places. Returns which bytes arrived.
fn check_pieces(pieces: &[Piece], data: &[u8], stream: &[u8]) -> Vec<bool> {
    let mut arrived = vec![false; stream.len()];
    let (mut at, mut used) = (0, 0);
    for piece in pieces {
        assert_eq!(piece.offset, at as u64);
        assert!(piece.length > 0);
        let end = at + piece.length as usize;
        if piece.kind == PieceKind::Data {
            let length = piece.length as usize;
            assert!(data[used..used + length] == stream[at..end], "{piece:?}");
            arrived[at..end].fill(true);
            used += length;
        }
        at = end;
    }
    assert_eq!((at, used), (stream.len(), data.len()));
    arrived
}

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    vec((0..60_u64, 1..20_000_usize, 0..400_u64), 1..60)
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let late = (1..60_u64).prop_map(|more| Fate::Late(Span::from_millis(more)));
    let twice = (1..60_u64).prop_map(|more| Fate::Twice(Span::from_millis(more)));
    vec(
        prop_oneof![14 => Just(Fate::Arrives), 2 => Just(Fate::Lost), 1 => late, 1 => twice],
        0..400,
    )
}

fn timelines() -> impl Strategy<Value = TimelineConfig> {
    (any::<bool>(), any::<bool>()).prop_map(|(blind_spot, is_receiver)| TimelineConfig {
        blind_spot,
        clock: match is_receiver {
            true => DeadlineClock::Receiver,
            false => DeadlineClock::Sender,
        },
        ..TimelineConfig::PAPER
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Data and gaps together are what was submitted, in order and exact; nothing is sent for the
    /// first time after its deadline; and the counters add up.
    #[test]
    fn pieces_are_what_was_submitted(
        plan in plans(),
        timeline in timelines(),
        fates in fates(),
        back in fates(),
        options in any::<[bool; 2]>(),
        read in 1..5_000_usize,
    ) {
        let mut configs = [0, 1].map(|host| timelined(host, timeline, Framing::None));
        (configs[0].tcp.sack, configs[0].tcp.timestamps) = (options[0], options[1]);
        let mut world = World::with(configs);
        world.fates = [fates, back];
        let id = run(&mut world, &plan, read);
        let sections = world.apps[0][&id].sections.clone();
        prop_assert_eq!(world.hosts[0].delivery(id), Some(Delivery::Timelined));
        let stream = sections.iter().flat_map(|(bytes, _)| bytes).copied().collect::<Vec<u8>>();
        let app = receiver(&world);
        prop_assert!(app.has_finished && app.error.is_none());
        let arrived = check_pieces(app.pieces.as_ref().unwrap(), &app.received, &stream);
        let mut ends = Vec::new();
        for (bytes, deadline) in &sections {
            let (start, _) = ends.last().copied().unwrap_or((0, Time::ZERO));
            ends.push((start + bytes.len(), *deadline));
        }
        for (at, start, end) in first_sent(&world) {
            let section = ends.partition_point(|(to, _)| *to <= start as usize);
            prop_assert!(end as usize <= ends[section].0, "a segment ends with its section");
            prop_assert!(at < ends[section].1, "{start} was sent at {at}");
        }
        let statistics = statistics(&world, id);
        prop_assert_eq!(statistics.submitted, plan.len() as u64);
        prop_assert_eq!(statistics.submitted_bytes, stream.len() as u64);
        let settled = statistics.on_time + statistics.cut + statistics.left_out;
        prop_assert_eq!(settled, statistics.submitted, "{:?}", statistics);
        let sent: u64 = first_sent(&world).iter().map(|(_, start, end)| end - start).sum();
        prop_assert_eq!(sent + statistics.left_out_bytes, stream.len() as u64);
        let mut start = 0;
        let (mut whole, mut absent) = (0, 0);
        for (end, _) in ends {
            whole += u64::from(!arrived[start..end].contains(&false));
            absent += u64::from(!arrived[start..end].contains(&true));
            start = end;
        }
        prop_assert!(statistics.on_time <= whole && statistics.left_out <= absent);
        let buffered = world.hosts[0].connection(id).map(|tcp| tcp.lowest_needed());
        prop_assert_eq!(buffered, Some(stream.len() as u64 + 1), "the send buffer is empty");
    }

    /// The same sections to a host that is not time-lined: sections arrive whole, cut or not at
    /// all, by their numbers, and the counters of both ends agree.
    #[test]
    fn a_plain_peer_receives_sections_in_a_frame(
        plan in plans(),
        timeline in timelines(),
        fates in fates(),
        back in fates(),
        read in 1..5_000_usize,
    ) {
        let mut world = World::with([timelined(0, timeline, Framing::Header), config(1)]);
        world.fates = [fates, back];
        let id = run(&mut world, &plan, read);
        let sections = world.apps[0][&id].sections.clone();
        prop_assert_eq!(world.hosts[0].delivery(id), Some(Delivery::Plain));
        let announced = world.events[0].iter().filter(|event| **event == Event::Plain(id));
        prop_assert_eq!(announced.count(), 1);
        let app = receiver(&world);
        prop_assert!(app.has_finished && app.error.is_none());
        let mut reader = SectionReader::new(1 << 20);
        reader.data(&app.received).unwrap();
        reader.finish();
        let (mut complete, mut cut) = (0, 0);
        while let Some(section) = reader.poll() {
            let (content, deadline) = &sections[section.number as usize];
            prop_assert!(content.starts_with(&section.bytes));
            prop_assert_eq!(section.is_complete, section.bytes.len() == content.len());
            prop_assert_eq!(section.due_us, deadline.as_nanos() / 1_000);
            complete += u64::from(section.is_complete);
            cut += u64::from(!section.is_complete);
        }
        let statistics = statistics(&world, id);
        prop_assert_eq!(statistics.on_time + statistics.late, complete);
        prop_assert_eq!(statistics.cut, cut);
        prop_assert_eq!(statistics.left_out + complete + cut, statistics.submitted);
        prop_assert_eq!(statistics.open, 0);
        let numbered = app.received.len() as u64 - statistics.header_bytes;
        prop_assert_eq!(statistics.submitted_bytes, numbered + statistics.left_out_bytes);
        if statistics.late > 0 {
            prop_assert!(statistics.acknowledged_late_bytes > 0);
        }
    }
}

#[test]
fn a_frame_shows_whole_sections_behind_gaps() {
    let timeline = TimelineConfig::PAPER;
    let mut world = World::with([0, 1].map(|host| timelined(host, timeline, Framing::Header)));
    let lost = |at| {
        if at % 25 == 4 {
            Fate::Lost
        } else {
            Fate::Arrives
        }
    };
    world.fates[0] = (0..400).map(lost).collect();
    let plan: Vec<Plan> = (0..60).map(|at| (10, 9_000 + at * 31, 90)).collect();
    let id = run(&mut world, &plan, 700);
    let app = receiver(&world);
    let (mut reader, mut used) = (SectionReader::new(1 << 20), 0);
    for piece in app.pieces.as_ref().unwrap() {
        let length = piece.length as usize;
        match piece.kind {
            PieceKind::Gap => reader.gap(piece.length),
            PieceKind::Data => {
                reader.data(&app.received[used..used + length]).unwrap();
                used += length;
            }
        }
    }
    reader.finish();
    let sections = &world.apps[0][&id].sections;
    let received: Vec<_> = std::iter::from_fn(|| reader.poll()).collect();
    for section in &received {
        let (content, _) = &sections[section.number as usize];
        assert!(content.starts_with(&section.bytes));
        assert_eq!(section.is_complete, content.len() == section.bytes.len());
    }
    let statistics = statistics(&world, id);
    let complete = received
        .iter()
        .filter(|section| section.is_complete)
        .count() as u64;
    assert!(complete >= statistics.on_time, "{statistics:?}");
    assert!(
        statistics.on_time > 5 && statistics.cut + statistics.left_out > 5,
        "{statistics:?}"
    );
}

#[test]
fn a_plain_peer_with_a_closed_window_costs_two_segments_at_most() {
    let mut world = World::with([
        timelined(0, TimelineConfig::PAPER, Framing::Header),
        config(1),
    ]);
    let id = world.open(0, true, App::default(), App::default());
    world.run_for(Span::from_millis(50));
    // Its application does not read: the window of 1 MiB closes.
    let mut count = 0;
    for number in 0..400 {
        let deadline = world.now + Span::from_millis(100);
        let app = world.apps[0].get_mut(&id).unwrap();
        app.sections.push((bytes(number as u8, 5_000), deadline));
        count += 1;
        world.run_for(Span::from_millis(10));
    }
    world.run_for(Span::from_secs(1));
    let statistics = statistics(&world, id);
    assert_eq!(statistics.submitted, count);
    assert!(statistics.on_time > 150, "{statistics:?}");
    assert!(
        statistics.left_out > 150,
        "what expired was left out: {statistics:?}"
    );
    let connection = world.hosts[0].connection(id).unwrap();
    assert_eq!(connection.peer_window(), 0);
    assert!(connection.unsent() < 2 * u64::from(connection.config().mss));
    assert_eq!(connection.in_flight(), 0);
}

#[test]
fn misuse_is_refused_by_name() {
    let mut world =
        World::with([0, 1].map(|host| timelined(host, TimelineConfig::PAPER, Framing::None)));
    let id = world.open(0, true, App::default(), reader(10_000));
    let (now, deadline) = (world.now, Time::MAX);
    let section = |bytes| [Section { bytes, deadline }];
    let host = &mut world.hosts[0];
    assert_eq!(host.delivery(id), None, "the handshake is not complete");
    assert_eq!(
        host.send(now, id, &section(b"x")),
        Err(StreamError::WouldBlock)
    );
    world.run_for(Span::from_millis(50));
    assert!(world.events[0].contains(&Event::Writable(id)));
    assert!(!world.events[0].contains(&Event::Plain(id)));
    let now = world.now;
    let host = &mut world.hosts[0];
    assert_eq!(host.write(id, b"preamble"), Ok(8));
    assert_eq!(host.send(now, id, &section(b"")), Err(StreamError::Empty));
    let large = vec![0; 60_001];
    let error = host.send(now, id, &section(&large)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "section: 60001 bytes, expected at most the send buffer's 60000"
    );
    assert_eq!(
        host.send(now, id, &[section(b"ab")[0], section(b"")[0]]),
        Ok(1)
    );
    assert_eq!(host.write(id, b"x"), Err(StreamError::InSections));
    // A section that has expired is a gap, which a plain read does not pass over.
    let expired = Section {
        bytes: b"gone",
        deadline: now,
    };
    assert_eq!(host.send(now, id, &[expired, section(b"cd")[0]]), Ok(2));
    let other = {
        world.run_for(Span::from_millis(1));
        world.apps[0].get_mut(&id).unwrap().shuts_down = true;
        world.run_for(Span::from_secs(1));
        *world.apps[1].first_key_value().unwrap().0
    };
    let pieces = world.apps[1][&other].pieces.clone().unwrap();
    let gaps: Vec<_> = pieces
        .iter()
        .filter(|piece| piece.kind == PieceKind::Gap)
        .collect();
    assert_eq!(
        gaps,
        [&Piece {
            kind: PieceKind::Gap,
            offset: 10,
            length: 4
        }]
    );
    assert_eq!(world.apps[1][&other].received, b"preambleabcd");
    assert_eq!(
        world.hosts[0].send(world.now, id, &section(b"x")),
        Err(StreamError::ShutDown)
    );
}

#[test]
fn a_plain_read_stops_at_a_gap() {
    let mut world =
        World::with([0, 1].map(|host| timelined(host, TimelineConfig::PAPER, Framing::None)));
    let id = world.open(0, true, App::default(), App::default());
    world.run_for(Span::from_millis(50));
    let now = world.now;
    let section = |bytes, deadline| Section { bytes, deadline };
    let sections = [
        section(&b"ab"[..], Time::MAX),
        section(b"gone", now),
        section(b"cd", Time::MAX),
    ];
    assert_eq!(world.hosts[0].send(now, id, &sections), Ok(3));
    world.run_for(Span::from_secs(1));
    let other = *world.apps[1].first_key_value().unwrap().0;
    let host = &mut world.hosts[1];
    let mut buffer = [0; 10];
    assert_eq!(host.read(other, &mut buffer), Ok(2));
    assert_eq!(host.read(other, &mut buffer), Err(StreamError::Gap));
    let mut pieces = [Piece::default(); 1];
    assert_eq!(host.receive(other, &mut [], &mut pieces), Ok(1));
    let gap = Piece {
        kind: PieceKind::Gap,
        offset: 2,
        length: 4,
    };
    assert_eq!(pieces, [gap]);
    assert_eq!(host.receive(other, &mut [], &mut pieces), Ok(0), "no room");
    assert_eq!(host.read(other, &mut buffer), Ok(2));
    assert_eq!(&buffer[..2], b"cd");
    assert_eq!(
        host.receive(other, &mut buffer, &mut pieces),
        Err(StreamError::WouldBlock)
    );
}
