//! Streams with a PID more.

use comity_media::PACKET;

use crate::remux::crc;

const MAP: u16 = 0x1000;

fn pid(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[1] & 0x1f, packet[2]])
}

/// Lists one more stream of this type in the map.
pub(crate) fn with_stream(stream: &mut [u8], extra: u16, stream_type: u8) {
    for packet in stream
        .chunks_mut(PACKET)
        .filter(|packet| pid(packet) == MAP)
    {
        let end = 5 + 3 + usize::from(packet[7]) - 4;
        let [high, low] = (0xe000 | extra).to_be_bytes();
        packet[end..end + 5].copy_from_slice(&[stream_type, high, low, 0xf0, 0]);
        packet[7] += 5;
        let sum = crc(&packet[5..end + 5]);
        packet[end + 5..end + 9].copy_from_slice(&sum.to_be_bytes());
    }
}

/// A packet of 184 bytes of payload.
pub(crate) fn packet(pid: u16, counter: usize, begins: bool, payload: &[u8]) -> [u8; PACKET] {
    let mut packet = [0xff; PACKET];
    let [high, low] = pid.to_be_bytes();
    let begins = if begins { 0x40 } else { 0 };
    packet[..4].copy_from_slice(&[0x47, high | begins, low, 0x10 | (counter % 16) as u8]);
    packet[4..4 + payload.len()].copy_from_slice(payload);
    packet
}
