//! RTP packets from the network.

use std::collections::BTreeSet;

use comity_media::rtp::{Packetiser, Reorder};
use comity_units::{Span, Time};

/// How long an early packet may wait for earlier ones.
const PATIENCE: Span = Span::from_millis(50);
/// Two sources do not send at the same time any more after this time without packets.
const SILENCE: Span = Span::from_secs(1);

/// RTP packets, each after a byte of time and one of length.
///
/// The output is not longer than the input, a refused packet returns nothing, and nothing is held
/// beyond its waiting time. After a second without packets, an ordered stream from a source not
/// seen before is returned unchanged: until then, it may be one of two sources that send at the
/// same time.
pub fn check(bytes: &[u8]) {
    let (mut reorder, mut out, mut now) = (Reorder::default(), Vec::new(), Time::ZERO);
    let (mut rest, mut given, mut sources) = (bytes, 0, BTreeSet::new());
    while let Some((&[wait, length], behind)) = rest.split_first_chunk::<2>() {
        now += Span::from_millis(u64::from(wait & 0x3f));
        let (packet, behind) = behind.split_at(usize::from(length).min(behind.len()));
        rest = behind;
        given += packet.len();
        let before = out.len();
        match reorder.push(now, packet, &mut out) {
            Ok(()) => {
                // RTCP may be shorter.
                if let Some((_, name)) = { packet.get(..12) }.and_then(<[u8]>::split_last_chunk) {
                    sources.insert(u32::from_be_bytes(*name));
                }
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                assert_eq!(out.len(), before, "a refused packet returned data");
            }
        }
        if wait & 0x40 != 0 {
            now += PATIENCE;
            reorder.expire(now, &mut out);
            let before = out.len();
            reorder.flush(&mut out);
            assert_eq!(out.len(), before, "it waited for too long");
        }
        assert!(out.len() <= given);
    }
    reorder.flush(&mut out);
    assert!(out.len() <= given);
    now += SILENCE;
    let mut media = Vec::new();
    let source = (0..)
        .find(|source| !sources.contains(source))
        .unwrap_or_default();
    let mut sender = Packetiser::new(given as u16, source);
    for piece in bytes.chunks(7) {
        let packet = sender.packet(now.saturating_since(Time::ZERO), piece);
        assert_eq!(reorder.push(now, &packet, &mut media), Ok(()));
    }
    reorder.flush(&mut media);
    assert_eq!(media, bytes);
}
