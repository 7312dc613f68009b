//! `docs/protocol/media.md` against the code.

use comity_media::{FrameType, Header, HeaderError, Importance, Times, Unit};

const PAGE: &str = include_str!("../../../../docs/protocol/media.md");

/// The bytes of a block: hexadecimal, `ff*3` for three of them, and comments after `#`.
fn bytes(block: &str) -> Vec<u8> {
    let byte = |text| u8::from_str_radix(text, 16).expect("a byte in hexadecimal");
    let words = block
        .lines()
        .filter_map(|line| line.split('#').next())
        .flat_map(str::split_whitespace);
    words
        .flat_map(|word| match word.split_once('*') {
            Some((text, count)) => vec![byte(text); count.parse().expect("a count")],
            None => vec![byte(word)],
        })
        .collect()
}

fn examples() -> Vec<Vec<u8>> {
    PAGE.split("```media\n")
        .skip(1)
        .map(|after| bytes(after.split("```").next().expect("the example ends")))
        .collect()
}

/// The examples of the page as values of the code, and the length of the data after each header.
fn expected() -> [(Header, usize); 6] {
    let unit = Unit {
        pid: 256,
        stream_type: 0x1b,
        stream_id: 0xe0,
        frame: FrameType::Bidirectional { referenced: false },
        times: Times::Both {
            presentation: 4_328_719_365,
            decoding: 4_328_718_336,
        },
        random_access: false,
        discontinuity: true,
        aligned: true,
    };
    let table = Header::Table {
        pid: 0,
        repeated: true,
    };
    [
        (Header::Unit(unit), 6),
        (table, 16),
        (Header::Packets, 188),
        (Header::Raw, 5),
        (
            Header::Picture(FrameType::Predicted { referenced: true }),
            8,
        ),
        (Header::Layout, 2),
    ]
}

#[test]
fn the_headers_on_the_page_are_read_and_written() {
    let examples = examples();
    assert_eq!(examples.len(), 6, "one for each kind");
    for (example, (header, length)) in examples.iter().zip(expected()) {
        let (read, rest) = Header::decode(example).expect("an example that reads");
        assert_eq!((read, rest.len()), (header, length));
        let mut written = Vec::new();
        header.encode(&mut written);
        written.extend(rest);
        assert_eq!(&written, example);
    }
}

/// Each example with one fault that the page forbids.
#[test]
fn forms_that_the_page_forbids_are_refused() {
    let examples = examples();
    for (example, at, byte, error) in [
        (0, 0, 0x21, HeaderError::Version(2)),
        (0, 0, 0x17, HeaderError::Kind(7)),
        (0, 1, 0x1a, HeaderError::Reserved { at: 1 }),
        (0, 1, 0x3b, HeaderError::Reserved { at: 1 }),
        (0, 2, 0x20, HeaderError::Reserved { at: 2 }),
        (0, 6, 10, HeaderError::Frame(10)),
        (0, 7, 2, HeaderError::Reserved { at: 7 }),
        (1, 1, 2, HeaderError::Reserved { at: 1 }),
        (1, 4, 0xff, HeaderError::Table),
        (1, 19, 0, HeaderError::Table),
        (2, 1, 0x46, HeaderError::Packets),
        (4, 1, 7, HeaderError::Frame(7)),
        (4, 1, 9, HeaderError::Frame(9)),
    ] {
        let mut payload = examples[example].clone();
        payload[at] = byte;
        assert_eq!(
            Header::decode(&payload),
            Err(error),
            "example {example} with {byte:#x} at {at}"
        );
    }
}

#[test]
fn the_importances_on_the_page_are_those_of_the_code() {
    let (_, after) = PAGE
        .split_once("| what | importance |\n")
        .expect("the page has the table");
    let on_the_page: Vec<&str> = after
        .lines()
        .skip(1)
        .map_while(|line| line.strip_suffix(" |")?.rsplit("| ").next())
        .collect();
    let frames = [
        FrameType::Table,
        FrameType::Parameters,
        FrameType::Audio,
        FrameType::Opaque,
        FrameType::Key,
        FrameType::Predicted { referenced: true },
        FrameType::Slice,
        FrameType::Bidirectional { referenced: true },
        FrameType::Predicted { referenced: false },
        FrameType::Bidirectional { referenced: false },
    ];
    assert_eq!(on_the_page.len(), frames.len());
    for (text, frame) in on_the_page.iter().zip(frames) {
        let Some((most, _)) = text.split_once(" − n, at least 100") else {
            assert_eq!(text.parse(), Ok(Importance::of(frame, 0).0), "{frame:?}");
            continue;
        };
        let most: u8 = most.parse().expect("a number");
        for position in [1, 2, 90, 91, 200] {
            let expected = most.saturating_sub(position).max(100);
            assert_eq!(Importance::of(frame, position).0, expected, "{position}");
        }
    }
    assert_eq!(
        Importance::of(FrameType::Intra, 0),
        Importance::of(FrameType::Key, 0)
    );
}
