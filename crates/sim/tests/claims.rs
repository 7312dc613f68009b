//! Claims: the repository's files are valid, errors in others are reported, and runs are judged.

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use comity_sim::claims::{Book, ClaimReport, Form, LoadError, Outcome, Told, reference};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn ours(form: Form) -> Book {
    Book::load(&root().join("experiments"), form).unwrap_or_else(|error| panic!("{error}"))
}

/// Every claim in the project's plan.
const IDS: [&str; 29] = [
    "iftp-fig2-friendly",
    "iftp-table1-delay",
    "libra-fig4-jain-long",
    "libra-fig5-jain-all",
    "libra-fig6-cross-traffic",
    "libra-fig7-utilisation",
    "libra-fig8-friendliness",
    "psp-abstract-loss",
    "psp-fig10-15-with-tcp",
    "psp-fig16-18-adaptive-fair",
    "psp-fig19-background-tcp",
    "psp-fig5-damping",
    "psp-fig7-single",
    "psp-fig8-9-sixteen",
    "psp-receiver-spacing",
    "real-fig10-tokens",
    "real-table1-goodput-15ms",
    "real-table10-12-playback-50ms",
    "real-table2-reverse-15ms",
    "real-table3-handoff-15ms",
    "real-table4-6-playback-15ms",
    "real-table7-9-goodput-50ms",
    "tltcp-fig11-12-delay",
    "tltcp-fig13-deadline",
    "tltcp-fig5-timelined",
    "tltcp-fig7-8-flows",
    "tltcp-fig9-10-window",
    "tltcp-mpeg-deadlines",
    "tltcp-obsolete-blind-spot",
];

#[test]
fn every_claim_is_there_and_reads_in_both_forms() {
    for form in [Form::Quick, Form::Full] {
        let book = ours(form);
        let ids: BTreeSet<&str> = book
            .claims()
            .iter()
            .map(|claim| claim.id.as_str())
            .collect();
        let missing: Vec<_> = IDS.iter().filter(|id| !ids.contains(*id)).collect();
        assert!(missing.is_empty(), "not in any claims.toml: {missing:?}");
        for claim in book.claims() {
            let has = [
                claim.check_count() > 0,
                !claim.tests.is_empty(),
                claim.missing.is_some(),
            ];
            assert!(
                has.contains(&true),
                "{} is neither checked nor missing",
                claim.id
            );
        }
    }
}

#[test]
fn tests_that_hold_claims_exist() {
    for claim in ours(Form::Quick).claims() {
        for (file, name) in &claim.tests {
            let text = fs::read_to_string(root().join(file));
            let text = text.unwrap_or_else(|error| panic!("{}: {file}: {error}", claim.id));
            let is_there = text.contains(&format!("fn {name}("));
            assert!(is_there, "{}: {file} has no function {name}", claim.id);
        }
    }
}

/// `docs/reference/claims.md` ends with the contents of the tables. To update it:
///
/// ```text
/// COMITY_UPDATE=1 cargo test -p comity-sim --test it claims
/// ```
#[test]
fn the_page_is_up_to_date() {
    const MARK: &str = "<!-- What follows is made from crates/sim/src/scenario/claims. -->\n";
    let path = root().join("docs/reference/claims.md");
    let page = fs::read_to_string(&path).unwrap();
    let (by_hand, made) = page.split_once(MARK).expect("the page has its mark");
    if std::env::var_os("COMITY_UPDATE").is_some() {
        let page = format!("{by_hand}{MARK}{}", reference::markdown());
        fs::write(&path, page).unwrap();
    } else {
        assert!(
            made == reference::markdown(),
            "docs/reference/claims.md is out of date; update it with COMITY_UPDATE=1"
        );
    }
}

/// A folder with one system, deleted at the end of the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const SCENARIO: &str = r#"
[scenario]
name = "two"
duration = "12s"
warmup = "2s"
bins = "1s"
seeds = { count = 4 }

[topology]
kind = "dumbbell"
bottleneck = { rate = "1Mbps", delay = "10ms", queue = 100 }
access = { rate = "10Mbps", delay = "1ms" }

[[flow]]
group = "steady"
transport = "datagram"
packet = "1000B"
workload = { kind = "cbr", rate = "200kbps" }

[[flow]]
group = "tcp"
rwnd = 10
start = { spread = "1s" }

[[sweep]]
name = "rate"
parameter = "flow.steady.workload.rate"
values = ["200kbps", "400kbps", "2Mbps"]
"#;

fn folder(name: &str, claims: &str) -> Folder {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("claims-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(path.join("some")).unwrap();
    fs::write(path.join("some/two.toml"), SCENARIO).unwrap();
    fs::write(path.join("some/claims.toml"), claims).unwrap();
    Folder(path)
}

/// The first line of an otherwise empty file of claims.
const HEAD: &str = "[[claim]]\nid = \"c\"\nsays = \"s\"\nscenario = \"two.toml\"\n";

/// The throughput of a constant sender is known without a simulation: its rate, up to the link's.
#[test]
fn runs_are_judged() {
    let claims = format!(
        r#"{HEAD}
quick = {{ seeds = 2, set = ["scenario.duration=6s"], only = [{{ axis = "rate", values = ["200kbps", "0.4Mbps"] }}] }}
paper = [{{ name = "rate", over = "rate", at = ["200kbps", "400kbps", "2Mbps"], is = [0.2, 0.4, 2] }}]
measure = [
    {{ name = "steady", is = "mean(flow.steady.throughput_bps) / 1Mbps" }},
    {{ name = "tcp", is = "mean(flow.tcp.throughput_bps) / 1Mbps" }},
    {{ name = "gap", is = "mean(flow.steady.arrival_spacing_mean_s) / 1ms" }},
    {{ name = "early", is = "mean(sum(between(flow.steady.bins.sent_packets, 3s, 5s)))" }},
]
value = [{{ name = "both", is = "steady + tcp" }}]
check = [
    {{ says = "as sent", holds = "steady within 5% of paper.rate for rate <= 400kbps", paper = "paper.rate" }},
    {{ says = "packets of two seconds", holds = "49 <= early[rate = 200kbps] <= 51" }},
    {{ says = "time between packets", holds = "gap[rate = 200kbps] within 2% of 40" }},
    {{ says = "more for one is less for the other", holds = "tcp falls over rate" }},
    {{ says = "all of the link", shows = "both", form = "full" }},
    {{ says = "more than the link", holds = "both > 1.3 for rate <= 400kbps", expected = "fails", reason = "it has 1 Mb/s" }},
]

[[claim]]
id = "later"
says = "nothing yet"
missing = "nobody wrote it"
"#
    );
    use Outcome::{Fails, Holds, Shown, Skipped};
    let folder = folder("judged", &claims);
    let outcome = |form, jobs| {
        let book = Book::load(&folder.0, form).unwrap_or_else(|error| panic!("{error}"));
        let all: Vec<_> = book.claims().iter().collect();
        let (mut finished, mut early) = (Vec::new(), Vec::new());
        let measured = book
            .run(&all, NonZeroUsize::new(jobs), None, |told| match told {
                Told::Runs(done) => finished.push(done),
                Told::Claim(place, measured) => early.push((place, measured.of(all[place]))),
            })
            .unwrap();
        assert_eq!(finished.len(), book.run_count(&all));
        let reports: Vec<ClaimReport<'_>> = all
            .iter()
            .map(|claim| book.judge(claim, &measured, form))
            .collect();
        // Every claim is reported once, with all of its dependencies; claims without runs come
        // first.
        let places: Vec<usize> = early.iter().map(|(place, _)| *place).collect();
        assert_eq!(places, [1, 0]);
        for (place, measured) in &early {
            let alone = book.judge(all[*place], measured, form);
            assert_eq!(format!("{alone:?}"), format!("{:?}", reports[*place]));
        }
        assert_eq!(reports[0].outcome(), Outcome::HoldsInPart);
        assert_eq!(reports[1].outcome(), Shown);
        let outcomes: Vec<_> = reports[0]
            .checks
            .iter()
            .map(|check| check.outcome)
            .collect();
        assert!(
            reports[0].checks.iter().all(|check| check.is_as_expected()),
            "{reports:#?}"
        );
        let paper: Vec<_> = reports[0].checks[0]
            .rows
            .iter()
            .map(|row| row.paper)
            .collect();
        assert_eq!(paper, [Some(0.2), Some(0.4)]);
        (outcomes, finished.len(), format!("{reports:?}"))
    };
    let (outcomes, runs, quick) = outcome(Form::Quick, 1);
    assert_eq!(outcomes, [Holds, Holds, Holds, Holds, Skipped, Fails]);
    assert_eq!(runs, 2 * 2, "two of three points, two of four seeds");
    // Four threads give the same result as one.
    assert_eq!(outcome(Form::Quick, 4).2, quick);
    let (outcomes, runs, _) = outcome(Form::Full, 2);
    assert_eq!(outcomes, [Holds, Holds, Holds, Holds, Shown, Fails]);
    assert_eq!(runs, 3 * 4);
}

/// The messages about a file of claims, with their lines and columns.
fn said(name: &str, claims: &str) -> String {
    match Book::load(&folder(name, claims).0, Form::Quick) {
        Err(LoadError::Problems(files)) => files
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n"),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn errors_state_position_value_and_expectation() {
    let measure = "measure = [{ name = \"x\", is = \"mean(flow.tcp.throughput_bps)\" }]\n";
    let cases: &[(&str, String, &[&str])] = &[
        ("syntax", "claim = [".into(), &["this is not TOML", "1:"]),
        (
            "key",
            format!("{HEAD}chek = 1\nmissing = \"m\"\n"),
            &["claim.0.chek", "5:1", "did you mean `check`?"],
        ),
        (
            "nothing",
            HEAD.into(),
            &["claim.0.check", "is missing", "`test` or `missing`"],
        ),
        (
            "file",
            "[[claim]]\nid = \"c\"\nsays = \"s\"\nscenario = \"tow.toml\"\nmissing = \"m\"\n"
                .into(),
            &["4:12", "tow.toml", "cannot be read"],
        ),
        (
            "set",
            format!("{HEAD}missing = \"m\"\nset = [\"flow.tpc.rwnd=3\"]\n"),
            &["tpc", "did you mean \"tcp\"?"],
        ),
        (
            "axis",
            format!("{HEAD}missing = \"m\"\nonly = [{{ axis = \"rat\", values = [1] }}]\n"),
            &["6:18", "no axis called `rat`", "did you mean `rate`?"],
        ),
        (
            "point",
            format!(
                "{HEAD}missing = \"m\"\nonly = [{{ axis = \"rate\", values = [\"3Mbps\"] }}]\n"
            ),
            &["6:36", "there are 200kbps, 400kbps, 2Mbps"],
        ),
        (
            "column",
            format!(
                "{HEAD}measure = [{{ name = \"x\", is = \"mean(flow.tcp.throughput)\" }}]\ncheck = [{{ says = \"c\", shows = \"x\" }}]\n"
            ),
            &["5:46", "no column called `throughput`", "throughput_bps"],
        ),
        (
            "former column",
            format!(
                "{HEAD}measure = [{{ name = \"x\", is = \"mean(link.*.wait_mean_s)\" }}]\ncheck = [{{ says = \"c\", shows = \"x\" }}]\n"
            ),
            &[
                "no column called `wait_mean_s`",
                "did you mean `queueing_delay_mean_s`?",
            ],
        ),
        (
            "former key of a measure",
            format!("{HEAD}measure = [{{ name = \"x\", play = \"z\", is = \"1\" }}]\n"),
            &["`claim.0.measure.x.play`", "did you mean `run`?"],
        ),
        (
            "former key in a setting",
            format!("{HEAD}missing = \"m\"\nset = [\"flow.tcp.window=3\"]\n"),
            &["did you mean \"rwnd\"?"],
        ),
        (
            "group",
            format!(
                "{HEAD}measure = [{{ name = \"x\", is = \"mean(flow.tpc.throughput_bps)\" }}]\ncheck = [{{ says = \"c\", shows = \"x\" }}]\n"
            ),
            &[
                "5:42",
                "no group or flow called `tpc`",
                "did you mean `tcp`?",
            ],
        ),
        (
            "list",
            format!(
                "{HEAD}measure = [{{ name = \"x\", is = \"flow.tcp.throughput_bps\" }}]\ncheck = [{{ says = \"c\", shows = \"x\" }}]\n"
            ),
            &["a number for each flow", "take the mean(...)"],
        ),
        (
            "name",
            format!("{HEAD}{measure}check = [{{ says = \"c\", holds = \"y < 1\" }}]\n"),
            &["6:33", "called `y`", "expected one of x"],
        ),
        (
            "sign",
            format!("{HEAD}{measure}check = [{{ says = \"c\", holds = \"x < \" }}]\n"),
            &["the end cannot stand here", "expected a number"],
        ),
        (
            "unjudged",
            format!("{HEAD}{measure}check = [{{ says = \"c\", holds = \"x\" }}]\n"),
            &["expected a statement with <"],
        ),
        (
            "reasonless",
            format!(
                "{HEAD}{measure}check = [{{ says = \"c\", holds = \"x < 1\", expected = \"fails\" }}]\n"
            ),
            &["claim.0.check.0.expected", "needs `reason`"],
        ),
        (
            "needless",
            format!(
                "{HEAD}{measure}check = [{{ says = \"c\", holds = \"x < 1\", reason = \"r\" }}]\n"
            ),
            &["claim.0.check.0.reason", "needs `expected`"],
        ),
        (
            "absent",
            format!(
                "{HEAD}{measure}check = [{{ says = \"c\", holds = \"x[rate = 1Mbps] < 1\" }}]\n"
            ),
            &["6:35", "no point is like this", "there are 200kbps"],
        ),
        (
            "run",
            format!(
                "{HEAD}measure = [{{ name = \"x\", run = \"z\", is = \"1\" }}]\ncheck = [{{ says = \"c\", shows = \"x\" }}]\n"
            ),
            &["no run called `z`"],
        ),
        (
            "paper",
            format!(
                "{HEAD}{measure}paper = [{{ name = \"p\", over = \"rate\", at = [1, 2], is = [1] }}]\ncheck = [{{ says = \"c\", shows = \"x\" }}]\n"
            ),
            &["claim.0.paper.p.is", "has 1 entry", "expected 2"],
        ),
        (
            "twice",
            format!("{HEAD}missing = \"m\"\n{HEAD}missing = \"m\"\n"),
            &["7:6", "there is already a claim called \"c\""],
        ),
    ];
    for (name, claims, expected) in cases {
        let said = said(name, claims);
        for part in *expected {
            assert!(said.contains(part), "{name}: no {part:?} in\n{said}");
        }
    }
}

#[test]
fn a_folder_without_claims_is_reported() {
    let empty = Path::new(env!("CARGO_TARGET_TMPDIR")).join("claims-empty");
    fs::create_dir_all(&empty).unwrap();
    let error = Book::load(&empty, Form::Quick).unwrap_err();
    assert!(matches!(error, LoadError::Nothing { .. }), "{error:?}");
    let error = Book::load(&empty.join("nowhere"), Form::Quick).unwrap_err();
    assert!(matches!(error, LoadError::Unreadable { .. }), "{error:?}");
}
