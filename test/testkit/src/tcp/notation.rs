//! Segments as one line of text, as in tcpdump.
//!
//! ```text
//! S 0+0 win 10000 <mss 100 ws 7 sackok ts 1/0>
//! P. 1+100 ack 1 win 10000 <sack 201-301,401-501>
//! . 1+100 ack 1 win 10000 <level 3 wave 7:1/6>      TCP-Real: the next level, and segment 1 of 6 of wave 7
//! . 701+100 ack 1 win 10000 <upd 701>
//! . 701+100 ack 1 win 10000 <upd 1/501-701>    (with a void)
//! │  │ │
//! │  │ └ payload
//! │  └ sequence number
//! └ flags: S F R P U E W and `.` for ACK; `-` for none
//! ```

use std::fmt;
use std::str::FromStr;

use comity_tcp::timeline::SeqUpdate;
use comity_tcp::{Flags, Options, SackBlock, Segment, Timestamps, Wave};
use comity_units::SeqNo;

const FLAGS: [(char, Flags); 8] = [
    ('S', Flags::SYN),
    ('F', Flags::FIN),
    ('R', Flags::RST),
    ('P', Flags::PSH),
    ('U', Flags::URG),
    ('E', Flags::ECE),
    ('W', Flags::CWR),
    ('.', Flags::ACK),
];

/// The fault of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotationError {
    line: String,
    at: String,
    expected: &'static str,
}

impl fmt::Display for NotationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "in segment {:?}: {:?}; expected {}",
            self.line, self.at, self.expected
        )
    }
}

impl std::error::Error for NotationError {}

/// The line of a segment.
pub fn render(segment: &Segment) -> String {
    let mut line: String = FLAGS
        .iter()
        .filter(|(_, flag)| segment.flags.contains(*flag))
        .map(|(letter, _)| letter)
        .collect();
    if line.is_empty() {
        line.push('-');
    }
    line += &format!(" {}+{}", segment.sequence, segment.payload);
    if segment.flags.contains(Flags::ACK) {
        line += &format!(" ack {}", segment.acknowledgement);
    }
    line += &format!(" win {}", segment.window);
    let options = render_options(&segment.options);
    if !options.is_empty() {
        line += &format!(" <{options}>");
    }
    line
}

fn render_options(options: &Options) -> String {
    let mut parts = Vec::new();
    if let Some(mss) = options.mss {
        parts.push(format!("mss {mss}"));
    }
    if let Some(scale) = options.window_scale {
        parts.push(format!("ws {scale}"));
    }
    if options.sack_permitted {
        parts.push("sackok".to_owned());
    }
    if let Some(timestamps) = options.timestamps {
        parts.push(format!("ts {}/{}", timestamps.value, timestamps.echo));
    }
    if let Some(update) = options.seq_update {
        let void = if update.has_void() {
            format!("/{}-{}", update.void_start, update.void_end)
        } else {
            String::new()
        };
        parts.push(format!("upd {}{void}", update.expected));
    }
    if !options.sack.is_empty() {
        let blocks: Vec<String> = options
            .sack
            .as_slice()
            .iter()
            .map(|block| format!("{}-{}", block.start, block.end))
            .collect();
        parts.push(format!("sack {}", blocks.join(",")));
    }
    if let Some(level) = options.level {
        parts.push(format!("level {level}"));
    }
    if let Some(wave) = options.wave {
        parts.push(format!(
            "wave {}:{}/{}",
            wave.wave, wave.position, wave.segments
        ));
    }
    parts.join(" ")
}

/// The segment of a line.
///
/// # Errors
/// If the line is not in the notation of this module.
pub fn parse(line: &str) -> Result<Segment, NotationError> {
    let error = |at: &str, expected| NotationError {
        line: line.to_owned(),
        at: at.to_owned(),
        expected,
    };
    let mut segment = Segment::default();
    let words = line.replace(['<', '>'], " ");
    let mut words = words.split_whitespace();
    let mut next = |expected| words.next().ok_or_else(|| error("the end", expected));

    for letter in next("flags")?.chars().filter(|&letter| letter != '-') {
        let (_, flag) = FLAGS
            .iter()
            .find(|(known, _)| *known == letter)
            .ok_or_else(|| error(&letter.to_string(), "flags out of `SFRPUEW.` or `-`"))?;
        segment.flags |= *flag;
    }
    let (sequence, payload) = pair(next("sequence+payload")?, '+')
        .ok_or_else(|| error(line, "sequence+payload such as `1+100`"))?;
    segment.sequence = SeqNo::new(sequence);
    segment.payload = payload;

    while let Ok(word) = next("") {
        if word == "sackok" {
            segment.options.sack_permitted = true;
            continue;
        }
        let value = next("a value")?;
        let bad = || error(value, "a value for the word before");
        match word {
            "ack" => segment.acknowledgement = SeqNo::new(number(value).ok_or_else(bad)?),
            "win" => segment.window = number(value).ok_or_else(bad)?,
            "mss" => segment.options.mss = Some(number(value).ok_or_else(bad)?),
            "ws" => segment.options.window_scale = Some(number(value).ok_or_else(bad)?),
            "ts" => {
                let (value, echo) = pair(value, '/').ok_or_else(bad)?;
                segment.options.timestamps = Some(Timestamps { value, echo });
            }
            "level" => segment.options.level = Some(number(value).ok_or_else(bad)?),
            "wave" => segment.options.wave = Some(wave(value).ok_or_else(bad)?),
            "upd" => {
                let (expected, void) = value.split_once('/').unwrap_or((value, ""));
                let expected = SeqNo::new(number(expected).ok_or_else(bad)?);
                let mut update = SeqUpdate::to(expected);
                if !void.is_empty() {
                    let (start, end) = pair(void, '-').ok_or_else(bad)?;
                    update.void_start = SeqNo::new(start);
                    update.void_end = SeqNo::new(end);
                }
                segment.options.seq_update = Some(update);
            }
            "sack" => {
                for block in value.split(',') {
                    let (start, end) = pair(block, '-').ok_or_else(bad)?;
                    let block = SackBlock {
                        start: SeqNo::new(start),
                        end: SeqNo::new(end),
                    };
                    if !segment.options.sack.push(block) {
                        return Err(error(value, "at most four blocks"));
                    }
                }
            }
            _ => {
                return Err(error(
                    word,
                    "ack, win, mss, ws, sackok, ts, sack, upd, level or wave",
                ));
            }
        }
    }
    Ok(segment)
}

fn number<N: FromStr>(text: &str) -> Option<N> {
    text.parse().ok()
}

fn wave(text: &str) -> Option<Wave> {
    let (wave, rest) = text.split_once(':')?;
    let (position, segments) = rest.split_once('/')?;
    Some(Wave {
        wave: number(wave)?,
        segments: number(segments)?,
        position: number(position)?,
    })
}

fn pair(text: &str, between: char) -> Option<(u32, u32)> {
    let (first, second) = text.split_once(between)?;
    Some((number(first)?, number(second)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_parse_back_to_the_same_segment() {
        for line in [
            "S 0+0 win 10000 <mss 100 ws 7 sackok ts 1/0>",
            "P. 1+100 ack 1 win 10000 <sack 201-301,401-501>",
            "F. 4294967295+0 ack 7 win 0",
            ". 1+100 ack 1 win 10 <ts 1/0 level 24 wave 65535:1/48>",
            "- 5+0 win 1",
        ] {
            assert_eq!(render(&parse(line).unwrap()), line);
        }
        assert_eq!(
            parse("X 1+0").unwrap_err().to_string(),
            "in segment \"X 1+0\": \"X\"; expected flags out of `SFRPUEW.` or `-`"
        );
        assert!(parse(". 1").is_err() && parse(". 1+0 ack").is_err());
    }
}
