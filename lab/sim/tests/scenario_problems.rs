//! The messages about invalid scenarios, as golden text: file, line and column, the key, the value,
//! what was expected, and the nearest known key.
//!
//! To update it after a change, and then review it:
//!
//! ```text
//! COMITY_UPDATE=1 cargo test -p comity-sim --test it scenario_problems
//! ```

use std::fmt::Write as _;

use comity_sim::scenario::{Files, Limits, NoFiles, Reading, Scenario};

const GOLDEN: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/golden/scenario_problems.txt"
);

/// A valid scenario; each case replaces one line of it or adds to it.
const RIGHT: &str = r#"[scenario]
name = "x"
duration = "10s"

[topology]
kind = "dumbbell"
access = { rate = "10Mbps", delay = "2ms" }

[topology.bottleneck]
rate = "1.5Mbps"
delay = "20ms"
queue = 20

[[flow]]
group = "tcp"
count = 3
rwnd = 10
"#;

/// A graph in which `a` reaches `b` but not the reverse.
const ONE_WAY: &str = r#"[scenario]
name = "x"
duration = "10s"
[topology]
kind = "graph"
nodes = ["a", "b", "c"]
[[topology.link]]
from = "a"
to = "b"
duplex = false
rate = "1Mbps"
delay = "1ms"
[[flow]]
group = "tcp"
from = "a"
to = "b"
"#;

/// `(fault, replaced text, replacement)`; an empty replaced text appends.
const CASES: &[(&str, &str, &str)] = &[
    (
        "no TOML at all",
        "name = \"x\"",
        "name = = \"x\"\nduration =",
    ),
    ("a key used twice", "count = 3", "count = 3\ncount = 4"),
    ("an unknown table", "", "[topolgy]\nkind = \"dumbbell\""),
    (
        "an unknown key of the scenario",
        "duration = \"10s\"",
        "duration = \"10s\"\nwarmpu = \"1s\"",
    ),
    (
        "an unknown key of the topology",
        "kind = \"dumbbell\"",
        "kind = \"dumbbell\"\nbotleneck = 1",
    ),
    ("an unknown key of a link", "queue = 20", "queu = 20"),
    (
        "an unknown key in an inline table",
        "access = { rate = \"10Mbps\", delay = \"2ms\" }",
        "access = { rate = \"10Mbps\", dealy = \"2ms\" }",
    ),
    (
        "an unknown key three tables deep",
        "queue = 20",
        "reverse = { queue = { kind = \"red\", min_treshold = 5 } }",
    ),
    ("an unknown key of a flow", "rwnd = 10", "rwdn = 10"),
    ("the former name of a key", "rwnd = 10", "window = 10"),
    (
        "the former name of a table",
        "rwnd = 10",
        "rtt = { tick = \"10ms\" }",
    ),
    (
        "a key of the other transport",
        "rwnd = 10",
        "transport = \"datagram\"\nrwnd = 10\nworkload = { kind = \"poisson\", rate = \"1Mbps\" }",
    ),
    ("a missing key", "duration = \"10s\"", ""),
    (
        "a missing table",
        "[scenario]\nname = \"x\"\nduration = \"10s\"",
        "",
    ),
    (
        "no flows",
        "[[flow]]\ngroup = \"tcp\"\ncount = 3\nrwnd = 10\n",
        "flow = []",
    ),
    (
        "frames over TCP",
        "rwnd = 10",
        "workload = { kind = \"video\", rate = \"1Mbps\" }",
    ),
    (
        "a file as sections",
        "rwnd = 10",
        "transport = \"sections\"\nworkload = { kind = \"file\", size = \"1MB\" }",
    ),
    (
        "sections with keys of their own misspelled",
        "rwnd = 10",
        "transport = \"sections\"\nlatncy = \"100ms\"\nworkload = { kind = \"vidoe\", rate = \"1Mbps\" }",
    ),
    (
        "a drop policy that there is not",
        "rwnd = 10",
        "transport = \"sections\"\ndrop = \"expird\"\nlatency = \"0s\"",
    ),
    (
        "a video with two ratios and no frames",
        "rwnd = 10",
        "transport = \"sections\"\nworkload = { kind = \"video\", rate = \"1Mbps\", ratio = [5, 2], group = 0 }",
    ),
    (
        "an encoder whose minimum is above its maximum",
        "rwnd = 10",
        "transport = \"sections\"\nworkload = { kind = \"encoder\", min_rate = \"2Mbps\" }",
    ),
    (
        "an encoder that begins outside of its range",
        "rwnd = 10",
        "transport = \"sections\"\nworkload = { kind = \"encoder\", max_rate = \"2Mbps\", initial_rate = \"3Mbps\" }",
    ),
    (
        "a key frame too large for its burst",
        "rwnd = 10",
        "transport = \"sections\"\nworkload = { kind = \"encoder\", burst = 3 }",
    ),
    (
        "an encoder with misspelled keys",
        "rwnd = 10",
        "transport = \"sections\"\nworkload = { kind = \"encoder\", min_rat = \"2Mbps\", pauses = [{ at = \"1s\", last = \"2s\" }] }",
    ),
    (
        "an encoder without a target to follow",
        "rwnd = 10",
        "workload = { kind = \"encoder\" }",
    ),
    (
        "an unknown distribution",
        "rwnd = 10",
        "workload = { kind = \"file\", size = { kind = \"paretto\", mean = \"30kB\" } }",
    ),
    (
        "a distribution that falls",
        "rwnd = 10",
        "workload = { kind = \"file\", size = { kind = \"empirical\", file = \"bad.sizes\" } }",
    ),
    (
        "a missing file of sizes",
        "rwnd = 10",
        "workload = { kind = \"file\", size = { kind = \"empirical\", file = \"none.sizes\" } }",
    ),
    (
        "an unknown key of a distribution, and a shape without a mean",
        "rwnd = 10",
        "workload = { kind = \"file\", size = { kind = \"pareto\", maen = \"3MB\", shape = 1 } }",
    ),
    (
        "a mean size above the maximum, and arrivals with a spread",
        "rwnd = 10",
        "start = { arrivals = \"1s\", spread = \"1s\" }\n\
         workload = { kind = \"file\", size = { kind = \"pareto\", mean = \"3MB\", max = \"1MB\" } }",
    ),
    (
        "a trace with an invalid line",
        "rwnd = 10",
        "workload = { kind = \"tmix\", file = \"bad.tmix\" }",
    ),
    (
        "a trace with fewer connections than flows",
        "rwnd = 10",
        "workload = { kind = \"tmix\", file = \"two.tmix\" }",
    ),
    (
        "a trace without data of the sender",
        "count = 3\nrwnd = 10",
        "workload = { kind = \"tmix\", file = \"two.tmix\", sender = \"initiator\" }",
    ),
    (
        "a buffer below a section and a file of frames that is not there",
        "rwnd = 10",
        "transport = \"sections\"\nbuffer = \"1kB\"\nworkload = { kind = \"frames\", file = \"none.csv\" }",
    ),
    ("flows that are no list", "[[flow]]", "[flow]"),
    (
        "a number without its unit",
        "delay = \"20ms\"",
        "delay = 20",
    ),
    (
        "a quantity without its unit",
        "delay = \"20ms\"",
        "delay = \"20\"",
    ),
    (
        "an unknown unit",
        "delay = \"20ms\"",
        "delay = \"20 parsecs\"",
    ),
    ("a rate in bytes", "rate = \"1.5Mbps\"", "rate = \"1.5MB\""),
    ("a negative delay", "delay = \"20ms\"", "delay = \"-20ms\""),
    ("a rate of zero", "rate = \"1.5Mbps\"", "rate = \"0bps\""),
    (
        "an absurd rate",
        "rate = \"1.5Mbps\"",
        "rate = \"90000Gbps\"",
    ),
    (
        "a rate finer than a bit",
        "rate = \"1.5Mbps\"",
        "rate = \"1.5bps\"",
    ),
    (
        "an absurd duration",
        "duration = \"10s\"",
        "duration = \"99999h\"",
    ),
    (
        "a duration of zero",
        "duration = \"10s\"",
        "duration = \"0s\"",
    ),
    ("a negative count", "count = 3", "count = -3"),
    ("an absurd count", "count = 3", "count = 1_000_000_000"),
    (
        "a count beyond 64 bits",
        "count = 3",
        "count = 99999999999999999999",
    ),
    ("a count that is a string", "count = 3", "count = \"three\""),
    (
        "a count that is no whole number",
        "count = 3",
        "count = 3.5",
    ),
    ("a flag that is a string", "rwnd = 10", "sack = \"yes\""),
    ("a window of no packets", "rwnd = 10", "rwnd = 0"),
    ("a window below a segment", "rwnd = 10", "rwnd = \"1000B\""),
    ("a window of seconds", "rwnd = 10", "rwnd = \"10s\""),
    ("a queue that is nothing", "queue = 20", "queue = []"),
    ("a misspelled word", "queue = 20", "queue = \"unlimitd\""),
    (
        "an unknown topology",
        "kind = \"dumbbell\"",
        "kind = \"dumbell\"",
    ),
    (
        "an unknown queue",
        "queue = 20",
        "queue = { kind = \"fifo\" }",
    ),
    ("an unknown recovery", "rwnd = 10", "recovery = \"newrno\""),
    ("an unknown preset", "rwnd = 10", "preset = \"ns2\""),
    (
        "an unknown controller",
        "rwnd = 10",
        "controller = \"cubik\"",
    ),
    (
        "a controller that is a time-line",
        "rwnd = 10",
        "controller = \"tltcp\"",
    ),
    (
        "a controller by another name",
        "rwnd = 10",
        "controller = \"TCP_Libra\"",
    ),
    (
        "an application as a workload",
        "rwnd = 10",
        "workload = { kind = \"vreal\" }",
    ),
    (
        "an application spelled like the workload that it is",
        "rwnd = 10",
        "workload = { kind = \"token-bucket\" }",
    ),
    (
        "an unknown parameter of a controller",
        "rwnd = 10",
        "controller = \"cubic\"\nparameters = { bata = 0.7 }",
    ),
    (
        "a parameter of another controller",
        "rwnd = 10",
        "controller = \"reno\"\nparameters = { whole_segments = true }",
    ),
    (
        "a parameter out of bounds",
        "rwnd = 10",
        "controller = \"cubic\"\nparameters = { beta = 7 }",
    ),
    (
        "parameters that exclude each other",
        "rwnd = 10",
        "controller = \"fixed\"\nparameters = { rate = \"1Mbps\", gap = \"1ms\" }",
    ),
    (
        "a probability above one",
        "queue = 20",
        "losses = [{ model = \"bernoulli\", probability = 1.5 }]",
    ),
    (
        "a loss without a model",
        "queue = 20",
        "losses = [{ probability = 0.5 }]",
    ),
    (
        "thresholds in the wrong order",
        "queue = 20",
        "queue = { kind = \"red\", min_threshold = 20, max_threshold = 10 }",
    ),
    (
        "steps that go backwards",
        "rate = \"1.5Mbps\"",
        "rate = [{ at = \"1s\", rate = \"1Mbps\" }, { at = \"0s\", rate = \"2Mbps\" }]",
    ),
    ("a link without a rate", "rate = \"1.5Mbps\"", ""),
    ("a link without a delay", "delay = \"20ms\"", ""),
    ("a rate and a trace", "queue = 20", "trace = \"lte.mahi\""),
    (
        "a trace that is not there",
        "rate = \"1.5Mbps\"",
        "trace = \"nowhere.mahi\"",
    ),
    (
        "a trace that is none",
        "rate = \"1.5Mbps\"",
        "trace = \"bad.mahi\"",
    ),
    (
        "a warm-up that takes all",
        "duration = \"10s\"",
        "duration = \"10s\"\nwarmup = \"10s\"",
    ),
    (
        "a seed used twice",
        "duration = \"10s\"",
        "duration = \"10s\"\nseeds = [3, 1, 3]",
    ),
    (
        "a criterion without bins to apply it to",
        "duration = \"10s\"",
        "duration = \"10s\"\nconvergence = { tolerance = 0.1, hold = \"1s\" }",
    ),
    (
        "an absurd criterion",
        "duration = \"10s\"",
        "duration = \"10s\"\nbins = \"1s\"\nconvergence = { tolerance = -0.1 }",
    ),
    (
        "bins without number",
        "duration = \"10s\"",
        "duration = \"10s\"\nbins = \"1ns\"",
    ),
    ("a start after the end", "count = 3", "start = \"11s\""),
    (
        "a stop before the start",
        "count = 3",
        "start = { at = \"2s\", spread = \"3s\" }\nstop = \"4s\"",
    ),
    (
        "a packet smaller than its headers",
        "rwnd = 10",
        "packet = \"30B\"",
    ),
    (
        "a packet and a segment size",
        "rwnd = 10",
        "packet = \"1500B\"\nmss = \"1000B\"",
    ),
    (
        "a window beyond the header",
        "rwnd = 10",
        "rwnd = 100\nwindow_scaling = false",
    ),
    (
        "SACK recovery without the option",
        "rwnd = 10",
        "recovery = \"sack\"\nsack = false",
    ),
    (
        "a variant of another recovery",
        "rwnd = 10",
        "recovery = \"reno\"\nimpatient = false",
    ),
    (
        "passed data held by a sender that knows what arrived",
        "rwnd = 10",
        "recovery = \"sack\"\ntimeline = { deadline = \"1s\", holds_passed = true }",
    ),
    (
        "delays of an access link that is not there",
        "rwnd = 10",
        "access = \"none\"\naccess_delays = [\"2ms\", \"20ms\"]",
    ),
    (
        "a base round trip shorter than the path",
        "rwnd = 10",
        "rtt = \"30ms\"",
    ),
    (
        "a base round trip beside the delay of a link of its own",
        "rwnd = 10",
        "rtt = \"90ms\"\naccess = { rate = \"1Mbps\", delay = \"2ms\" }",
    ),
    (
        "passed data held without a blind spot",
        "rwnd = 10",
        "recovery = \"reno\"\ntimeline = { deadline = \"1s\", blind_spot = false, holds_passed = true }",
    ),
    (
        "a least timeout above the largest",
        "rwnd = 10",
        "rto = { min_timeout = \"3s\", max_timeout = \"2s\" }",
    ),
    ("greedy datagrams", "rwnd = 10", "transport = \"datagram\""),
    (
        "a constant rate used twice",
        "rwnd = 10",
        "workload = { kind = \"cbr\", rate = \"1Mbps\", gap = \"1ms\" }",
    ),
    (
        "a bucket that overflows at once",
        "rwnd = 10",
        "workload = { kind = \"token_bucket\", depth = \"1kB\", refill = \"2kB\", interval = \"1s\" }",
    ),
    (
        "reads beyond the receive buffer",
        "rwnd = 10",
        "rwnd = 10\nreader = { kind = \"playback\", bytes = \"1MB\", interval = \"1s\" }",
    ),
    (
        "a buffer beyond the receive window",
        "rwnd = 10",
        "rwnd = 10\nreader = { kind = \"playback\", bytes = \"1kB\", interval = \"1s\", buffer = \"1MB\" }",
    ),
    (
        "reads of no size",
        "rwnd = 10",
        "rwnd = 10\nreader = { kind = \"playback\", interval = \"1s\" }",
    ),
    (
        "a playback of sections",
        "rwnd = 10",
        "rwnd = 10\ntimeline = { deadline = \"1s\" }\nreader = { kind = \"playback\", bytes = \"1kB\", interval = \"1s\" }",
    ),
    (
        "a name that is none",
        "group = \"tcp\"",
        "group = \"the flows\"",
    ),
    (
        "a name that cannot be expanded",
        "count = 3",
        "count = 3\nname = \"f{j}\"",
    ),
    (
        "several flows of one name",
        "count = 3",
        "count = 3\nname = \"f\"",
    ),
    (
        "an expansion below zero",
        "count = 3",
        "count = 3\nname = \"f{i-1}\"",
    ),
    (
        "two groups with flows of one name",
        "",
        "[[flow]]\ngroup = \"tcp\"\n",
    ),
    ("an unknown node", "count = 3", "count = 3\nto = \"rigt\""),
    (
        "a flow to itself",
        "count = 3",
        "access = \"none\"\nfrom = \"left\"\nto = \"left\"",
    ),
    (
        "several things at once",
        "rwnd = 10",
        "rwdn = 10\nsack = 1\npacket = \"1500 B/s\"",
    ),
    (
        "an axis without values",
        "",
        "[[sweep]]\nparameter = \"flow.tcp.rwnd\"\n",
    ),
    (
        "an axis of the former name of a key",
        "",
        "[[sweep]]\nparameter = \"flow.tcp.window\"\nvalues = [5]\n",
    ),
    (
        "a value given twice to an axis",
        "",
        "[[sweep]]\nparameter = \"flow.tcp.rwnd\"\nvalues = [5, 7, 5]\n",
    ),
    (
        "a value given twice in two ways",
        "",
        "[[sweep]]\nparameter = \"topology.bottleneck.delay\"\nvalues = [\"1s\", \"1000ms\"]\n",
    ),
    (
        "a pair of values used twice",
        "",
        "[[sweep]]\nparameter = \"flow.tcp.rwnd\"\nvalues = [5, 5, 7, 5]\nzip = \"z\"\n\
         [[sweep]]\nparameter = \"flow.tcp.count\"\nvalues = [1, 2, 1, 2]\nzip = \"z\"\n",
    ),
    (
        "a queue that is smaller than a packet",
        "queue = 20",
        "queue = \"999B\"",
    ),
    (
        "a queue for acknowledgements that is smaller than one",
        "queue = 20",
        "queue = 20\nreverse = { queue = \"39B\" }",
    ),
    (
        "a queue of a host that is smaller than a packet",
        "access = { rate = \"10Mbps\", delay = \"2ms\" }",
        "access = { rate = \"10Mbps\", delay = \"2ms\", queue = \"1kB\" }",
    ),
    ("an axis without a path", "", "[[sweep]]\nvalues = [1]\n"),
    (
        "an axis with an unknown key",
        "",
        "[[sweep]]\nparameter = \"flow.tcp.rwnd\"\nvalue = [1]\n",
    ),
    (
        "a path that leads nowhere",
        "",
        "[[sweep]]\nparameter = \"flow.tcp.rwdn\"\nvalues = [1]\n",
    ),
    (
        "a path to an unknown group",
        "",
        "[[sweep]]\nparameter = \"flow.tpc.rwnd\"\nvalues = [1]\n",
    ),
    (
        "a path into a plain value",
        "",
        "[[sweep]]\nparameter = \"topology.bottleneck.queue.limit\"\nvalues = [1]\n",
    ),
    (
        "a path to what is not swept",
        "",
        "[[sweep]]\nparameter = \"scenario.name\"\nvalues = [\"y\"]\n",
    ),
    (
        "a value that the key does not take",
        "",
        "[[sweep]]\nparameter = \"flow.tcp.rwnd\"\nvalues = [5, 0, \"10 parsecs\"]\n",
    ),
    (
        "a point that does not fit together",
        "",
        "[[sweep]]\nparameter = \"scenario.duration\"\nvalues = [\"10s\", \"1s\"]\n\
         [[sweep]]\nparameter = \"scenario.warmup\"\nvalues = [\"0s\", \"5s\"]\n",
    ),
    (
        "a range without a step",
        "",
        "[[sweep]]\nparameter = \"flow.tcp.rwnd\"\nrange = { from = 1, to = 3 }\n",
    ),
    (
        "a range of mixed units",
        "",
        "[[sweep]]\nparameter = \"flow.tcp.rwnd\"\nrange = { from = \"1ms\", to = 3, step = 1 }\n",
    ),
    (
        "values and a range",
        "",
        "[[sweep]]\nparameter = \"flow.tcp.rwnd\"\nvalues = [1]\nrange = { from = 1, to = 3, step = 1 }\n",
    ),
    (
        "axes of different length that advance together",
        "",
        "[[sweep]]\nparameter = \"flow.tcp.rwnd\"\nvalues = [1, 2]\nzip = \"z\"\n\
         [[sweep]]\nparameter = \"flow.tcp.count\"\nvalues = [1, 2, 3]\nzip = \"z\"\n",
    ),
    (
        "two axes of one name",
        "",
        "[[sweep]]\nparameter = \"flow.tcp.rwnd\"\nvalues = [1]\n\
         [[sweep]]\nparameter = \"flow.tcp.rwnd\"\nvalues = [2]\n",
    ),
    (
        "an axis that a later one hides",
        "",
        "[[sweep]]\nparameter = \"flow.tcp.rwnd\"\nvalues = [1, 2]\n\
         [[sweep]]\nparameter = \"flow.*.rwnd\"\nvalues = [3, 4]\n",
    ),
    (
        "an explosion of runs",
        "",
        "[[sweep]]\nparameter = \"flow.tcp.rwnd\"\nrange = { from = 1, to = 1000, step = 1 }\n\
         [[sweep]]\nparameter = \"flow.tcp.count\"\nrange = { from = 1, to = 1000, step = 1 }\n",
    ),
];

/// A folder with a few files.
struct FewFiles;

impl Files for FewFiles {
    fn read(&self, path: &std::path::Path) -> std::io::Result<String> {
        let text = match path.to_str() {
            Some("bad.mahi") => "1\n2\nthree\n",
            Some("bad.sizes") => "1000,0.5\n2000,0.4\n3000,1\n",
            Some("bad.tmix") => "SEQ 100 1 1 1\n> some\n",
            // The third starts after the end of the run.
            Some("two.tmix") => {
                "S 100 1 1 1\nA 0 0 5\nS 200 1 1 1\nA 0 0 6\nS 11000000 1 1 1\nA 0 0 7\n"
            }
            _ => {
                let kind = std::io::ErrorKind::NotFound;
                return Err(std::io::Error::new(kind, "no such file"));
            }
        };
        Ok(text.into())
    }
}

fn said(text: &str) -> String {
    match Scenario::parse("x.toml", text, FewFiles, &Reading::default()) {
        Ok(_) => "nothing is wrong".into(),
        Err(problems) => problems.to_string(),
    }
}

#[test]
fn every_error_names_the_key_and_the_expectation() {
    assert!(Scenario::parse("x.toml", RIGHT, NoFiles, &Reading::default()).is_ok());
    let mut page = String::new();
    let mut case = |what: &str, text: &str| {
        let said = said(text);
        assert_ne!(said, "nothing is wrong", "{what}");
        writeln!(page, "=== {what}\n{said}\n").unwrap();
    };
    for (what, target, replacement) in CASES {
        assert!(RIGHT.contains(target), "{what}: {target:?} is not there");
        if target.is_empty() {
            case(what, &format!("{RIGHT}\n{replacement}"));
        } else {
            case(what, &RIGHT.replacen(target, replacement, 1));
        }
    }
    case("no way back", ONE_WAY);
    case(
        "no forward direction",
        &ONE_WAY.replace("from = \"a\"\nto = \"b\"\n\"", "").replace(
            "[[flow]]\ngroup = \"tcp\"\nfrom = \"a\"\nto = \"b\"",
            "[[flow]]\ngroup = \"tcp\"\nfrom = \"a\"\nto = \"c\"",
        ),
    );
    case(
        "a node used twice",
        &ONE_WAY.replace("\"c\"]", "\"c\", \"a\"]"),
    );
    case(
        "a link used twice",
        &ONE_WAY.replace(
            "[[flow]]",
            "[[topology.link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbps\"\ndelay = \"1ms\"\n[[flow]]",
        ),
    );
    case(
        "a link to an unknown node",
        &ONE_WAY.replacen("to = \"b\"", "to = \"d\"", 1),
    );
    case(
        "ends that a graph cannot know",
        &ONE_WAY.replace(
            "group = \"tcp\"\nfrom = \"a\"\nto = \"b\"",
            "group = \"tcp\"",
        ),
    );
    case(
        "time that stands still",
        &ONE_WAY.replace(
            "duplex = false\nrate = \"1Mbps\"\ndelay = \"1ms\"",
            "rate = \"unlimited\"\ndelay = \"0s\"",
        ),
    );
    case(
        "sections at a standstill",
        &ONE_WAY
            .replace(
                "duplex = false\nrate = \"1Mbps\"\ndelay = \"1ms\"",
                "rate = \"unlimited\"\ndelay = \"0s\"",
            )
            .replace(
                "group = \"tcp\"",
                "group = \"media\"\ntransport = \"sections\"\nworkload = { kind = \"greedy\" }",
            ),
    );
    case("an empty file", "");

    if std::env::var_os("COMITY_UPDATE").is_some() {
        std::fs::write(GOLDEN, &page).unwrap();
    }
    let written = std::fs::read_to_string(GOLDEN).unwrap_or_default();
    for (said, expected) in page.split("=== ").zip(written.split("=== ")) {
        assert_eq!(said, expected);
    }
    assert_eq!(page.len(), written.len());
}

#[test]
fn errors_distinguish_overrides_from_the_file() {
    let read = |set: &[&str]| {
        let reading = Reading {
            set: set.iter().map(|text| (*text).into()).collect(),
            ..Reading::default()
        };
        Scenario::parse("x.toml", RIGHT, NoFiles, &reading)
    };
    let right = read(&[
        "flow.tcp.count=7",
        "topology.bottleneck.rate=2Mbps",
        "scenario.seeds=[4, 5]",
    ]);
    let right = right.unwrap();
    assert_eq!(right.seeds(), [4, 5]);
    let (network, _) = right.prepare(&right.runs()[0]);
    assert_eq!(network.flows.len(), 7);

    let wrong = read(&["flow.tcp.count=many", "scenario.duration=5s"]).unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "error: `flow.tcp.count` is a string, \"many\"\n\
         \x20--> --set flow.tcp.count:1:1\n\
         \x20 |\n\
         1 | many\n\
         \x20 | ^^^^ expected a whole number from 0 to 100000"
    );
    let wrong = read(&["flow.tcp.cuont=3"]).unwrap_err().to_string();
    assert!(wrong.contains("did you mean \"count\"?"), "{wrong}");
    let wrong = read(&["flow.tcp.count"]).unwrap_err().to_string();
    assert!(wrong.contains("is not of the form key=value"), "{wrong}");
}

#[test]
fn limits_keep_scenarios_small() {
    let reading = |limits| Reading {
        limits,
        ..Reading::default()
    };
    let all = Limits::default();
    let refused = |limits| {
        let text = RIGHT.replace("duration = \"10s\"", "duration = \"10s\"\nseeds = [1, 2]");
        Scenario::parse("x.toml", &text, NoFiles, &reading(limits))
            .unwrap_err()
            .to_string()
    };
    assert!(
        refused(Limits { runs: 1, ..all })
            .contains("2 seeds = 2 runs are more than the limit of 1")
    );
    assert!(refused(Limits { flows: 2, ..all }).contains("3 flows are more than the limit of 2"));
}
