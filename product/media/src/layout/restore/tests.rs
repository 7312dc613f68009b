use super::super::model::{Made, SectionRef};
use super::*;
use crate::layout::{decode, format};
use crate::work;

/// Each packet of a layout may consist of 184 parts of sections.
#[test]
fn layouts_that_wait_take_no_more_memory_than_they_count() {
    let part = |number: u16| Run {
        section: SectionRef::new(1, number.into(), &[], 1),
        from: 0,
        to: 1,
    };
    let packet = |at: u16| {
        Packet::Made(Made {
            pid: 0x100,
            counter: (at % 16) as u8,
            has_payload: true,
            runs: (0..184).map(|run| part(at * 184 + run)).collect(),
            ..Made::default()
        })
    };
    let layout = Layout {
        packets: (0..128).map(packet).collect(),
        ..Layout::default()
    };
    let layout = decode(&format::encode(&layout)).expect("a layout");
    let runs = layout.packets.iter().map(|packet| packet.runs().len());
    assert_eq!(runs.sum::<usize>(), 128 * 184);
    let each = layout.packets.len() * size_of::<Packet>() + 128 * 184 * size_of::<Run>();
    let (mut restorer, mut out) = (Restorer::default(), Vec::new());
    for number in 0..400 {
        restorer.layout(number, layout.clone(), &mut out);
        let waiting = restorer.queue.len() + usize::from(restorer.head.is_some());
        assert!(restorer.held() >= waiting * each, "{number}");
        assert!(waiting * each <= MAX_HELD + each, "{waiting}");
    }
    assert!(400 * each > 2 * MAX_HELD);
}

/// Each packet is on a PID of its own, and its section is missing.
#[test]
fn missing_packets_of_a_layout_are_replaced_in_one_look() {
    let packet = |number: u16| Packet::Whole {
        pid: number,
        counter: (number % 16) as u8,
        run: Run {
            section: SectionRef::new(5, number.into(), &[], PACKET),
            from: 0,
            to: PACKET as u32,
        },
    };
    let layout = Layout {
        packets: (0..4_096).map(packet).collect(),
        ..Layout::default()
    };
    let (mut restorer, mut out) = (Restorer::default(), Vec::new());
    let steps = work::of(|| {
        restorer.layout(0, layout, &mut out);
        restorer.finish(&mut out);
    });
    assert_eq!((out.len(), steps), (4_096, 4_096));
}
