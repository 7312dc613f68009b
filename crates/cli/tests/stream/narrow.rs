//! Interfaces that carry less than a full packet: in a network of its own, which takes no root where the system lets
//! users make one.

use super::*;

/// Runs `script` in a network of its own, whose loopback interface carries packets of `mtu` bytes; `None`, with the
/// reason on the standard error, where that cannot be.
#[expect(
    clippy::print_stderr,
    reason = "a test that was skipped has to say why"
)]
fn in_network(mtu: u32, script: &str, variables: &[(&str, &str)]) -> Option<Output> {
    let prepare = format!("ip link set lo mtu {mtu} up");
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", "sh", "-c", script]);
        command.stdin(Stdio::null()).envs(variables.iter().copied());
        command.output()
    };
    match unshare(&prepare) {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            eprintln!("skipped: no network of one's own here: {}", said.trim());
            return None;
        }
        Err(error) => {
            eprintln!("skipped: unshare cannot be run: {error}");
            return None;
        }
    }
    Some(unshare(&format!("{prepare} && {script}")).unwrap())
}

/// IP and UDP take 28 bytes of 1,400, and the search leaves 16 unknown.
#[test]
fn an_interface_that_is_narrower_than_full_packets_carries_everything() {
    let folder = Folder::new();
    let out = folder.path("out.ts");
    let (sent, received) = (folder.path("sent.json"), folder.path("received.json"));
    let from = format!("comity://127.0.0.1:9000?mode=listener&{SECRET}");
    let to = format!("comity://127.0.0.1:9000?latency=2s&{SECRET}");
    let clip = clip();
    let variables = [
        ("COMITY", env!("CARGO_BIN_EXE_comity")),
        ("CLIP", clip.to_str().unwrap()),
        ("OUT", &out),
        ("SENT", &sent),
        ("RECEIVED", &received),
        ("FROM", &from),
        ("TO", &to),
    ];
    let script = r#""$COMITY" recv "$FROM" "$OUT" --json > "$RECEIVED" &
"$COMITY" send "$CLIP" "$TO" --speed 10 --reconnect always --json > "$SENT" && wait $!"#;
    let Some(output) = in_network(1_400, script, &variables) else {
        return;
    };
    checked(0, &output);
    assert_same_media(&folder.read("out.ts"), &fs::read(&clip).unwrap());
    let objects: Vec<Value> = String::from_utf8(folder.read("sent.json"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let last = objects.last().unwrap();
    assert_eq!(last["event"], "end");
    assert_eq!(last["output"]["totals"]["sectionsAcknowledged"], 310);
    let warnings: Vec<&str> = objects
        .iter()
        .filter(|object| object["event"] == "warning")
        .map(|object| object["message"].as_str().unwrap())
        .collect();
    let [warning] = warnings[..] else {
        panic!("one warning: {warnings:?}");
    };
    assert!(warning.contains("no datagrams of 1429 bytes"), "{warning}");
    let size = warning
        .split_once("but such of ")
        .and_then(|(_, rest)| rest.split_once(':'))
        .map(|(size, _)| size.parse::<u32>().unwrap())
        .unwrap();
    assert!((1_372 - 16..=1_372).contains(&size), "{warning}");
    assert!(warning.contains(&format!("mtu={}", size + 48)), "{warning}");
}
