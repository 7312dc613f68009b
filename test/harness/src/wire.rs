//! Any bytes as a datagram, as a payload and as transport parameters: reading never panics, and
//! accepted data encodes and decodes to itself.

use comity_congestion::table::{self, Setup};
use comity_transport::wire::frame::{self, Content};
use comity_transport::wire::header::{self, Packet};
use comity_transport::wire::parameters::Parameters;
use comity_units::DataSize;

/// Reads the frames of a payload, and each again after encoding it.
fn frames(payload: &[u8], content: Content) {
    let Ok(read) = frame::decode(payload, content) else {
        return;
    };
    for result in read.frames {
        let first = match result {
            Ok(first) => first,
            Err(error) => {
                assert!(error.offset <= payload.len(), "{error}");
                return;
            }
        };
        let mut written = Vec::new();
        frame::encode_departure(read.departure, &mut written);
        let before = written.len();
        first
            .encode(&mut written)
            .expect("what was read can be written");
        if content == Content::Present {
            assert_eq!(written.len() - before, first.size());
        }
        let mut again = frame::decode(&written, content)
            .expect("there is a frame")
            .frames;
        assert_eq!(again.next(), Some(Ok(first)));
        assert_eq!(again.next(), None);
    }
}

/// Builds the meter that a peer requests, or refuses it. An accepted request is the same after
/// encoding.
fn meter(parameters: &Parameters) {
    let list = parameters.meter_parameters.as_deref().unwrap_or_default();
    for row in table::TABLE {
        if let Ok(read) = row.parse_list(list) {
            assert_eq!(row.parse_list(&read.to_list()).as_ref(), Ok(&read));
            let setup = Setup::new(DataSize::new(1_200));
            let _ = row.build_meter(&setup, &read);
        }
    }
}

/// One input.
pub fn check(bytes: &[u8]) {
    frames(bytes, Content::Present);
    frames(bytes, Content::Elided);

    if let Ok(first) = Parameters::decode(bytes) {
        meter(&first);
        let mut written = Vec::new();
        // Every number is written, including absent ones, so the list may be too long.
        match first.encode(&mut written) {
            Ok(()) => assert_eq!(Parameters::decode(&written), Ok(first)),
            Err(error) => assert_eq!(error.field, "size"),
        }
    }

    let mut written = Vec::new();
    match header::decode(bytes) {
        Ok(Packet::Initial(initial)) => {
            initial.encode(&mut written).expect("it was read");
            assert!(bytes.starts_with(&written));
        }
        Ok(Packet::Retry(retry)) => {
            retry.encode(&mut written).expect("it was read");
            assert_eq!(written, bytes);
        }
        Ok(Packet::Answer(answer)) => {
            answer.encode(&mut written).expect("it was read");
            assert_eq!(written, bytes);
        }
        Ok(Packet::Confirm(confirm)) => {
            confirm.encode(&mut written).expect("it was read");
            assert_eq!(written, bytes);
        }
        Ok(Packet::Accept(accept)) => {
            accept.encode(&mut written).expect("it was read");
            assert_eq!(written, bytes);
        }
        Ok(Packet::Reset(reset)) => assert_eq!(reset.encode(), bytes),
        Ok(Packet::Data {
            header, associated, ..
        }) => {
            // Other flags than the key phase are masked ones.
            assert_eq!(associated[1..], header.encode()[1..]);
            assert_eq!(associated[0] & !0x0e, header.encode()[0]);
        }
        Ok(Packet::VersionNegotiation {
            destination,
            versions,
        }) => {
            let versions: Vec<u32> = versions.iter().collect();
            header::encode_version_negotiation(destination, &versions, &mut written)
                .expect("it was read");
            assert_eq!(written, bytes);
        }
        Ok(Packet::UnknownVersion { .. }) | Err(_) => {}
    }
}
