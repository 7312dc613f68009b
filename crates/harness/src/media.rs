//! The headers of payloads, and the reader of media.

use std::collections::BTreeMap;

use comity_media::{
    Event, FrameType, Header, Notice, PACKET, Reader, ReaderConfig, TsWriter, WriterConfig,
};
use comity_units::{Bytes, Rate, Span, Time};

/// A payload has one header or a typed error; what is taken is written back as it was, and by a writer in whole
/// packets.
pub fn check_header(data: &[u8]) {
    let mut writer = TsWriter::new(WriterConfig::default());
    let (mut out, mut is_known) = (Vec::new(), false);
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
                is_known |= matches!(header, Header::Table { .. } | Header::Unit(_));
                let is_written = match header {
                    Header::Raw => is_known,
                    Header::Picture(_) => false,
                    Header::Packets | Header::Table { .. } | Header::Unit(_) => true,
                };
                if is_written {
                    assert_eq!(writer.write(payload, &mut out), Ok(()));
                }
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                assert_eq!(writer.write(payload, &mut out), Err(error));
                assert_eq!(out.len(), before);
            }
        }
    }
    writer.finish(&mut out);
    assert_eq!(out.len() % PACKET, 0);
    assert!(out.chunks(PACKET).all(|packet| packet[0] == 0x47));
}

/// Whatever the bytes are, reading them gives sections, or says that one is missing, for each number; the same ones however the
/// bytes are cut; and what was read can be written, in whole packets where it was a transport stream and not broken before its first table. Each byte
/// of a transport stream is in a packet, counted in a notice, or sent as it is.
pub fn check_reader(data: &[u8]) {
    // The first byte says how the rest is cut, and whether it is in step with packets: then a fuzzer that does
    // not know where sync bytes belong still gets behind them. Of two bits the one breaks that in the middle, and the other
    // does so for longer than is held.
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
        let length = if control & 4 == 4 { 13_000 } else { 300 };
        data.splice(middle..middle, (0..length).map(|at| (at % 71) as u8));
    }
    let whole = read(&data, data.len().max(1));
    assert_eq!(read(&data, usize::from(control) + 1), whole);
    check_account(&data, &whole);
    check_live(&data, usize::from(control) + 1);

    let mut writer = TsWriter::new(WriterConfig::default());
    let (mut next, mut out) = (BTreeMap::new(), Vec::new());
    let (mut is_known, mut is_transport) = (false, true);
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
        // Bytes behind the first table or unit are in packets.
        is_known |= matches!(header, Header::Table { .. } | Header::Unit(_));
        is_transport &= match header {
            Header::Raw => is_known,
            Header::Picture(_) => false,
            Header::Packets | Header::Table { .. } | Header::Unit(_) => true,
        };
        writer.write(&section.payload, &mut out).expect("as above");
    }
    writer.finish(&mut out);
    if is_transport {
        assert_eq!(out.len() % PACKET, 0);
        assert!(out.chunks(PACKET).all(|packet| packet[0] == 0x47));
    }
}

/// What is not in packets is counted, or sent in the order that it had.
fn check_account(data: &[u8], events: &[Event]) {
    let (mut given, mut left_out, mut since) = (0, 0, 0);
    for event in events {
        match event {
            Event::Section(section) => match Header::decode(&section.payload) {
                Ok((Header::Raw, bytes)) => given += bytes.len(),
                // Pictures are cut apart at other places.
                Ok((Header::Picture(_), _)) => return,
                _ => {}
            },
            Event::Notice(Notice::LostSync { skipped }) => left_out += *skipped,
            Event::Notice(Notice::NoPackets) => since = given,
            Event::Notice(Notice::PacketsAgain { bytes }) => {
                assert_eq!((given - since) as u64, *bytes);
            }
            // What stands beside packets is in no account.
            Event::Notice(Notice::PacketsApart { .. }) => return,
            Event::Notice(_) | Event::Missing(_) => {}
        }
    }
    let packets = (data.len() as u64).checked_sub(given as u64 + left_out);
    assert_eq!(packets.map(|bytes| bytes % PACKET as u64), Some(0));
}

/// As from a live source, a piece every 10 ms: what a stored one has as units is there as well. Where slices end
/// depends on when they came.
fn check_live(data: &[u8], length: usize) {
    let mut reader = reader();
    let mut arrival = Time::ZERO;
    for piece in data.chunks(length) {
        reader.push_arrived(piece, arrival);
        arrival += Span::from_millis(10);
    }
    reader.finish();
    let live: Vec<Event> = core::iter::from_fn(|| reader.poll()).collect();
    let units = |events: &[Event]| {
        let is_unit = |event: &&Event| match event {
            Event::Section(section) => section.stream > 0 && section.frame != FrameType::Slice,
            Event::Missing(_) | Event::Notice(_) => false,
        };
        events.iter().filter(is_unit).count()
    };
    assert_eq!(units(&live), units(&read(data, data.len().max(1))));
}

fn reader() -> Reader {
    Reader::new(ReaderConfig {
        longest_unit: Bytes::new(4_000),
        // So slow that a few packets are time enough for stamps to have stood still.
        assumed_rate: Rate::from_kbps(20),
        ..ReaderConfig::default()
    })
}

fn read(data: &[u8], length: usize) -> Vec<Event> {
    let mut reader = reader();
    for piece in data.chunks(length) {
        reader.push(piece);
    }
    reader.finish();
    core::iter::from_fn(|| reader.poll()).collect()
}
