//! The headers of payloads, and the reader of media.

use std::collections::BTreeMap;

use comity_media::check::{Checker, Indicator, Report, Timing};
use comity_media::{
    Event, FrameType, Header, HeaderError, Notice, PACKET, ReadError, Reader, ReaderConfig,
    TsWriter, WriterConfig,
};
use comity_units::{DataSize, Span, Time};

/// The search range for a packet, in bytes.
const SEARCHED: usize = 1 << 20;

/// A payload has one header or a typed error. An accepted one encodes to the same bytes, and a
/// writer makes whole packets of it.
pub fn check_header(data: &[u8]) {
    let mut writer = TsWriter::new(WriterConfig::default());
    let (mut out, mut is_transport) = (Vec::new(), None);
    let mut rest = data;
    // Consecutive payloads, each after two bytes of length.
    while let Some((&[high, low], behind)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes([high, low])).min(behind.len());
        let (payload, behind) = behind.split_at(length);
        rest = behind;
        let before = out.len();
        match Header::decode(payload) {
            Ok((header, content)) => {
                let mut again = Vec::new();
                header.encode(&mut again);
                again.extend(content);
                assert_eq!(again, payload);
                let is_packets = !matches!(header, Header::Raw | Header::Picture(_));
                let expected = match *is_transport.get_or_insert(is_packets) == is_packets {
                    true => Ok(()),
                    false => Err(HeaderError::Mixed),
                };
                assert_eq!(writer.write(payload, &mut out), expected);
                assert!(expected.is_ok() || out.len() == before);
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                assert_eq!(writer.write(payload, &mut out), Err(error));
                assert_eq!(out.len(), before);
            }
        }
    }
    writer.finish(&mut out);
    if is_transport == Some(true) {
        assert_eq!(out.len() % PACKET, 0);
        assert!(out.chunks(PACKET).all(|packet| packet[0] == 0x47));
    }
}

/// Any sections of any streams, layouts among them, in any order and with any missing, give whole
/// packets. Other media are copied behind them: a section that may begin another connection may
/// bring another kind of source.
///
/// Each item has a byte that says its stream and whether it is missing, one for its number, and one
/// for the length of its payload. The streams are those of a real source, so that layouts from the
/// corpus find their sections.
pub fn check_layout(data: &[u8]) {
    const STREAMS: [u16; 8] = [0x3fff, 0, 1, 2, 0x3ffe, 0x3ffd, 0x3ffc, 3];
    let mut writer = TsWriter::new(WriterConfig::default());
    let mut out = Vec::new();
    let mut rest = data;
    while let Some((&[control, number, length], behind)) = rest.split_first_chunk::<3>() {
        let (payload, behind) = behind.split_at(usize::from(length).min(behind.len()));
        rest = behind;
        let stream = STREAMS[usize::from(control & 7)];
        let number = u64::from(number);
        if control & 8 == 8 {
            writer.miss(stream, number, u64::from(length), &mut out);
            continue;
        }
        let decoded = Header::decode(payload);
        let owned = payload.to_vec().into();
        match (
            writer.write_section(stream, number, &owned, &mut out),
            decoded,
        ) {
            (Ok(()), Ok((Header::Raw | Header::Picture(_), media))) => {
                assert!(out.ends_with(media));
                out.truncate(out.len() - media.len());
            }
            (Ok(()), decoded) => assert!(decoded.is_ok()),
            (Err(error), decoded) => {
                assert!(!error.to_string().is_empty());
                let is_expected = match decoded {
                    Ok((Header::Layout, _)) => {
                        matches!(error, HeaderError::Layout | HeaderError::Mixed)
                    }
                    Ok(_) => error == HeaderError::Mixed,
                    Err(expected) => error == expected,
                };
                assert!(is_expected, "{error}");
            }
        }
    }
    writer.finish(&mut out);
    assert!(!writer.is_holding());
    let statistics = writer.statistics();
    if statistics.restored_packets > 0 {
        assert_eq!(out.len() % PACKET, 0);
        assert!(out.chunks(PACKET).all(|packet| packet[0] == 0x47));
    }
}

/// Reading any bytes gives a section or a missing unit for each number. The events, and the error
/// if one ends the reading, do not depend on the splits. Accepted data can be written, in whole
/// packets if it was a transport stream. Each byte of a transport stream is in a packet or counted
/// in a notice.
pub fn check_reader(data: &[u8]) {
    // The first byte controls the splits, and whether the input is aligned to packets, so that a
    // fuzzer gets past the sync bytes. One bit breaks the alignment in the middle, and another
    // breaks it for longer than the search range.
    let Some((&control, data)) = data.split_first() else {
        return;
    };
    let mut data = maybe_aligned(control, data);
    if control & 2 == 2 {
        let middle = data.len() / 2;
        let length = if control & 4 == 4 { SEARCHED + 1 } else { 300 };
        data.splice(middle..middle, (0..length).map(|at| (at % 71) as u8));
    }
    let (whole, outcome) = read(&data, data.len().max(1));
    // A mebibyte in pieces of one byte takes too long.
    let least = if data.len() > SEARCHED { 1_000 } else { 1 };
    let again = read(&data, usize::from(control) + least);
    assert_eq!(again, (whole.clone(), outcome));
    if let Err(error) = outcome {
        assert!(!error.to_string().is_empty());
    } else {
        check_byte_counts(&data, &whole);
    }
    check_live(&data, usize::from(control) + least);

    let mut writer = TsWriter::new(WriterConfig::default());
    let (mut next, mut out) = (BTreeMap::new(), Vec::new());
    let mut is_transport = None;
    for event in &whole {
        let (stream, number) = match event {
            Event::Section(section) => (section.stream, section.number),
            Event::Missing(missing) => (missing.stream, missing.number),
            Event::Notice(_) => continue,
        };
        let expected = next.entry(stream).or_insert(0);
        assert_eq!(number, *expected);
        *expected += 1;
        let Event::Section(section) = event else {
            continue;
        };
        assert!(section.needs.is_none_or(|needed| needed < section.number));
        let (header, _) = Header::decode(&section.payload).expect("the reader's own header");
        let is_packets = !matches!(header, Header::Raw | Header::Picture(_));
        assert_eq!(*is_transport.get_or_insert(is_packets), is_packets);
        writer.write(&section.payload, &mut out).expect("as above");
    }
    writer.finish(&mut out);
    if is_transport == Some(true) {
        assert_eq!(out.len() % PACKET, 0);
        assert!(out.chunks(PACKET).all(|packet| packet[0] == 0x47));
        check_whole(&data, outcome.is_ok());
    }
}

/// With layouts, a transport stream comes out byte for byte, also outside of packets. If the
/// reading ended early, it comes out at least up to the position of the error. Bytes outside of
/// packets are counted, except at a wider stride.
fn check_whole(data: &[u8], is_read: bool) {
    let mut reader = Reader::new(ReaderConfig {
        layouts: true,
        longest_unit: DataSize::new(4_000),
        ..ReaderConfig::default()
    });
    let pushed = data.chunks(1_000).try_for_each(|piece| reader.push(piece));
    let outcome = pushed.and_then(|()| reader.finish());
    assert_eq!(outcome.is_ok(), is_read);
    let mut writer = TsWriter::new(WriterConfig::default());
    let (mut out, mut outside, mut are_apart) = (Vec::new(), 0, false);
    while let Some(event) = reader.poll() {
        match event {
            Event::Section(section) => writer
                .write_section(section.stream, section.number, &section.payload, &mut out)
                .expect("the reader's own section"),
            Event::Missing(missing) => writer.miss(missing.stream, missing.number, 1, &mut out),
            Event::Notice(Notice::LostSync { skipped }) => outside += skipped,
            Event::Notice(Notice::PacketsApart { .. }) => are_apart = true,
            Event::Notice(_) => {}
        }
    }
    writer.finish(&mut out);
    let length = out.len() as u64;
    let least = match outcome {
        Err(ReadError::NoPacket { at, .. } | ReadError::NoTime { at }) => at,
        _ => data.len() as u64,
    };
    assert!(data.starts_with(&out), "{length} bytes");
    assert!(length >= least, "{length} of {least} bytes, {outcome:?}");
    let statistics = writer.statistics();
    assert_eq!(statistics.replaced_packets, 0);
    let counted = statistics.restored_packets * PACKET as u64 + outside;
    match are_apart || !is_read {
        true => assert!(counted <= length, "{counted} of {length} bytes"),
        false => assert_eq!(counted, length),
    }
}

/// Bytes outside of packets are counted, or all of the source is sent in its order.
fn check_byte_counts(data: &[u8], events: &[Event]) {
    let (mut given, mut left_out) = (Vec::new(), 0);
    for event in events {
        match event {
            Event::Section(section) => match Header::decode(&section.payload) {
                Ok((Header::Raw, bytes)) => given.extend(bytes),
                // Pictures are split at other positions.
                Ok((Header::Picture(_), _)) => return,
                _ => {}
            },
            Event::Notice(Notice::LostSync { skipped }) => left_out += *skipped,
            // No count includes the bytes between packets at a wider stride.
            Event::Notice(Notice::PacketsApart { .. }) => return,
            Event::Notice(_) | Event::Missing(_) => {}
        }
    }
    if given.is_empty() {
        let packets = (data.len() as u64).checked_sub(left_out);
        assert_eq!(packets.map(|bytes| bytes % PACKET as u64), Some(0));
    } else {
        assert_eq!((&given[..], left_out), (data, 0));
    }
}

/// The same as a live source, with a piece every 10 ms: it has the units of a stored one. The ends
/// of slices depend on the arrivals.
fn check_live(data: &[u8], length: usize) {
    let mut reader = reader();
    let mut arrival = Time::ZERO;
    for piece in data.chunks(length) {
        if reader.push_arrived(piece, arrival).is_err() {
            break;
        }
        arrival += Span::from_millis(10);
    }
    let _ = reader.finish();
    let live: Vec<Event> = core::iter::from_fn(|| reader.poll()).collect();
    let units = |events: &[Event]| {
        let is_unit = |event: &&Event| match event {
            Event::Section(section) => section.stream > 0 && section.frame != FrameType::Slice,
            Event::Missing(_) | Event::Notice(_) => false,
        };
        events.iter().filter(is_unit).count()
    };
    assert_eq!(units(&live), units(&read(data, data.len().max(1)).0));
}

fn reader() -> Reader {
    Reader::new(ReaderConfig {
        longest_unit: DataSize::new(4_000),
        ..ReaderConfig::default()
    })
}

fn read(data: &[u8], length: usize) -> (Vec<Event>, Result<(), ReadError>) {
    let mut reader = reader();
    let pushed = data.chunks(length).try_for_each(|piece| reader.push(piece));
    let outcome = pushed.and_then(|()| reader.finish());
    (core::iter::from_fn(|| reader.poll()).collect(), outcome)
}

/// The bytes, with a sync byte at each packet if the lowest bit of `control` says so.
fn maybe_aligned(control: u8, data: &[u8]) -> Vec<u8> {
    let mut data = data.to_vec();
    if control & 1 == 1 {
        for packet in data.chunks_mut(PACKET) {
            packet[0] = 0x47;
        }
    }
    data
}

/// Checking any bytes gives a report that no split changes. Each byte is in a packet or skipped,
/// each packet belongs to one PID or is marked as damaged, and a live stream has the same packets.
pub fn check_checker(data: &[u8]) {
    // The first byte controls the splits, and whether the input is aligned to packets.
    let Some((&control, data)) = data.split_first() else {
        return;
    };
    let data = maybe_aligned(control, data);
    let whole = checked(&data, data.len().max(1), Timing::Clock);
    let length = usize::from(control) + 1;
    assert_eq!(checked(&data, length, Timing::Clock), whole);
    if whole.packet_bytes == Some(PACKET) {
        let in_packets = whole.packets * PACKET as u64;
        assert_eq!(in_packets + whole.skipped_bytes, data.len() as u64);
    }
    let in_pids: u64 = whole.pids.iter().map(|pid| pid.packets).sum();
    let damaged = whole.errors.of(Indicator::TransportError).count;
    assert!((in_pids..=in_pids + damaged).contains(&whole.packets));
    let live = checked(&data, length, Timing::Arrival);
    assert_eq!(live.packets, whole.packets);
    for indicator in [Indicator::ContinuityCountError, Indicator::CrcError] {
        assert_eq!(
            live.errors.of(indicator).count,
            whole.errors.of(indicator).count
        );
    }
}

/// The report about a stream whose pieces arrive 10 ms apart.
fn checked(data: &[u8], length: usize, timing: Timing) -> Report {
    let mut checker = Checker::new(timing);
    let mut arrival = Time::ZERO;
    for piece in data.chunks(length) {
        checker.push_arrived(piece, arrival);
        arrival += Span::from_millis(10);
    }
    checker.finish();
    checker.report()
}
