//! The headers of payloads, and the reader of media.

use std::collections::BTreeMap;

use comity_media::{
    Event, FrameType, Header, HeaderError, Notice, PACKET, ReadError, Reader, ReaderConfig,
    TsWriter, WriterConfig,
};
use comity_units::{Bytes, Span, Time};

/// In so many bytes a packet is searched for.
const SEARCHED: usize = 1 << 20;

/// A payload has one header or a typed error; what is taken is written back as it was, and by a
/// writer in whole packets.
pub fn check_header(data: &[u8]) {
    let mut writer = TsWriter::new(WriterConfig::default());
    let (mut out, mut is_transport) = (Vec::new(), None);
    let mut rest = data;
    // Payloads one after the other, each behind two bytes of length.
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

/// Whatever the bytes are, reading them gives sections, or says that one is missing, for each
/// number; the same ones, and the same error if one ends it, however the bytes are cut; and what
/// was read can be written, in whole packets where it was a transport stream. Each byte of one is
/// in a packet or counted in a notice.
pub fn check_reader(data: &[u8]) {
    // The first byte says how the rest is cut, and whether it is in step with packets: then a
    // fuzzer that does not know where sync bytes belong still gets behind them. Of two bits the one
    // breaks that in the middle, and the other does so for longer than is searched.
    let Some((&control, data)) = data.split_first() else {
        return;
    };
    let mut data = data.to_vec();
    if control & 1 == 1 {
        for packet in data.chunks_mut(PACKET) {
            packet[0] = 0x47;
        }
    }
    if control & 2 == 2 {
        let middle = data.len() / 2;
        let length = if control & 4 == 4 { SEARCHED + 1 } else { 300 };
        data.splice(middle..middle, (0..length).map(|at| (at % 71) as u8));
    }
    let (whole, outcome) = read(&data, data.len().max(1));
    // A mebibyte in pieces of a byte takes too long.
    let least = if data.len() > SEARCHED { 1_000 } else { 1 };
    let again = read(&data, usize::from(control) + least);
    assert_eq!(again, (whole.clone(), outcome));
    if let Err(error) = outcome {
        assert!(!error.to_string().is_empty());
    } else {
        check_account(&data, &whole);
    }
    check_live(&data, usize::from(control) + least);

    let mut writer = TsWriter::new(WriterConfig::default());
    let (mut next, mut out) = (BTreeMap::new(), Vec::new());
    let mut is_transport = true;
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
        is_transport &= !matches!(header, Header::Raw | Header::Picture(_));
        writer.write(&section.payload, &mut out).expect("as above");
    }
    writer.finish(&mut out);
    if is_transport {
        assert_eq!(out.len() % PACKET, 0);
        assert!(out.chunks(PACKET).all(|packet| packet[0] == 0x47));
    }
}

/// What is not in packets is counted, or all of it sent in the order that it had.
fn check_account(data: &[u8], events: &[Event]) {
    let (mut given, mut left_out) = (Vec::new(), 0);
    for event in events {
        match event {
            Event::Section(section) => match Header::decode(&section.payload) {
                Ok((Header::Raw, bytes)) => given.extend(bytes),
                // Pictures are cut apart at other places.
                Ok((Header::Picture(_), _)) => return,
                _ => {}
            },
            Event::Notice(Notice::LostSync { skipped }) => left_out += *skipped,
            // What stands beside packets is in no account.
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

/// As from a live source, a piece every 10 ms: what a stored one has as units is there as well.
/// Where slices end depends on when they came.
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
        longest_unit: Bytes::new(4_000),
        ..ReaderConfig::default()
    })
}

fn read(data: &[u8], length: usize) -> (Vec<Event>, Result<(), ReadError>) {
    let mut reader = reader();
    let pushed = data.chunks(length).try_for_each(|piece| reader.push(piece));
    let outcome = pushed.and_then(|()| reader.finish());
    (core::iter::from_fn(|| reader.poll()).collect(), outcome)
}
