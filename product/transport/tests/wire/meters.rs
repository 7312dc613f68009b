//! The meters against the vectors of `docs/protocol/feedback.md`.

use comity_congestion::{Arrival, Meter, Report, Tag, table};
use comity_units::{DataSize, PacketNumber, Span, Time};

const PAGE: &str = include_str!("../../../../docs/protocol/feedback.md");

/// The lines of the block with this mark, as words, without empty lines and comments.
fn lines(mark: &str) -> Vec<Vec<&'static str>> {
    let (_, after) = PAGE
        .split_once(&format!("```{mark}\n"))
        .expect("the page has the block");
    let (block, _) = after.split_once("```").expect("the block ends");
    block
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default())
        .map(|line| line.split_whitespace().collect())
        .filter(|words: &Vec<&str>| !words.is_empty())
        .collect()
}

fn number<T: std::str::FromStr>(word: &str) -> T {
    word.parse()
        .unwrap_or_else(|_| panic!("{word:?} is no number"))
}

fn build(name: &str, parameters: &str) -> Box<dyn Meter> {
    let row = table::find(name).expect("the table has the controller");
    let parameters = row.parse_list(parameters).expect("the parameters are its");
    row.build_meter(&table::Setup::new(PACKET), &parameters)
        .expect("it has a meter")
        .expect("the parameters are admissible")
}

const PACKET: DataSize = DataSize::new(1_000);

fn arrive(meter: &mut dyn Meter, now: Time, tag: Tag) {
    meter.on_arrival(&Arrival {
        now,
        number: PacketNumber::ZERO,
        payload: PACKET,
        wire: PACKET,
        marked: false,
        tag,
    });
}

#[test]
fn the_page_lists_all_meters() {
    let on_the_page: Vec<&str> = PAGE
        .lines()
        .skip_while(|line| !line.starts_with("|---"))
        .skip(1)
        .map_while(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    let mut there: Vec<&str> = table::TABLE
        .iter()
        .filter(|row| row.has_meter())
        .map(|row| row.name)
        .collect();
    there.sort_unstable();
    assert_eq!(on_the_page, there);
}

/// The ranges and defaults in the page's table, against the table of controllers.
#[test]
fn the_parameters_of_the_page_have_its_defaults() {
    for (name, expected) in [("real", 7), ("tfrc", 7)] {
        let (_, after) = PAGE
            .split_once(&format!("\n## {name}\n"))
            .expect("the meter has a chapter");
        let chapter = after.split("\n## ").next().unwrap_or_default();
        let row = table::find(name).expect("the table has the controller");
        let mut found = 0;
        for line in chapter.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = line.split('|').map(|cell| cell.trim()).collect();
            let (parameter, default) = (cells[1].trim_matches('`'), cells[3].trim_matches('`'));
            let known = row
                .parameters
                .iter()
                .find(|known| known.name == parameter)
                .unwrap_or_else(|| panic!("{name} has no parameter {parameter}"));
            assert_eq!(known.default.to_string(), default, "{name}, {parameter}");
            found += 1;
        }
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn psp_counts_rounds_as_on_the_page() {
    let mut meter = build("psp", "");
    for line in lines("psp") {
        let at = Time::from_millis(number(line[0]));
        match line[1..] {
            ["packet", round, rtt] => arrive(
                &mut *meter,
                at,
                Tag::Round {
                    round: number(round),
                    rtt: Span::from_millis(number(rtt)),
                },
            ),
            ["due", "-"] => assert_eq!(meter.wakeup(), None, "{line:?}"),
            ["due", due] => {
                let due = Time::from_millis(number(due));
                assert_eq!(meter.wakeup(), Some(due), "{line:?}");
            }
            ["report", "-"] => assert_eq!(meter.report(at), Report::None, "{line:?}"),
            ["report", round, packets] => assert_eq!(
                meter.report(at),
                Report::Count {
                    round: number(round),
                    packets: number(packets),
                },
                "{line:?}"
            ),
            _ => panic!("{line:?}"),
        }
    }
}

#[test]
fn real_chooses_levels_as_on_the_page() {
    let mut meter = build("real", "");
    let mut count = 0;
    for line in lines("real") {
        match line[..] {
            ["parameters"] => meter = build("real", ""),
            ["parameters", parameters] => meter = build("real", parameters),
            [first, apart, wave, segments, positions, level] => {
                let first_at = Time::from_millis(number(first));
                let apart = Span::from_millis(number(apart));
                let (from, to) = positions.split_once('-').expect("a range");
                let from: u16 = number(from);
                for position in from..=number(to) {
                    assert_eq!(meter.wakeup(), None, "it is never due by itself");
                    let tag = Tag::Wave {
                        wave: number(wave),
                        segments: number(segments),
                        position,
                    };
                    arrive(
                        &mut *meter,
                        first_at + apart * u64::from(position - from),
                        tag,
                    );
                }
                let expected = match level {
                    "-" => Report::None,
                    level => Report::Wave {
                        level: number(level),
                    },
                };
                assert_eq!(meter.report(first_at), expected, "{line:?}");
                count += 1;
            }
            _ => panic!("{line:?}"),
        }
    }
    assert!(count > 10, "{count} rows");
}

#[test]
fn tfrc_reports_as_on_the_page() {
    let block = lines("tfrc");
    let missing: Vec<u32> = block[0][1..].iter().map(|word| number(word)).collect();
    assert_eq!((block[0][0], missing.len()), ("missing", 4));
    let mut meter = build("tfrc", "");
    let mut reports = Vec::new();
    for number in (0..400_u32).filter(|number| !missing.contains(number)) {
        let now = Time::from_millis(1_000 + u64::from(number) * 10);
        let rtt = Span::from_millis(100);
        arrive(&mut *meter, now, Tag::Numbered { number, rtt });
        if meter.wakeup().is_some_and(|due| due <= now) {
            meter.on_wakeup(now);
            reports.push((now, meter.report(now)));
        }
    }
    assert!(block.len() > 8);
    for line in &block[1..] {
        let at = Time::from_millis(number(line[0]));
        let report = reports.iter().find(|(time, _)| *time == at);
        let Some((_, Report::LossEvents { rate, received })) = report else {
            panic!("{line:?}: {report:?}")
        };
        let expected: f64 = number(line[1]);
        // As many digits as on the page.
        assert!(
            (rate - expected).abs() <= expected * 1e-6,
            "{line:?}: {rate}"
        );
        assert_eq!(received.as_bps(), number::<u64>(line[2]), "{line:?}");
    }
}

/// Every ack-eliciting packet is answered at once, and these meters have nothing else to report.
#[test]
fn four_meters_answer_every_packet() {
    for name in ["gcc", "iftp", "rap", "scream"] {
        let mut meter = build(name, "");
        assert_eq!(meter.wakeup(), None);
        let now = Time::from_millis(7);
        arrive(&mut *meter, now, Tag::None);
        assert_eq!(meter.wakeup(), Some(now), "{name}");
        meter.on_wakeup(now);
        assert_eq!((meter.report(now), meter.wakeup()), (Report::None, None));
    }
}
