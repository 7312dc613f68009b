//! Any bytes as a TCP segment: reading never panics, and an accepted segment encodes and decodes to
//! itself.

use std::net::Ipv4Addr;

use comity_tcp::checksum::{Checksum, PseudoHeader};
use comity_tcp::codec::{
    DecodeError, EncodeError, MAX_HEADER, MIN_HEADER, decode, decode_unverified, encode,
    encoded_length,
};

const ADDRESSES: PseudoHeader = PseudoHeader::V4 {
    source: Ipv4Addr::new(10, 0, 0, 1),
    destination: Ipv4Addr::new(10, 0, 0, 2),
};

/// One input.
pub fn check(bytes: &[u8]) {
    let read = decode_unverified(bytes);
    match (&read, decode(bytes, &ADDRESSES)) {
        (_, Err(DecodeError::Checksum { found, expected })) => assert_ne!(found, expected),
        (unverified, verified) => assert_eq!(unverified, &verified),
    }
    let Ok(first) = read else { return };
    assert!(!format!("{first:?}").is_empty());

    let payload = &bytes[first.payload.clone()];
    let mut header = [0; MAX_HEADER];
    let sum = Checksum::new().then(payload);
    match encode(&first.segment, first.ports, &ADDRESSES, sum, &mut header) {
        Ok(length) => {
            assert_eq!(length, encoded_length(&first.segment));
            let whole = [&header[..length], payload].concat();
            let second = decode(&whole, &ADDRESSES).expect("what was written can be read");
            assert_eq!((second.ports, second.segment), (first.ports, first.segment));
            assert_eq!(second.payload, length..whole.len());
            assert_eq!(second.skipped_options, 0);
        }
        // The peer packed its options more densely than the encoder's groups.
        Err(EncodeError::OptionsTooLong { length }) => assert!(length > MAX_HEADER - MIN_HEADER),
        // The encoder's groups made the segment longer than IP carries.
        Err(EncodeError::TooLong { length }) => assert!(length > 65_535),
        Err(error) => panic!("{error}"),
    }
}
