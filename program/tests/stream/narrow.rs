//! Interfaces that carry less than a full packet, in separate network namespaces, which need no
//! root where the system allows user namespaces.

use super::*;

/// Runs `script` in a new network namespace whose loopback interface carries packets of `mtu`
/// bytes. Returns `None` and prints the reason if that is impossible.
#[expect(
    clippy::print_stderr,
    reason = "a test that was skipped has to say why"
)]
fn in_network(mtu: u32, script: &str, variables: &[(&str, &str)]) -> Option<Output> {
    let prepare = format!("ip link set lo mtu {mtu} up");
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.envs(SECRET_VALUE);
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

pub(super) fn an_interface_with_a_small_mtu_carries_everything() {
    let folder = Folder::new();
    let out = folder.path("out.ts");
    let (sent, received) = (folder.path("sent.json"), folder.path("received.json"));
    let from = format!("comity://127.0.0.1:9000?mode=listener&{EARLY}&{SECRET}");
    let to = format!("comity://127.0.0.1:9000?{UNHURRIED}&{PATIENT}&{SECRET}");
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
    assert_eq!(last["output"]["totals"]["sectionsAcknowledged"], SECTIONS);
    assert_one_warning(&objects);
}

/// Checks for one warning that names the size of the path: 1,400 bytes without the 28 of IP and
/// UDP, or up to 16 less, which the search leaves unknown.
fn assert_one_warning(objects: &[Value]) {
    let warnings: Vec<&str> = objects
        .iter()
        .filter(|object| object["event"] == "warning")
        .map(|object| object["message"].as_str().unwrap())
        .collect();
    let [warning] = warnings[..] else {
        panic!("one warning: {warnings:?}");
    };
    assert!(warning.contains("but not of 1452"), "{warning}");
    let size = warning
        .split_once("carries datagrams of ")
        .and_then(|(_, rest)| rest.split_once(' '))
        .map(|(size, _)| size.parse::<u32>().unwrap())
        .unwrap();
    assert!((1_372 - 16..=1_372).contains(&size), "{warning}");
    assert!(warning.contains(&format!("mtu={}", size + 48)), "{warning}");
}

/// A router on the path silently drops larger packets.
pub(super) fn a_path_that_drops_full_packets_carries_smaller_ones() {
    let folder = Folder::new();
    let out = folder.path("out.ts");
    let mut receiver = Running::start(&[
        "recv",
        &format!("comity://127.0.0.1:0?mode=listener&{EARLY}&{SECRET}"),
        &out,
    ]);
    let to = format!("127.0.0.1:{}", receiver.port());
    let path = [
        "emulate",
        "--listen",
        "127.0.0.1:0",
        "--to",
        &to,
        "--delay",
        "5ms",
    ];
    // The test must not depend on the load of this machine.
    let mut path = Running::start(&[&path[..], &["--mtu", "1400", "--late", "60s"]].concat());
    let target = format!("comity://127.0.0.1:{}?{UNHURRIED}&{SECRET}", path.port());
    let clip = clip();
    let mut sender = Running::start(&["send", clip.to_str().unwrap(), &target, "--speed", "10"]);
    let warning = sender.event("warning");
    assert_one_warning(std::slice::from_ref(&warning));
    let (sent, _) = sender.end(0);
    assert_eq!(sent["output"]["totals"]["sectionsAcknowledged"], SECTIONS);
    receiver.end(0);
    assert_same_media(&folder.read("out.ts"), &fs::read(&clip).unwrap());
    path.interrupt();
    let (report, _) = path.end(0);
    assert_eq!(report["event"], "report");
    let way = &report["forward"];
    let count = |name: &str| way[name]["packets"].as_u64().unwrap();
    // The search is bounded: it tries each size a few times.
    assert!((1..60).contains(&count("dropped_large")), "{way}");
    let average = way["dropped_large"]["bytes"].as_u64().unwrap() / count("dropped_large");
    assert!((1_401..=1_480).contains(&average), "{way}");
    assert_eq!(
        count("arrived"),
        count("released") + count("dropped_large"),
        "{way}"
    );
}

/// The first packets of a connection have 1,200 bytes, and 28 more for IP and UDP.
pub(super) fn an_mtu_too_small_for_connections_is_reported() {
    let variables = [("COMITY", env!("CARGO_BIN_EXE_comity"))];
    let to = format!("comity://127.0.0.1:9000?conntimeo=1s&{KEY}");
    let clip = clip();
    let script = format!("\"$COMITY\" send '{}' '{to}'", clip.to_str().unwrap());
    let Some(output) = in_network(1_220, &script, &variables) else {
        return;
    };
    let said = checked(3, &output);
    for part in ["packets of 1220 bytes", "have 1228", "set its MTU"] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
    let doctor = "ip route add default dev lo && \"$COMITY\" doctor --json";
    let doctor = in_network(1_220, doctor, &variables).unwrap();
    checked(1, &doctor);
    let document: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let checks = document["checks"].as_array().unwrap();
    let found = checks
        .iter()
        .find(|check| check["check"] == "MTU of the outgoing interface");
    let found = found.unwrap();
    assert_eq!(found["verdict"], "bad", "{found}");
    assert!(
        found["remedy"].as_str().unwrap().contains("ip link"),
        "{found}"
    );
}
