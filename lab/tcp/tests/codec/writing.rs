//! Written headers: padding, room for blocks, and refused segments.

use comity_tcp::checksum::Checksum;
use comity_tcp::codec::{
    EncodeError, MAX_HEADER, MIN_HEADER, Ports, encode, encoded_length, sack_room,
};
use comity_tcp::{Options, SackBlock, SackBlocks, Segment, Timestamps, Wave};
use comity_units::SeqNo;

use super::{REAL_OPTIONS, TO_SERVER, blocks, real_options, sack, syn};

#[test]
fn options_alone_are_padded_to_whole_words() {
    let options_of = |options: Options| {
        let segment = Segment {
            options,
            ..Segment::default()
        };
        let mut buffer = [0; MAX_HEADER];
        let length = encode(
            &segment,
            Ports::default(),
            &TO_SERVER,
            Checksum::new(),
            &mut buffer,
        )
        .unwrap();
        buffer[MIN_HEADER..length].to_vec()
    };
    let none = Options::default();
    assert_eq!(options_of(none), [0_u8; 0]);
    assert_eq!(
        options_of(Options {
            mss: Some(0x0218),
            ..none
        }),
        [2, 4, 2, 0x18]
    );
    assert_eq!(
        options_of(Options {
            sack_permitted: true,
            ..none
        }),
        [1, 1, 4, 2]
    );
    assert_eq!(
        options_of(Options {
            window_scale: Some(14),
            ..none
        }),
        [1, 3, 3, 14]
    );
    assert_eq!(
        options_of(Options {
            timestamps: Some(Timestamps { value: 1, echo: 2 }),
            ..none
        }),
        [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]
    );
    assert_eq!(
        options_of(Options {
            sack: blocks(&[(3, 4)]),
            ..none
        }),
        [1, 1, 5, 10, 0, 0, 0, 3, 0, 0, 0, 4]
    );
    assert_eq!(options_of(real_options()), REAL_OPTIONS);
    assert_eq!(
        options_of(Options {
            mss: Some(536),
            sack_permitted: true,
            window_scale: Some(0),
            ..none
        }),
        [2, 4, 2, 0x18, 1, 1, 4, 2, 1, 3, 3, 0]
    );
}

#[test]
fn segments_that_cannot_be_written() {
    let try_encode = |segment: &Segment, buffer: &mut [u8]| {
        encode(
            segment,
            Ports::default(),
            &TO_SERVER,
            Checksum::new(),
            buffer,
        )
    };
    let mut buffer = [0xaa; MAX_HEADER];
    let four = blocks(&[(1, 2), (3, 4), (5, 6), (7, 8)]);
    let mut segment = sack();

    let too_small = EncodeError::BufferTooSmall {
        needed: 60,
        available: 59,
    };
    assert_eq!(try_encode(&segment, &mut buffer[..59]), Err(too_small));
    segment.options.sack = four;
    assert_eq!(encoded_length(&segment), 68);
    let too_long = EncodeError::OptionsTooLong { length: 48 };
    assert_eq!(try_encode(&segment, &mut buffer), Err(too_long));
    segment.options.sack = blocks(&[(5, 5)]);
    let empty = EncodeError::SackBlock {
        start: SeqNo::new(5),
        end: SeqNo::new(5),
    };
    assert_eq!(try_encode(&segment, &mut buffer), Err(empty));
    segment.options.sack = SackBlocks::EMPTY;
    segment.options.window_scale = Some(15);
    assert_eq!(
        try_encode(&segment, &mut buffer),
        Err(EncodeError::WindowScale { shift: 15 })
    );
    segment.options.window_scale = None;
    for position in [0, 49] {
        let wave = real_options().wave.map(|wave| Wave { position, ..wave });
        segment.options.wave = wave;
        assert_eq!(
            try_encode(&segment, &mut buffer),
            Err(EncodeError::Wave {
                wave: wave.unwrap()
            })
        );
    }
    segment.options.wave = None;
    segment.payload = 65_535 - 32 + 1;
    let over = EncodeError::TooLong { length: 65_536 };
    assert_eq!(try_encode(&segment, &mut buffer), Err(over));
    assert_eq!(
        buffer, [0xaa; MAX_HEADER],
        "a refused segment leaves the buffer unchanged"
    );
    segment.payload -= 1;
    assert_eq!(try_encode(&segment, &mut buffer), Ok(32));
}

#[test]
fn the_number_of_sack_blocks_matches_the_table() {
    let timestamps = Some(Timestamps::default());
    let none = Options::default();
    for (options, room) in [
        (none, 4),
        (
            Options {
                window_scale: Some(1),
                ..none
            },
            4,
        ),
        (
            Options {
                mss: Some(536),
                sack_permitted: true,
                ..none
            },
            3,
        ),
        (Options { timestamps, ..none }, 3),
        (real_options(), 3),
        (
            Options {
                timestamps,
                ..real_options()
            },
            1,
        ),
        (
            Options {
                timestamps,
                mss: Some(536),
                window_scale: Some(1),
                ..real_options()
            },
            0,
        ),
        (
            Options {
                timestamps,
                sack_permitted: true,
                ..none
            },
            3,
        ),
        (
            Options {
                mss: Some(536),
                sack_permitted: true,
                window_scale: Some(1),
                ..none
            },
            3,
        ),
        (
            Options {
                timestamps,
                mss: Some(536),
                ..none
            },
            2,
        ),
        (syn().options, 2),
    ] {
        assert_eq!(sack_room(&options), room, "{options:?}");
        for count in 1..=4 {
            let mut sack = SackBlocks::EMPTY;
            (0..count).for_each(|at| {
                sack.push(SackBlock {
                    start: SeqNo::new(at * 2),
                    end: SeqNo::new(at * 2 + 1),
                });
            });
            let segment = Segment {
                options: Options { sack, ..options },
                ..Segment::default()
            };
            let mut buffer = [0; MAX_HEADER];
            let written = encode(
                &segment,
                Ports::default(),
                &TO_SERVER,
                Checksum::new(),
                &mut buffer,
            );
            assert_eq!(
                written.is_ok(),
                count as usize <= room,
                "{count} beside {options:?}"
            );
        }
    }
}
