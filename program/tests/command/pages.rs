//! The pages of the command about itself and about scenarios.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::{ends, out, root};

#[test]
fn scenarios_are_listed() {
    let text = out(&ends(0, &["sim", "list"]));
    assert!(text.lines().next().unwrap().starts_with("file"));
    let demo = text
        .lines()
        .find(|line| line.starts_with("experiments/demo/dumbbell.toml"))
        .unwrap();
    assert!(
        demo.contains("demo-dumbbell") && demo.contains("10"),
        "{demo}"
    );
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("a.toml"), "[scenario]\nname = 1\n").unwrap();
    fs::write(
        folder.path().join("Cargo.toml"),
        "[package]\nname = \"x\"\n",
    )
    .unwrap();
    fs::write(
        folder.path().join("other.toml"),
        "[[list]]\nid = \"x\"\nscenario = \"b.toml\"\n",
    )
    .unwrap();
    let dir = folder.path().to_str().unwrap();
    let text = out(&ends(0, &["sim", "list", dir]));
    assert!(text.contains("invalid: "), "{text}");
    assert!(
        !text.contains("Cargo.toml") && !text.contains("other.toml"),
        "{text}"
    );
    let document: Value =
        serde_json::from_slice(&ends(0, &["sim", "list", "--json"]).stdout).unwrap();
    let scenarios = document["scenarios"].as_array().unwrap();
    let flows = scenarios
        .iter()
        .find(|entry| entry["name"] == "dumbbell_flows")
        .unwrap();
    assert_eq!(flows["runs"], 80);
    assert_eq!(flows["is_for_lab"], false);
    let iperf = scenarios.iter().find(|entry| entry["name"] == "lab-iperf");
    assert_eq!(iperf.unwrap()["is_for_lab"], true);
    let text = out(&ends(0, &["sim", "list", "experiments/lab"]));
    assert_eq!(text.matches("for the lab only: ").count(), 1, "{text}");
}

/// Programs are for the lab. The simulator refuses them before it starts.
#[test]
fn the_simulator_refuses_programs() {
    let output = ends(
        2,
        &["sim", "run", "experiments/lab/iperf.toml", "--seeds", "1-9"],
    );
    let text = crate::said(&output);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        text.contains("transport = \"command\"") && text.contains("`comity lab run`"),
        "{text}"
    );
}

/// The entry of a name in the whole list, as one line: the text to its right and below it.
fn entry(list: &str, name: &str) -> String {
    let mut lines = list.lines().skip_while(|line| {
        line.strip_prefix(name)
            .is_none_or(|rest| !rest.starts_with(' '))
    });
    let first = lines.next().unwrap_or_else(|| panic!("{name} in\n{list}"));
    let more = lines.take_while(|line| line.starts_with(' '));
    let words = std::iter::once(first)
        .chain(more)
        .flat_map(str::split_whitespace);
    words.collect::<Vec<_>>().join(" ")
}

/// The JSON document is the oracle: the text has each of its facts behind the same name, in
/// readable lines.
#[test]
fn the_whole_list_has_every_source_and_every_default() {
    let text = out(&ends(0, &["list"]));
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
        assert_eq!(line, line.trim_end());
    }
    let document: Value = serde_json::from_slice(&ends(0, &["list", "--json"]).stdout).unwrap();
    let shown = |value: &Value| match value {
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    };
    let mut parameters = 0;
    for row in document["controllers"].as_array().unwrap() {
        let entry = entry(&text, row["name"].as_str().unwrap());
        assert!(
            entry.contains(&format!("source: {}", shown(&row["source"]))),
            "{entry}"
        );
        for parameter in row["parameters"].as_array().unwrap() {
            let name = parameter["name"].as_str().unwrap();
            let default = &parameter["default"];
            // Numbers may have another form, such as 8 for 8.0.
            let expected = match default.as_f64() {
                Some(number) => format!(" {name} = {number}"),
                None => format!(" {name} = {}", shown(default)),
            };
            assert!(entry.contains(&expected), "{expected:?} in {entry}");
            parameters += 1;
        }
    }
    // Values of different keys may share a name, which then appears in the text once for each.
    for system in document["systems"].as_array().unwrap() {
        let heading = text.find(match system["key"].as_str().unwrap() {
            "system" => "Systems that are more",
            "transport" => "(transport)",
            "recovery" => "(recovery)",
            "preset" => "(preset)",
            "reliability" => "(reliability)",
            "drop" => "(drop)",
            "deliver" => "(deliver)",
            "workload" => "(workload.kind)",
            "reader" => "(reader.kind)",
            other => panic!("a group of {other}"),
        });
        let entry = entry(&text[heading.unwrap()..], system["name"].as_str().unwrap());
        assert!(
            entry.contains(&format!("source: {}", shown(&system["source"]))),
            "{entry}"
        );
        for (key, value) in system["settings"].as_object().unwrap() {
            assert!(
                entry.contains(&format!(" {key} = {}", shown(value))),
                "{key} in {entry}"
            );
        }
        for parameter in system["parameters"].as_array().unwrap() {
            let name = parameter["name"].as_str().unwrap();
            let expected = match &parameter["default"] {
                Value::Null => format!(" {name} (required)"),
                default => format!(" {name} = {}", shown(default)),
            };
            assert!(entry.contains(&expected), "{expected:?} in {entry}");
            parameters += 1;
        }
    }
    let applications = &text[text.find("Applications of the papers").unwrap()..];
    for application in document["applications"].as_array().unwrap() {
        let entry = entry(applications, application["name"].as_str().unwrap());
        assert!(
            entry.contains(&format!("source: {}", shown(&application["source"]))),
            "{entry}"
        );
        for (key, value) in application["flow"].as_object().unwrap() {
            assert!(
                entry.contains(&format!(" {key} = {}", shown(value))),
                "{key} in {entry}"
            );
        }
        for parameter in application["parameters"].as_array().unwrap() {
            if parameter["value"].is_null() {
                let name = format!("{}.{}", shown(&parameter["of"]), shown(&parameter["name"]));
                let expected = format!(" {name} = {}", shown(&parameter["default"]));
                assert!(entry.contains(&expected), "{expected:?} in {entry}");
                parameters += 1;
            }
        }
    }
    assert!(parameters > 100, "{parameters} parameters were compared");
}

#[test]
fn controllers_and_systems_are_listed() {
    let text = out(&ends(0, &["list"]));
    for line in [
        "tfrc ",
        "rap ",
        "cubic ",
        "newreno ",
        "ns2-2000 ",
        "timeline ",
        "poisson ",
        "playback ",
        "tltcp ",
        "vreal ",
        "mpeg1 ",
        "token-bucket ",
        "frames ",
        "udp-cbr ",
        "udp-jitter ",
        "udp-unspaced ",
    ] {
        let count = text.lines().filter(|known| known.starts_with(line)).count();
        assert_eq!(count, 1, "{line:?} in\n{text}");
    }
    let tfrc = entry(&text, "tfrc");
    assert!(
        tfrc.contains("measures for the sender")
            && tfrc.contains("RFC 5348")
            && !tfrc.contains("tcp, sections"),
        "{tfrc}"
    );
    let rap = out(&ends(0, &["list", "rap"]));
    for words in [
        "INFOCOM 1999",
        "transports: sections",
        "losses:     retransmitted",
        "fine_grain",
        "true or false",
        "a number from 0.01 to 0.99",
    ] {
        assert!(rap.contains(words), "{words:?} in\n{rap}");
    }
    let tltcp = out(&ends(0, &["list", "tltcp"]));
    for parameter in [
        "section ",
        "deadline ",
        "blind_spot ",
        "relative_to ",
        "feedback ",
    ] {
        let lines = tltcp.lines().filter(|line| line.starts_with(parameter));
        assert_eq!(lines.count(), 1, "{parameter:?} in\n{tltcp}");
    }
    let section = tltcp.lines().find(|line| line.starts_with("section "));
    assert!(section.unwrap().contains("700000B"), "{tltcp}");
    let bucket = out(&ends(0, &["list", "token_bucket"]));
    assert!(
        bucket.contains("refill") && bucket.contains("required"),
        "{bucket}"
    );
    let preset = out(&ends(0, &["list", "ns2-2000"]));
    let tick = preset.lines().find(|line| line.starts_with("rto.tick "));
    assert!(tick.unwrap().contains("100ms"), "{preset}");
    // `reno` is a controller and a recovery.
    let reno = out(&ends(0, &["list", "reno"]));
    assert!(
        reno.contains("reno: a controller") && reno.contains("reno: a value of recovery"),
        "{reno}"
    );
    let document: Value = serde_json::from_slice(&ends(0, &["list", "--json"]).stdout).unwrap();
    assert_eq!(document["format"], "comity-list/1");
    let rows = document["controllers"].as_array().unwrap();
    let tfrc = rows.iter().find(|row| row["name"] == "tfrc").unwrap();
    assert_eq!(tfrc["receiver_half"], true);
    let silent = rows.iter().filter(|row| row["repeats_losses"] == false);
    let silent: Vec<&Value> = silent.map(|row| &row["name"]).collect();
    assert_eq!(silent, ["iftp", "psp"], "whose papers do not retransmit");
    assert_eq!(tfrc["transports"], serde_json::json!(["sections"]));
    let memory = tfrc["parameters"].as_array().unwrap().iter();
    let memory = memory
        .clone()
        .find(|parameter| parameter["name"] == "memory")
        .unwrap();
    assert_eq!(
        (
            &memory["default"],
            &memory["min"],
            &memory["max"],
            &memory["unit"]
        ),
        (
            &Value::from(8.0),
            &Value::from(1),
            &Value::from(64),
            &Value::from("intervals")
        )
    );
    let one: Value = serde_json::from_slice(&ends(0, &["list", "sack", "--json"]).stdout).unwrap();
    assert_eq!(one["controllers"], serde_json::json!([]));
    assert_eq!(one["systems"][0]["key"], "recovery");
    let mistake = ends(2, &["list", "tfcr"]);
    let said = String::from_utf8_lossy(&mistake.stderr).into_owned();
    assert!(
        said.contains("there is no entry \"tfcr\"; did you mean \"tfrc\"?"),
        "{said}"
    );
    let mistake = ends(2, &["list", "westwood-plus"]);
    let said = String::from_utf8_lossy(&mistake.stderr).into_owned();
    assert!(said.contains("`comity list` prints all names"), "{said}");
}

/// An application lists all parameters of its parts, with the paper's value beside the default.
#[test]
fn applications_are_listed_with_their_parameters() {
    let vreal = out(&ends(0, &["list", "vreal"]));
    for words in [
        "TCP-Real, NOSSDAV 2001, sections 3 and 4.2",
        "reader = { kind = \"playback\", bytes = \"5kB\", interval = \"40ms\" }",
        "1 Mb/s",
    ] {
        assert!(vreal.contains(words), "{words:?} in\n{vreal}");
    }
    let interval = vreal
        .lines()
        .find(|line| line.starts_with("reader.interval "));
    let interval: Vec<&str> = interval.unwrap().split_whitespace().collect();
    assert_eq!(interval[1..4], ["\"40ms\"", "required", "duration,"]);
    let delay = vreal.lines().find(|line| line.starts_with("reader.delay "));
    let delay: Vec<&str> = delay.unwrap().split_whitespace().collect();
    assert_eq!(delay[1], "\"0s\"", "it has the default: {delay:?}");
    let frames = out(&ends(0, &["list", "frames"]));
    assert!(frames.contains("ICNP 2000, section 4"), "{frames}");

    let document: Value = serde_json::from_slice(&ends(0, &["list", "--json"]).stdout).unwrap();
    let applications = document["applications"].as_array().unwrap();
    let bucket = applications
        .iter()
        .find(|application| application["name"] == "token-bucket")
        .unwrap();
    assert!(bucket["source"].as_str().unwrap().contains("4.4"));
    assert!(
        bucket["flow"]["workload"]
            .as_str()
            .unwrap()
            .contains("20kB")
    );
    let parameters = bucket["parameters"].as_array().unwrap();
    let depth = parameters
        .iter()
        .find(|parameter| parameter["name"] == "depth")
        .unwrap();
    assert_eq!(depth["of"], "workload");
    assert_eq!(depth["value"], "\"20kB\"");
    assert_eq!(depth["required"], true);
    let one: Value = serde_json::from_slice(&ends(0, &["list", "psa", "--json"]).stdout).unwrap();
    assert_eq!(one["applications"].as_array().unwrap().len(), 1);
    assert_eq!(one["systems"], serde_json::json!([]));
}

#[test]
fn the_reference_is_printed() {
    let page = fs::read_to_string(root().join("docs/reference/scenario.md")).unwrap();
    // A printed page must not link to pages that are not printed with it.
    let printed = out(&ends(0, &["sim", "schema"]));
    assert!(!printed.contains(".md)"), "{printed}");
    let lines = |text: &str| text.replace("[controllers](controllers.md)", "`comity list`");
    assert_eq!(printed, lines(&page));
    let schema: Value =
        serde_json::from_slice(&ends(0, &["sim", "schema", "--json"]).stdout).unwrap();
    assert_eq!(schema["title"], "Comity scenario");
}

#[test]
fn help_completions_and_manual() {
    for (args, words) in [
        (
            vec!["--help"],
            vec!["Examples:", "sim", "completions", "man"],
        ),
        (
            vec!["send", "--help"],
            vec!["Examples:", "--deadlines group", "- each:", "- group:"],
        ),
        (
            vec!["sim", "--help"],
            vec!["run", "list", "schema", "trace"],
        ),
        (
            vec!["sim", "run", "--help"],
            vec![
                "Exit codes:",
                "Examples:",
                "--out",
                "--jobs",
                "--seeds",
                "--set",
                "--quiet",
            ],
        ),
        (
            vec!["sim", "trace", "--help"],
            vec![
                "Examples:",
                "--pcapng",
                "--qlog",
                "--csv",
                "--link",
                "--flow",
            ],
        ),
    ] {
        let text = out(&ends(0, &args));
        for word in words {
            assert!(
                text.contains(word),
                "comity {}: no {word} in\n{text}",
                args.join(" ")
            );
        }
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = out(&ends(0, &["completions", shell]));
        // A controller of `--cc`, a kind of figure, and an application of `list`. In fish, clap
        // completes no arguments without an option.
        for word in ["comity", "bbr3", "heatmap", "tltcp"] {
            let is_positional = word == "tltcp" && shell == "fish";
            assert!(
                is_positional || script.contains(word),
                "no {word} for {shell}"
            );
        }
    }
    let folder = TempDir::new().unwrap();
    let dir = folder.path().join("man1");
    ends(0, &["man", dir.to_str().unwrap()]);
    let page = fs::read_to_string(dir.join("comity-sim-run.1")).unwrap();
    assert!(page.contains(".TH"), "{page}");
}
