//! Runs are stored as they end, under what their results depend on.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use comity_sim::results::store::{RunStore, StoreError, merge};
use comity_sim::results::{Format, ResultSet, write};
use comity_sim::scenario::{Files, NoFiles, Reading, Run, Scenario, simulate};

const TEXT: &str = r#"
    [scenario]
    name = "sweep"
    duration = "2s"
    seeds = [1, 2, 3]
    bins = "500ms"
    [topology]
    kind = "dumbbell"
    bottleneck = { rate = "1Mbps", delay = "10ms", queue = 10 }
    [[flow]]
    group = "tcp"
    count = 2
    start = { spread = "100ms" }
    [[flow]]
    group = "video"
    transport = "sections"
    workload = { kind = "video", rate = "200kbps", fps = 25, group = 25 }
    [[sweep]]
    name = "queue"
    parameter = "topology.bottleneck.queue"
    values = [5, 10]
"#;

fn scratch(test: &str) -> PathBuf {
    let at = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("store-{test}"));
    let _ = fs::remove_dir_all(&at);
    fs::create_dir_all(&at).unwrap();
    at
}

fn scenario(text: &str, set: &[&str], seeds: Option<Vec<u64>>) -> Scenario {
    let reading = Reading {
        set: set.iter().map(|set| (*set).into()).collect(),
        seeds,
        ..Reading::default()
    };
    Scenario::parse("x.toml", text, NoFiles, &reading).unwrap_or_else(|error| panic!("{error}"))
}

fn open(path: &Path, scenario: &Scenario) -> Result<RunStore, StoreError> {
    RunStore::open(path, scenario.sweep("sim", "comity".into()), false)
}

/// Does the runs that are not stored, up to `most`. Returns how many it did.
fn work(store: &RunStore, scenario: &Scenario, runs: &[Run], most: usize) -> usize {
    let missing = runs.iter().filter(|run| store.get(run.number).is_none());
    let missing: Vec<_> = missing.take(most).collect();
    for run in &missing {
        let (network, settings) = scenario.prepare(run);
        let report = simulate(&network, run, &settings).unwrap();
        store.add(scenario.completed(run, report)).unwrap();
    }
    missing.len()
}

/// The bytes of each table.
fn tables(set: &ResultSet, at: &Path) -> Vec<Vec<u8>> {
    write(set, Format::Parquet, at).unwrap();
    let mut files: Vec<_> = fs::read_dir(at)
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

#[test]
fn a_store_goes_on_wherever_its_journal_was_cut() {
    let home = scratch("cut");
    let (scenario, path) = (scenario(TEXT, &[], None), home.join("whole"));
    let runs = scenario.runs();
    let store = open(&path, &scenario).unwrap();
    assert_eq!((work(&store, &scenario, &runs, 99), store.stored()), (6, 6));
    let expected = tables(&store.results(), &home.join("expected"));
    let journal = fs::read(store.folder().join("0000.journal")).unwrap();

    // A process may be killed after any byte.
    let mut founds = Vec::new();
    for length in (0..journal.len())
        .step_by(journal.len() / 41)
        .chain([journal.len()])
    {
        let path = home.join("cut");
        let store = open(&path, &scenario).unwrap();
        let folder = store.folder().to_owned();
        drop(store);
        fs::write(folder.join("0000.journal"), &journal[..length]).unwrap();
        let store = open(&path, &scenario).unwrap();
        founds.push(store.found());
        assert_eq!(work(&store, &scenario, &runs, 99), 6 - store.found());
        let merged = merge(&[path]).unwrap();
        assert!(merged.missing.is_empty());
        assert_eq!(
            tables(&merged.set, &home.join("again")),
            expected,
            "{length} bytes"
        );
        fs::remove_dir_all(folder).unwrap();
    }
    assert!(
        founds.is_sorted() && founds[0] == 0 && founds.last() == Some(&6),
        "{founds:?}"
    );

    // A byte that changed invalidates its record and those behind it, and nothing panics.
    for at in (0..journal.len()).step_by(journal.len() / 97) {
        let path = home.join("changed");
        let store = open(&path, &scenario).unwrap();
        let mut changed = journal.clone();
        changed[at] ^= 0x40;
        fs::write(store.folder().join("0000.journal"), changed).unwrap();
        let store = open(&path, &scenario).unwrap();
        assert!(store.found() < 6);
        for run in store.results().runs {
            let whole = runs
                .iter()
                .find(|other| other.number == run.number)
                .unwrap();
            assert_eq!(run.seed, whole.seed);
        }
        fs::remove_dir_all(store.folder()).unwrap();
    }
}

#[test]
fn shards_make_the_whole() {
    let home = scratch("shards");
    let scenario = scenario(TEXT, &[], None);
    let runs = scenario.runs();
    let whole = open(&home.join("whole"), &scenario).unwrap();
    work(&whole, &scenario, &runs, 99);
    let expected = tables(&whole.results(), &home.join("expected"));
    // Two shards share a folder, at the same time; the third has its own.
    let shared = [(); 2].map(|()| open(&home.join("shared"), &scenario).unwrap());
    let other = open(&home.join("other"), &scenario).unwrap();
    let stores = [&shared[0], &shared[1], &other];
    for (shard, store) in stores.into_iter().enumerate() {
        let part: Vec<_> = runs
            .iter()
            .filter(|run| run.number % 3 == shard)
            .cloned()
            .collect();
        assert_eq!(work(store, &scenario, &part, 99), 2);
    }
    let missing = merge(&[home.join("shared")]).unwrap();
    assert_eq!((missing.missing, missing.set.runs.len()), (vec![2, 5], 4));
    assert_eq!(missing.set.runs[2].number, 3, "runs keep their numbers");
    let merged = merge(&[home.join("shared"), home.join("other.runs")]).unwrap();
    assert!(merged.missing.is_empty());
    assert_eq!(tables(&merged.set, &home.join("merged")), expected);

    let text = TEXT
        .replace("queue = 10 ", "queue = 11 ")
        .replace("2s", "3s");
    let different = self::scenario(&text, &[], None);
    open(&home.join("different"), &different).unwrap();
    let error = merge(&[home.join("shared"), home.join("different")]).unwrap_err();
    assert!(matches!(error, StoreError::Different { .. }), "{error}");
    let error = merge(&[home.join("nowhere")]).unwrap_err();
    assert!(
        error.to_string().contains("no runs are stored at"),
        "{error}"
    );
}

#[test]
fn nothing_is_lost_unless_asked() {
    let home = scratch("lost");
    let path = home.join("results");
    let first = scenario(TEXT, &[], None);
    let store = open(&path, &first).unwrap();
    work(&store, &first, &first.runs(), 99);
    write(&store.results(), Format::Parquet, &path).unwrap();
    // More seeds add to the runs that are there.
    let more = scenario(TEXT, &[], Some(vec![3, 4, 1, 2]));
    let store = open(&path, &more).unwrap();
    assert_eq!(store.found(), 6);
    assert_eq!(work(&store, &more, &more.runs(), 99), 2);
    write(&store.results(), Format::Parquet, &path).unwrap();
    let numbers: Vec<_> = store.results().runs.iter().map(|run| run.number).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7]);
    // Fewer would lose some; other values all.
    for (other, lost) in [
        (scenario(TEXT, &[], Some(vec![1])), 6),
        (scenario(TEXT, &["scenario.duration=3s"], None), 8),
    ] {
        match open(&path, &other) {
            Err(StoreError::WouldLose { runs, .. }) => assert_eq!(runs, lost),
            other => panic!("{other:?}"),
        }
    }
    let fewer = scenario(TEXT, &[], Some(vec![1]));
    let store = RunStore::open(&path, fewer.sweep("sim", "comity".into()), true).unwrap();
    assert_eq!(store.found(), 0, "all runs are done anew");
    // Runs of another sweep are not forgotten before there are results.
    let path = home.join("parts");
    open(&path, &first).unwrap();
    let other = scenario(TEXT, &["flow.tcp.count=1"], None);
    assert!(open(&path, &other).is_ok(), "nothing was stored");
    let store_of_other = open(&path, &other).unwrap();
    work(&store_of_other, &other, &other.runs(), 2);
    let error = open(&path, &first).unwrap_err().to_string();
    assert!(
        error.contains("parts.runs holds 2 runs of another sweep, of \"sweep\" by `comity`"),
        "{error}"
    );
    assert_eq!(merge(&[path]).unwrap().set.runs.len(), 2);
    // Results without a store are not replaced.
    let path = home.join("alone");
    write(&store.results(), Format::Parquet, &path).unwrap();
    assert!(matches!(
        open(&path, &first),
        Err(StoreError::Exists { .. })
    ));
}

#[derive(Clone)]
struct Trace(String);

impl Files for Trace {
    fn read(&self, _: &Path) -> io::Result<String> {
        Ok(self.0.clone())
    }
}

/// The id of a run changes with everything that its results depend on, and with nothing else.
#[test]
fn the_id_of_a_run_is_that_of_its_effective_scenario() {
    let text = TEXT.replace("rate = \"1Mbps\", ", "trace = \"cell.up\", ");
    let ids = |text: &str, trace: &str, set: &[&str], world: &str| {
        let reading = Reading {
            set: set.iter().map(|set| (*set).into()).collect(),
            ..Reading::default()
        };
        let scenario = Scenario::parse("x.toml", text, Trace(trace.into()), &reading);
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        scenario.sweep(world, String::new()).ids
    };
    let plain = ids(&text, "1\n2\n", &[], "sim");
    assert_eq!(plain.len(), 6);
    let renamed = text.replace("\"sweep\"", "\"other\"") + "# a comment\n";
    assert_eq!(ids(&renamed, "1\n2\n", &[], "sim"), plain);
    // The same value, by an override instead of an axis.
    let unswept = ids(
        &text,
        "1\n2\n",
        &["sweep=[]", "topology.bottleneck.queue=5"],
        "sim",
    );
    assert_eq!(unswept, plain[..3]);
    for other in [
        ids(&text, "1\n3\n", &[], "sim"),
        ids(&text, "1\n2\n", &["flow.tcp.count=1"], "sim"),
        ids(&text, "1\n2\n", &["flow.tcp.start.spread=101ms"], "sim"),
        ids(&text, "1\n2\n", &["scenario.seeds=[4,5,6]"], "sim"),
        ids(&text, "1\n2\n", &[], "lab"),
    ] {
        assert_eq!(other.len(), 6);
        assert!(other.iter().all(|id| !plain.contains(id)));
    }
}
