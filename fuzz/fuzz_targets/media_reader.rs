//! Whatever the bytes are, reading them gives sections without holes in their numbers, the same ones however the
//! bytes are cut; and what was read can be written, in whole packets where it was a transport stream.
#![no_main]

use std::collections::BTreeMap;

use comity_media::{Event, Header, PACKET, Reader, ReaderConfig, TsWriter, WriterConfig};
use comity_units::Bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // The first byte says how the rest is cut, and whether it is in step with packets: then a fuzzer that does
    // not know where sync bytes belong still gets behind them.
    let Some((&control, data)) = data.split_first() else { return };
    let mut data = data.to_vec();
    if control & 1 == 1 {
        for packet in data.chunks_mut(PACKET) {
            packet[0] = 0x47;
        }
    }
    let whole = read(&data, data.len().max(1));
    assert_eq!(read(&data, usize::from(control) + 1), whole);

    let mut writer = TsWriter::new(WriterConfig::default());
    let (mut next, mut out, mut is_transport) = (BTreeMap::new(), Vec::new(), true);
    for event in &whole {
        let Event::Section(section) = event else { continue };
        let number = next.entry(section.stream).or_insert(0);
        assert_eq!(section.number, *number);
        assert!(section.needs.is_none_or(|needed| needed < section.number));
        *number += 1;
        let (header, _) = Header::decode(&section.payload).expect("the reader's own header");
        is_transport &= !matches!(header, Header::Raw | Header::Picture(_));
        writer.write(&section.payload, &mut out).expect("as above");
    }
    writer.finish(&mut out);
    if is_transport {
        assert_eq!(out.len() % PACKET, 0);
        assert!(out.chunks(PACKET).all(|packet| packet[0] == 0x47));
    }
});

fn read(data: &[u8], length: usize) -> Vec<Event> {
    let config = ReaderConfig { longest_unit: Bytes::new(4_000), ..ReaderConfig::default() };
    let mut reader = Reader::new(config);
    for piece in data.chunks(length) {
        reader.push(piece);
    }
    reader.finish();
    core::iter::from_fn(|| reader.poll()).collect()
}
