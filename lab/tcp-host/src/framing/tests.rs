use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const LIMIT: u32 = 1_000;

/// A stream of sections in parts, and the position of each part's content.
fn stream(sections: &[(u64, Vec<usize>)]) -> (Vec<u8>, Vec<(u64, Vec<u8>)>) {
    let (mut stream, mut contents) = (Vec::new(), Vec::new());
    let mut number = 0;
    for (skipped, parts) in sections {
        number += skipped;
        let length: usize = parts.iter().sum();
        let content: Vec<u8> = (0..length)
            .map(|at| (at as u64 * 7 + number) as u8)
            .collect();
        let mut offset = 0;
        for part in parts {
            let header = Header {
                part_length: *part as u32,
                position: stream.len() as u64,
                number,
                section_length: length as u32,
                part_offset: offset as u32,
                due_us: number * 10,
            };
            stream.extend(header.encode());
            stream.extend(&content[offset..offset + part]);
            offset += part;
        }
        contents.push((number, content));
        number += 1;
    }
    (stream, contents)
}

fn sections() -> impl Strategy<Value = Vec<(u64, Vec<usize>)>> {
    vec((0..3_u64, vec(1..80_usize, 1..4)), 1..12)
}

proptest! {
    /// However the stream is split, every section is returned whole and once.
    #[test]
    fn whole_streams_are_read_exactly(sections in sections(), cuts in vec(1..90_usize, 1..60)) {
        let (stream, contents) = stream(&sections);
        let mut reader = SectionReader::new(LIMIT);
        let mut rest = &stream[..];
        for cut in cuts.iter().cycle() {
            let (piece, after) = rest.split_at(rest.len().min(*cut));
            reader.data(piece).unwrap();
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        for (number, content) in contents {
            let section = reader.poll().unwrap();
            prop_assert_eq!(section.number, number);
            prop_assert_eq!(section.due_us, number * 10);
            prop_assert!(section.is_complete);
            prop_assert_eq!(section.bytes, content);
        }
        reader.finish();
        prop_assert_eq!(reader.poll(), None);
    }

    /// With arbitrary gaps, a section is complete exactly if its headers and its content arrived.
    /// Of the others, the beginning of their content is returned.
    #[test]
    fn sections_are_found_again_behind_gaps(
        sections in sections(),
        gaps in vec((0..2_000_usize, 1..120_usize), 0..6),
    ) {
        let (stream, contents) = stream(&sections);
        let mut is_missing = vec![false; stream.len()];
        for (start, length) in gaps {
            let start = start % stream.len();
            let end = (start + length).min(stream.len());
            is_missing[start..end].fill(true);
        }
        let mut reader = SectionReader::new(LIMIT);
        let mut at = 0;
        while at < stream.len() {
            let run = is_missing[at..].iter().take_while(|&&missing| missing == is_missing[at]);
            let end = at + run.count();
            if is_missing[at] {
                reader.gap((end - at) as u64);
            } else {
                reader.data(&stream[at..end]).unwrap();
            }
            at = end;
        }
        reader.finish();
        let received: Vec<_> = std::iter::from_fn(|| reader.poll()).collect();
        let mut at = 0;
        for ((_, parts), (number, content)) in sections.iter().zip(&contents) {
            let length = content.len() + parts.len() * HEADER;
            let is_whole = !is_missing[at..at + length].contains(&true);
            at += length;
            let of_it: Vec<_> = received.iter().filter(|one| one.number == *number).collect();
            prop_assert!(of_it.len() <= 1);
            prop_assert_eq!(of_it.iter().any(|one| one.is_complete), is_whole);
            for one in of_it {
                prop_assert!(content.starts_with(&one.bytes));
            }
        }
        prop_assert!(received.is_sorted_by(|a, b| a.number < b.number));
    }

    /// Any bytes are read as sections or refused with an error.
    #[test]
    fn any_bytes_are_read_or_refused(
        pieces in vec((any::<bool>(), vec(any::<u8>(), 0..100), any::<u32>()), 0..20),
    ) {
        let mut reader = SectionReader::new(LIMIT);
        for (is_gap, bytes, length) in pieces {
            if is_gap {
                reader.gap(u64::from(length));
            } else {
                let _ = reader.data(&bytes);
            }
        }
        reader.finish();
    }
}

#[test]
fn errors_name_the_value_and_what_was_expected() {
    let header = Header {
        part_length: 5,
        position: 0,
        number: 3,
        section_length: 5,
        part_offset: 0,
        due_us: 0,
    };
    let cases = [
        (
            Header {
                part_length: 6,
                ..header
            },
            "part of 6 bytes at 0",
        ),
        (
            Header {
                part_length: 0,
                ..header
            },
            "part of 0 bytes",
        ),
        (
            Header {
                position: 7,
                ..header
            },
            "position 7, expected 0",
        ),
        (
            Header {
                section_length: 2_000,
                ..header
            },
            "2000 bytes, expected at most 1000",
        ),
        (
            Header {
                part_offset: 2,
                part_length: 3,
                ..header
            },
            "part at 2 out of order",
        ),
    ];
    for (header, words) in cases {
        let error = SectionReader::new(LIMIT)
            .data(&header.encode())
            .unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
    let error = SectionReader::new(LIMIT).data(&[b'x'; HEADER]).unwrap_err();
    assert!(error.to_string().contains("0x78787878"), "{error}");
    let mut reader = SectionReader::new(LIMIT);
    reader.data(&header.encode()).unwrap();
    reader.data(b"hello").unwrap();
    let again = Header {
        position: 45,
        ..header
    };
    let error = reader.data(&again.encode()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("expected section 4 or a later one"),
        "{error}"
    );
}

#[test]
fn the_bytes_of_a_header_are_those_of_the_document() {
    let header = Header {
        part_length: 0x0102_0304,
        position: 0x0506_0708_090a_0b0c,
        number: 1,
        section_length: 0x1112_1314,
        part_offset: 2,
        due_us: u64::MAX,
    };
    let bytes = header.encode();
    let expected = [
        0x43, 0x54, 0x53, 0x31, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xa, 0xb, 0xc, 0, 0, 0, 0, 0, 0, 0, 1,
        0x11, 0x12, 0x13, 0x14, 0, 0, 0, 2, 255, 255, 255, 255, 255, 255, 255, 255,
    ];
    assert_eq!(bytes, expected);
    assert_eq!(Header::decode(&bytes), Ok(header));
}
