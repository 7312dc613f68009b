//! A payload has one header or a typed error; what is taken is written back as it was, and by a writer in whole
//! packets.
#![no_main]

use comity_media::{Header, PACKET, TsWriter, WriterConfig};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut writer = TsWriter::new(WriterConfig::default());
    let mut out = Vec::new();
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
                if !matches!(header, Header::Raw | Header::Picture(_)) {
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
});
