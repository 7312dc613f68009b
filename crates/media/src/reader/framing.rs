//! Whole transport packets from bytes in any pieces.

use super::SYNC;
use crate::header::PACKET;

/// Holds what does not make a packet yet, and finds where packets begin.
#[derive(Debug, Default)]
pub(super) struct Framing {
    held: Vec<u8>,
    /// How many bytes were left out since the last packet.
    skipped: u64,
}

/// What framing gives.
#[derive(Clone, Copy)]
pub(super) enum Framed<'a> {
    Packet(&'a [u8; PACKET]),
    /// So many bytes were left out before the next packet.
    Lost(u64),
}

impl Framing {
    /// Takes bytes and gives the packets that are whole.
    pub(super) fn push(&mut self, bytes: &[u8], mut take: impl FnMut(Framed<'_>)) {
        self.held.extend(bytes);
        let held = core::mem::take(&mut self.held);
        let mut rest = &held[..];
        while let Some((packet, behind)) = rest.split_first_chunk::<PACKET>() {
            let in_step = packet[0] == SYNC;
            if in_step && (self.skipped == 0 || behind.first() == Some(&SYNC)) {
                if self.skipped > 0 {
                    take(Framed::Lost(self.skipped));
                    self.skipped = 0;
                }
                take(Framed::Packet(packet));
                rest = behind;
            } else if in_step && behind.is_empty() {
                // Whether a packet begins here shows only with the one behind it.
                break;
            } else {
                let next = rest.iter().skip(1).position(|&byte| byte == SYNC);
                let gone = next.map_or(rest.len(), |at| at + 1);
                self.skipped += gone as u64;
                rest = rest.get(gone..).unwrap_or_default();
            }
        }
        self.held = rest.to_vec();
    }

    /// The bytes at the end that made no packet.
    pub(super) fn finish(&mut self) -> Option<u64> {
        let left = self.skipped + self.held.len() as u64;
        *self = Self::default();
        (left > 0).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(pieces: &[&[u8]]) -> (Vec<u8>, Vec<u64>, Option<u64>) {
        let (mut framing, mut packets, mut lost) = (Framing::default(), Vec::new(), Vec::new());
        for piece in pieces {
            framing.push(piece, |framed| match framed {
                Framed::Packet(packet) => packets.push(packet[1]),
                Framed::Lost(bytes) => lost.push(bytes),
            });
        }
        (packets, lost, framing.finish())
    }

    #[test]
    fn what_is_no_packet_is_counted_and_left_out() {
        let packet = |mark: u8| [&[0x47, mark][..], &[0; PACKET - 2]].concat();
        let stream = [
            packet(1),
            vec![9; 3],
            packet(2),
            packet(3),
            // A false sync byte, with nothing where the next packet would be.
            vec![0x47, 9],
            packet(4),
            packet(5),
            vec![0x47; 5],
        ]
        .concat();
        let whole = frame(&[&stream]);
        // Before 4, the false start cannot be told from a packet that is followed by garbage: it is out of
        // step only at its end, and takes 4 with it.
        assert_eq!(whole.1.first(), Some(&3));
        assert!(
            whole.0.starts_with(&[1, 2, 3]) && whole.0.ends_with(&[5]),
            "{whole:?}"
        );
        for cut in 0..=stream.len() {
            let (start, end) = stream.split_at(cut);
            assert_eq!(frame(&[start, end]), whole);
        }
    }
}
