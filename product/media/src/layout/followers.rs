//! The order of the packets of each PID in a layout.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::model::Packet;
use crate::work;

/// Finds the next packet on the PID of another one. The packets are looked through once, for the
/// first question.
#[derive(Debug, Default)]
pub(super) struct Followers(OnceLock<Vec<Next>>);

/// The positions of the packets that follow on a PID.
#[derive(Clone, Copy, Debug, Default)]
struct Next {
    any: Option<usize>,
    /// The next one that advances the counter.
    counted: Option<usize>,
}

impl Followers {
    /// The packet that follows the packet at this position on its PID.
    pub(super) fn next<'a>(&self, packets: &'a [Packet], at: usize) -> Option<&'a Packet> {
        packets.get(self.of(packets, at).any?)
    }

    /// The packet that advances the counter next on the PID of the packet at this position.
    pub(super) fn next_counted<'a>(&self, packets: &'a [Packet], at: usize) -> Option<&'a Packet> {
        packets.get(self.of(packets, at).counted?)
    }

    fn of(&self, packets: &[Packet], at: usize) -> Next {
        let all = self.0.get_or_init(|| all(packets));
        all.get(at).copied().unwrap_or_default()
    }
}

fn all(packets: &[Packet]) -> Vec<Next> {
    let mut first: BTreeMap<u16, Next> = BTreeMap::new();
    let mut all = vec![Next::default(); packets.len()];
    for (at, (packet, next)) in packets.iter().zip(&mut all).enumerate().rev() {
        work::count(1);
        let first = first.entry(packet.pid()).or_default();
        *next = *first;
        first.any = Some(at);
        if packet.counter().is_some() {
            first.counted = Some(at);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::model::{Field, Made, Null, Run, SectionRef};
    use super::*;

    fn whole(pid: u16, number: u16) -> Packet {
        let section = SectionRef {
            stream: 5,
            number,
            length: 188,
            hash: 7,
        };
        let run = Run {
            section,
            from: 0,
            to: 188,
        };
        let counter = (number & 0x0f) as u8;
        Packet::Whole { pid, counter, run }
    }

    #[test]
    fn the_next_packet_is_the_first_one_behind() {
        let uncounted = |pid: u16| {
            Packet::Made(Made {
                pid,
                field: Some(Field::default()),
                ..Made::default()
            })
        };
        let packets: Vec<Packet> = (0..60_u16)
            .map(|number| match number % 7 {
                0 => Packet::Null(Null::PLAIN),
                1 | 5 => uncounted(number % 4),
                _ => whole(number % 3, number),
            })
            .collect();
        let followers = Followers::default();
        for (at, packet) in packets.iter().enumerate() {
            let mut behind = packets[at + 1..].iter();
            let is_it = |next: &&Packet| next.pid() == packet.pid();
            assert_eq!(followers.next(&packets, at), behind.clone().find(is_it));
            let counted = behind.find(|next| is_it(next) && next.counter().is_some());
            assert_eq!(followers.next_counted(&packets, at), counted);
        }
        assert_eq!(followers.next(&packets, 60), None);
    }
}
