use super::*;

/// A PES packet of stream 0xe0, with the time stamp 0 if `timed`.
fn packet(timed: bool, bounded: bool, payload: &[u8]) -> Vec<u8> {
    let fields: &[u8] = if timed {
        &[0x80, 0x80, 5, 0x21, 0, 1, 0, 1]
    } else {
        &[0x80, 0, 0]
    };
    let length = if bounded {
        u8::try_from(fields.len() + payload.len()).expect("short")
    } else {
        0
    };
    [&[0, 0, 1, 0xe0, 0, length], fields, payload].concat()
}

fn part(payload: &[u8], begins: bool, is_filled: bool) -> Part<'_> {
    Part {
        payload,
        begins: begins.then(Marks::default),
        is_filled,
        is_suspect: false,
    }
}

fn bytes(units: Units) -> Vec<Result<Vec<u8>, Fault>> {
    { units.into_iter() }
        .map(|unit| unit.map(|unit| unit.bytes))
        .collect()
}

fn whole(units: Units) -> Vec<Vec<u8>> {
    { bytes(units).into_iter() }
        .map(|unit| unit.expect("whole"))
        .collect()
}

fn feed(codec: Codec, packets: &[Vec<u8>]) -> Vec<Result<Vec<u8>, Fault>> {
    let mut units = Units::new();
    let mut assembler = Assembler::default();
    for packet in packets {
        assembler.push(Some(codec), part(packet, true, false), 60, &mut units);
    }
    assembler.finish(Some(codec), &mut units);
    bytes(units)
}

const DELIMITER: [u8; 6] = [0, 0, 0, 1, 9, 0xf0];

#[test]
fn a_unit_continues_in_packets_that_begin_none() {
    let picture = [&DELIMITER[..], &[0, 0, 1, 0x65, 0x88]].concat();
    let units = feed(
        Codec::H264,
        &[
            packet(true, false, &picture),
            packet(false, true, &[1, 2]),
            packet(false, false, &picture),
            packet(true, false, &[3, 4]),
        ],
    );
    let first = [&picture[..], &[1, 2]].concat();
    let second = [&picture[..], &[3, 4]].concat();
    assert_eq!(units, [Ok(first), Ok(second)]);
}

/// ISO/IEC 13818-1 2.4.3.7: a time stamp belongs to the unit that begins in its PES packet, and
/// a unit begins with its headers (ITU-T H.264 7.4.1.2.3).
#[test]
fn headers_in_a_pes_packet_of_their_own_are_those_of_the_next_picture() {
    let slice = |number: u8| [0, 0, 1, 0x65, 0x88, number, number];
    for is_bounded in [false, true] {
        for (is_head_timed, is_rest_timed) in [(true, true), (true, false), (false, true)] {
            let pictures = (0..20).flat_map(|number| {
                [
                    packet(is_head_timed, is_bounded, &DELIMITER),
                    packet(is_rest_timed, is_bounded, &slice(number)),
                ]
            });
            let (mut assembler, mut units) = (Assembler::default(), Units::new());
            for packet in pictures {
                let part = part(&packet, true, false);
                assembler.push(Some(Codec::H264), part, 60, &mut units);
            }
            assembler.finish(Some(Codec::H264), &mut units);
            let what = (is_bounded, is_head_timed, is_rest_timed);
            let is_timed = |unit: &Whole| unit.times == Times::Presentation(0);
            assert!(units.iter().flatten().all(is_timed), "{what:?}");
            let expected = (0..20).map(|number| [&DELIMITER[..], &slice(number)].concat());
            assert!(whole(units).into_iter().eq(expected), "{what:?}");
        }
    }
}

/// A bit error in the start code of a delimiter: its picture seems to begin inside its PES packet.
#[test]
fn a_damaged_start_delays_later_pictures_for_a_limited_time() {
    const DAMAGED: u16 = 20;
    let number = |number: u16| [0x41 + (number / 100) as u8, 0x41 + (number % 100) as u8];
    let (mut assembler, mut late) = (Assembler::default(), Vec::new());
    for picture in 0..2_400 {
        let slice = [&[0, 0, 1, 0x65, 0x88][..], &number(picture)].concat();
        let mut delimiter = DELIMITER;
        delimiter[3] |= if picture == DAMAGED { 0x10 } else { 0 };
        let packet = packet(true, false, &[&delimiter[..], &slice].concat());
        let mut units = Units::new();
        assembler.push(
            Some(Codec::H264),
            part(&packet, true, true),
            1_000,
            &mut units,
        );
        let is_own = |unit: &Whole| unit.bytes.ends_with(&number(picture));
        if !units.iter().flatten().any(is_own) {
            late.push(picture);
        }
    }
    // The end of a PES packet is known after the first ones.
    let (first, damaged) = late.split_at(late.partition_point(|&picture| picture < DAMAGED));
    assert!(
        first.len() >= 7 && first.iter().all(|&picture| picture < 9),
        "{first:?}"
    );
    let last = *damaged.last().unwrap();
    assert!((500..2_200).contains(&last), "{last}");
}

#[test]
fn headers_behind_a_picture_are_those_of_the_next_one() {
    let slice = |number: u8| [0, 0, 1, 0x65, 0x88, number];
    let picture = |number: u8| [&DELIMITER[..], &slice(number)].concat();
    for is_bounded in [false, true] {
        let packets: Vec<_> = (0..30)
            .map(|number| match number {
                ..10 => picture(number),
                10 => [&picture(10), &DELIMITER[..]].concat(),
                11..29 => [&slice(number), &DELIMITER[..]].concat(),
                _ => slice(number).to_vec(),
            })
            .map(|bytes| packet(true, is_bounded, &bytes))
            .collect();
        let units = feed(Codec::H264, &packets);
        let expected = (0..30).map(|number| Ok(picture(number)));
        assert!(units.into_iter().eq(expected), "{is_bounded}");
    }
}

#[test]
fn audio_is_returned_as_soon_as_it_is_complete() {
    let mut units = Units::new();
    let mut assembler = Assembler::default();
    let whole = packet(true, true, &[1, 2]);
    let (start, end) = whole.split_at(10);
    assembler.push(Some(Codec::Audio), part(start, true, false), 60, &mut units);
    assembler.push(Some(Codec::Audio), part(end, false, false), 60, &mut units);
    let [Ok(unit)] = &units[..] else {
        panic!("{units:?}")
    };
    assert_eq!(unit.times, Times::Presentation(0));
}

/// Pictures in transport packets: the beginning of a PES packet without a length, and a last
/// packet with stuffing.
fn pictures(count: usize) -> Vec<[Vec<u8>; 2]> {
    let picture = |number: usize| {
        let number = u8::try_from(number).expect("few");
        let start = [&DELIMITER[..], &[0, 0, 1, 0x65, 0x88, number]].concat();
        [packet(true, false, &start), vec![number; 3]]
    };
    (0..count).map(picture).collect()
}

fn push(assembler: &mut Assembler, payload: &[u8], begins: bool, fills: bool) -> Vec<u8> {
    let mut units = Units::new();
    let part = part(payload, begins, fills);
    assembler.push(Some(Codec::H264), part, 600, &mut units);
    whole(units).concat()
}

#[test]
fn stuffing_ends_a_picture_once_the_stream_is_known() {
    let mut assembler = Assembler::default();
    for (number, [start, end]) in pictures(20).iter().enumerate() {
        // Up to the ninth picture, each is returned when the next one begins. The ninth is
        // returned at its own end.
        let given = push(&mut assembler, start, true, false);
        assert_eq!(given.len(), if (1..9).contains(&number) { 15 } else { 0 });
        let given = push(&mut assembler, end, false, true);
        assert_eq!(given.len(), if number >= 8 { 15 } else { 0 }, "{number}");
    }
    // A picture without stuffing is returned when the next one begins.
    let [start, end] = &pictures(2)[1];
    assert_eq!(push(&mut assembler, start, true, false), []);
    assert_eq!(push(&mut assembler, end, false, false), []);
    assert_eq!(push(&mut assembler, start, true, false).len(), 15);
}

/// Later parts of a picture have no time stamp.
#[test]
fn pictures_that_are_too_long_for_a_pes_packet_stay_whole() {
    let picture = |number: u8| {
        let mut bytes = [&DELIMITER[..], &[0, 0, 1, 0x65, 0x88, number]].concat();
        bytes.resize(if number < 10 { 100 } else { 250 }, 0x55);
        bytes
    };
    for most in [110, 220] {
        let (mut assembler, mut units) = (Assembler::default(), Units::new());
        for picture in (0..20).map(picture) {
            for (at, bytes) in picture.chunks(most).enumerate() {
                let bytes = packet(at == 0, true, bytes);
                let part = part(&bytes, true, false);
                assembler.push(Some(Codec::H264), part, 600, &mut units);
            }
        }
        assembler.finish(Some(Codec::H264), &mut units);
        assert!(whole(units).into_iter().eq((0..20).map(picture)), "{most}");
    }
    // A picture no longer than those before is returned at its own end.
    let mut assembler = Assembler::default();
    for number in 0..10 {
        let bytes = packet(true, true, &picture(number));
        let mut units = Units::new();
        let part = part(&bytes, true, false);
        assembler.push(Some(Codec::H264), part, 600, &mut units);
        let expected = match number {
            0 => 0,
            7 => 2,
            _ => 1,
        };
        assert_eq!(units.len(), expected, "{number}");
    }
}

#[test]
fn stuffing_within_a_picture_disables_the_rule_at_no_cost() {
    for learns_late in [false, true] {
        let mut assembler = Assembler::default();
        let (mut given, mut sent) = (Vec::new(), Vec::new());
        for (number, [start, end]) in pictures(30).iter().enumerate() {
            let fills = number == 12 || !learns_late;
            given.push(push(&mut assembler, start, true, fills));
            given.push(push(&mut assembler, end, false, true));
            sent.extend([&start[14..], end].concat());
        }
        let mut units = Units::new();
        assembler.finish(Some(Codec::H264), &mut units);
        given.extend(whole(units));
        assert_eq!(given.concat(), sent, "{learns_late}");
        let early = given.chunks(2).take(30).filter(|pair| pair[1].len() == 15);
        // From the ninth picture up to the one that disproves the rule, or none.
        assert_eq!(early.count(), if learns_late { 4 } else { 0 });
    }
}

#[test]
fn a_break_after_stuffing_damages_no_picture() {
    for (count, is_filled, is_certain) in [(12, true, true), (12, false, false), (5, true, false)] {
        let mut assembler = Assembler::default();
        let mut units = Units::new();
        for (number, [start, end]) in pictures(count).iter().enumerate() {
            let fills = number + 1 < count || is_filled;
            for part in [part(start, true, false), part(end, false, fills)] {
                assembler.push(Some(Codec::H264), part, 600, &mut units);
            }
        }
        let certain = assembler.interrupt(Some(Codec::H264), true, &mut units);
        assert_eq!(certain, is_certain, "{count}, {is_filled}");
        assembler.finish(Some(Codec::H264), &mut units);
        let damaged: Vec<bool> = { units.iter().flatten() }
            .map(|unit| unit.damaged)
            .collect();
        let expected: Vec<bool> = (1..=count)
            .map(|number| number == count && !is_certain)
            .collect();
        assert_eq!(damaged, expected, "{count}, {is_filled}");
        assert_eq!(whole(units).concat().len(), 15 * count);
    }
}

/// Whether each unit is damaged, and its length.
fn lengths(units: &Units) -> Vec<Result<(bool, usize), Fault>> {
    let of = |unit: &Whole| (unit.damaged, unit.bytes.len());
    { units.iter() }
        .map(|unit| unit.as_ref().map(of).map_err(|&fault| fault))
        .collect()
}

#[test]
fn missing_data_is_between_the_bytes_that_came() {
    let bounded = packet(true, true, &[9; 40]);
    let next = packet(true, true, &[8; 5]);
    // The bytes from the 20th up to this one are missing.
    for (to, left) in [(28, 32), (54, 6)] {
        let (mut assembler, mut units) = (Assembler::default(), Units::new());
        assembler.push(None, part(&bounded[..20], true, false), 600, &mut units);
        assert!(!assembler.interrupt(None, false, &mut units));
        assembler.push(None, part(&bounded[to..], false, false), 600, &mut units);
        assembler.push(None, part(&next, true, false), 600, &mut units);
        assert_eq!(lengths(&units), [Ok((true, left)), Ok((false, 5))], "{to}");
    }
    // The rest of a PES packet whose header is missing is dropped if it follows a whole PES
    // packet.
    let (mut assembler, mut units) = (Assembler::default(), Units::new());
    assembler.push(None, part(&bounded, true, false), 600, &mut units);
    assert!(!assembler.interrupt(None, false, &mut units));
    for _ in 0..3 {
        assembler.push(None, part(&[7; 9], false, false), 600, &mut units);
    }
    assembler.push(None, part(&next, true, false), 600, &mut units);
    assert!(assembler.interrupt(None, true, &mut units));
    let expected = [Ok((false, 40)), Err(Fault::Headless), Ok((false, 5))];
    assert_eq!(lengths(&units), expected);
}

#[test]
fn a_pes_packet_is_as_long_as_its_bytes_whatever_it_says() {
    let mut stream = Vec::new();
    for number in 0..12_u8 {
        let mut bytes = packet(true, true, &[number; 40]);
        // Too short by half, too long, or with stuffing after it.
        match number % 4 {
            0 => bytes[5] -= 20,
            1 => bytes[5] += 7,
            2 => bytes.extend([0xff; 3]),
            _ => {}
        }
        stream.push(bytes);
    }
    for cut in [10, 20, 30, 34, 54] {
        let (mut assembler, mut units) = (Assembler::default(), Units::new());
        for bytes in &stream {
            let (start, end) = bytes.split_at(cut);
            for (bytes, begins) in [(start, true), (end, false)] {
                if begins || !bytes.is_empty() {
                    assembler.push(None, part(bytes, begins, false), 600, &mut units);
                }
            }
        }
        assembler.finish(None, &mut units);
        let reported = units.iter().filter(|unit| unit.is_err()).count();
        assert_eq!(reported, 1, "{cut}");
        units.retain(Result::is_ok);
        assert!(units.iter().flatten().all(|unit| !unit.damaged), "{cut}");
        let all: Vec<u8> = (0..12).flat_map(|number| [number; 40]).collect();
        assert_eq!(whole(units).concat(), all, "{cut}");
    }
}

#[test]
fn wrong_lengths_and_units_that_are_too_long_are_reported() {
    let mut cut = packet(true, true, &[1, 2, 3]);
    cut.truncate(15);
    assert_eq!(
        feed(Codec::Audio, &[cut, packet(true, true, &[4])]),
        [Err(Fault::Length), Ok(vec![1]), Ok(vec![4])]
    );
    let long = packet(true, false, &[7; 60]);
    assert_eq!(
        feed(Codec::H264, &[long, packet(true, false, &[5])]),
        [Err(Fault::Oversized(74)), Ok(vec![5])]
    );
}

/// Sound in a PES packet that never ends. Its bytes are copied into the packet, which is not
/// counted, and once into the unit.
#[test]
fn sound_without_end_is_copied_a_limited_number_of_times() {
    const LENGTH: usize = 4 << 20;
    let mut assembler = Assembler::default();
    let mut units = Units::new();
    let mut push = |payload: &[u8], begins: bool, units: &mut Units| {
        let part = part(payload, begins, false);
        assembler.push(Some(Codec::Audio), part, 16 << 20, units);
    };
    // Without frames, and after the beginning of one of 8,191 bytes (ADTS, 48 kHz).
    let frame = [0xff, 0xf1, 0x4c, 0x83, 0xff, 0xff, 0xfc];
    for carried in [&frame[..0], &frame] {
        push(&packet(false, true, carried), true, &mut units);
        push(&packet(false, false, &[]), true, &mut units);
        units.clear();
        let steps = work::of(|| {
            for _ in 0..LENGTH / 184 {
                push(&[0; 184], false, &mut units);
            }
            push(&packet(false, false, &[]), true, &mut units);
        });
        assert!((LENGTH / 2..2 * LENGTH).contains(&steps), "{steps}");
        let units = bytes(core::mem::take(&mut units));
        let came: usize = units.iter().flatten().map(Vec::len).sum();
        assert_eq!(came, carried.len() + LENGTH / 184 * 184);
    }
}

/// Thousands of PES packets of one byte, and then headers and slices of one picture in turn.
#[test]
fn pes_packets_of_a_picture_are_looked_through_a_limited_number_of_times() {
    const PACKETS: usize = 20_000;
    const SLICES: usize = 1_000;
    let mut assembler = Assembler::default();
    let mut units = Units::new();
    let mut push = |payload: &[u8], units: &mut Units| {
        let packet = packet(false, false, payload);
        assembler.push(
            Some(Codec::H264),
            part(&packet, true, true),
            16 << 20,
            units,
        );
    };
    let picture = [&DELIMITER[..], &[0, 0, 1, 0x65, 0x88]].concat();
    push(&picture, &mut units);
    let steps = work::of(|| {
        for _ in 0..PACKETS {
            push(&[0x80], &mut units);
        }
    });
    // The payload of each is copied, and its beginning too.
    assert!((PACKETS..4 * PACKETS).contains(&steps), "{steps}");
    // `first_mb_in_slice` is 1 for this slice, so that the picture goes on.
    let slices = [&DELIMITER[..], &[0, 0, 1, 0x65, 0x46, 0x80]]
        .concat()
        .repeat(SLICES);
    let steps = work::of(|| {
        push(&slices, &mut units);
        push(&picture, &mut units);
    });
    let looked = SLICES * 16;
    assert!(
        (SLICES..looked + 3 * slices.len()).contains(&steps),
        "{steps}"
    );
    assembler.finish(Some(Codec::H264), &mut units);
    let lengths: Vec<usize> = whole(units).iter().map(Vec::len).collect();
    let first = picture.len() + PACKETS + slices.len();
    assert_eq!(lengths, [first, picture.len()]);
}
