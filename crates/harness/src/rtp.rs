//! RTP packets as they come.

use comity_media::rtp::{Packetiser, Reorder};
use comity_units::{Span, Time};

/// For how long an early packet may wait for those before it.
const PATIENCE: Span = Span::from_millis(50);

/// Packets of RTP, each behind a byte of time and one of length.
///
/// What comes out is no longer than what went in, a packet that is refused gives nothing, and
/// nothing is held when it has waited long enough. A stream in order that another source sends
/// behind all this comes out at once and as it was.
pub fn check(bytes: &[u8]) {
    let (mut reorder, mut out, mut now) = (Reorder::default(), Vec::new(), Time::ZERO);
    let (mut rest, mut given, mut source) = (bytes, 0, 0);
    while let Some((&[wait, length], behind)) = rest.split_first_chunk::<2>() {
        now += Span::from_millis(u64::from(wait & 0x3f));
        let (packet, behind) = behind.split_at(usize::from(length).min(behind.len()));
        rest = behind;
        given += packet.len();
        let before = out.len();
        match reorder.push(now, packet, &mut out) {
            Ok(()) => {
                let (_, name) = packet[..12].split_last_chunk::<4>().expect("twelve bytes");
                source = u32::from_be_bytes(*name);
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                assert_eq!(out.len(), before, "a refused packet gave something");
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
    let mut sender = Packetiser::new(given as u16, !source);
    for piece in bytes.chunks(7) {
        let packet = sender.packet(now.saturating_since(Time::ZERO), piece);
        let mut media = Vec::new();
        assert_eq!(reorder.push(now, &packet, &mut media), Ok(()));
        assert_eq!(media, piece);
    }
}
