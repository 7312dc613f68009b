//! Media from one end of the machine to the other: arrivals, reports of missing sections, and ends.
//!
//! These tests run in real time and mostly wait, so more of them run at a time than there are
//! processors. Each has its own ports, folders and network namespaces. The list in [`main`] names
//! all of them: the compiler warns about a test that is not in it.

#[path = "stream/broken.rs"]
mod broken;
#[path = "stream/copies.rs"]
mod copies;
#[path = "stream/datagrams.rs"]
mod datagrams;
#[path = "stream/elementary.rs"]
mod elementary;
#[path = "stream/ends.rs"]
mod ends;
#[path = "stream/following.rs"]
mod following;
#[path = "stream/gaps.rs"]
mod gaps;
#[path = "stream/live.rs"]
mod live;
#[path = "stream/narrow.rs"]
mod narrow;
#[path = "stream/refused.rs"]
mod refused;
#[path = "stream/relays.rs"]
mod relays;
#[path = "stream/restart.rs"]
mod restart;
#[path = "stream/running.rs"]
mod running;
#[path = "stream/stops.rs"]
mod stops;
#[path = "stream/times.rs"]
mod times;
#[path = "stream/wireshark.rs"]
mod wireshark;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::thread;

use libtest_mimic::{Arguments, Trial};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use elementary::elementary_streams;
use running::{Running, arrived, watch};

/// How many tests run at a time, unless `--test-threads` says otherwise.
const AT_A_TIME: usize = 6;

macro_rules! trials {
    ($($test:path),+ $(,)?) => {
        [$((stringify!($test), $test as fn())),+]
    };
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_A_TIME);
    let tests = trials![
        a_file_arrives_as_it_was,
        pictures_are_due_one_by_one_or_in_groups,
        a_new_stream_has_the_same_media,
        an_opaque_file_arrives_as_it_was,
        every_section_is_whole_or_in_the_list_of_gaps,
        gaps::a_lossy_path_costs_only_lost_packets,
        pipes_carry_it_from_a_listener_to_a_caller,
        relays::relays_keep_the_media_and_its_sections,
        relays::a_relay_keeps_sections_until_a_receiver_connects,
        relays::a_relay_stays_until_the_deadlines_of_its_sections,
        relays::what_did_not_reach_a_relay_is_in_the_list_of_the_last_receiver,
        unknown_data_is_carried_unchanged_and_reported,
        a_lost_receiver_is_found_again,
        sections_of_a_lost_connection_are_in_the_senders_list,
        gaps::a_section_waiting_for_room_at_the_stop_is_written_or_listed,
        gaps::a_relay_lists_sections_that_did_not_arrive_behind_it,
        gaps::a_relay_stopped_before_connecting_lists_its_sections,
        gaps::a_relay_that_cannot_connect_lists_its_sections,
        broken::garbage_within_the_stream_is_carried_and_reported,
        broken::units_that_garbage_cuts_and_a_lossy_path_loses_are_listed,
        broken::a_stream_that_becomes_unreadable_is_carried_up_to_there,
        broken::garbage_before_the_stream_is_carried_and_reported,
        broken::unknown_data_arrives_unchanged,
        broken::a_stream_cut_within_a_packet_arrives_unchanged,
        broken::an_empty_file_is_refused_before_the_call,
        broken::units_damaged_at_the_source_are_in_both_lists,
        copies::every_receiver_gets_the_same_stream,
        copies::a_receiver_that_leaves_costs_the_others_no_live_media,
        copies::a_receiver_that_leaves_costs_the_others_no_part_of_a_file,
        copies::a_late_receiver_gets_the_stream_from_then_on,
        copies::a_stalled_receiver_does_not_delay_others,
        copies::the_only_receiver_sets_the_pace_until_another_arrives,
        copies::options_of_senders_are_refused_where_they_have_no_effect,
        datagrams::datagrams_and_rtp_carry_the_stream_too,
        datagrams::a_port_is_open_for_both_families_and_an_address_for_its_own,
        datagrams::the_last_picture_is_sent_without_a_successor,
        datagrams::another_rtp_type_is_accepted_on_request_from_its_first_packet,
        datagrams::rtp_carries_only_transport_streams,
        refused::mistakes_are_reported_with_advice,
        refused::an_unopenable_list_leaves_no_output_and_vice_versa,
        ends::a_second_caller_is_refused_as_busy,
        refused::failed_connections_are_reported_with_the_reason,
        refused::a_secret_key_is_not_accepted_as_public_or_readable_by_others,
        refused::no_message_repeats_a_secret,
        refused::a_listener_may_start_after_its_caller,
        refused::a_key_that_is_not_on_the_list_is_refused,
        refused::a_caller_that_names_another_stream_is_refused,
        refused::settings_without_effect_are_reported,
        ends::either_end_may_be_stopped_without_losing_data,
        ends::simultaneous_signals_are_one_request,
        ends::an_ignored_hangup_ends_nothing,
        ends::a_second_stop_ends_at_once_and_lists_unwritten_sections,
        ends::an_unconfirmed_end_is_a_failure,
        ends::a_run_without_arrivals_is_a_failure,
        ends::json_replaces_status_lines,
        ends::a_full_disk_is_reported_at_both_ends,
        ends::sections_without_disk_space_are_in_the_list_of_gaps,
        ends::a_closed_reader_ends_the_command_without_an_error,
        ends::a_failing_list_of_gaps_does_not_end_the_stream,
        ends::prometheus_gets_metrics,
        ends::processes_with_secrets_write_no_core_dumps,
        ends::a_controller_without_retransmissions_causes_a_warning,
        refused::options_of_connections_are_refused_without_a_connection,
        following::a_program_gets_the_bitrate_and_may_hang,
        following::an_encoder_without_its_highest_bitrate_is_refused,
        live::a_working_encoder_is_piped_through_live,
        live::a_live_source_with_jumping_times_arrives_unchanged,
        narrow::an_interface_with_a_small_mtu_carries_everything,
        narrow::a_path_that_drops_full_packets_carries_smaller_ones,
        narrow::an_mtu_too_small_for_connections_is_reported,
        restart::a_killed_receiver_is_called_again_at_once,
        restart::a_killed_sender_is_served_again_at_once,
        stops::a_stuck_reader_does_not_delay_the_end,
        stops::a_silent_peer_does_not_delay_the_end,
        stops::deadlines_of_a_lost_sender_do_not_delay_the_end,
        stops::garbage_does_not_delay_the_end,
        stops::an_input_without_data_does_not_delay_the_end,
        stops::a_stop_right_after_listening_ends_orderly,
        times::a_file_without_times_is_sent_at_once_and_reported,
        times::a_growing_file_is_reported,
        wireshark::the_dissector_shows_every_packet_and_decrypts_with_the_key_log,
        wireshark::the_dissector_shows_every_frame,
        wireshark::a_key_log_is_kept_and_only_its_owner_reads_it,
    ];
    let trials = tests.into_iter().map(|(name, test)| {
        let run = move || {
            test();
            Ok(())
        };
        Trial::test(name.replace(' ', ""), run)
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// In the environment: on the command line, every command would warn.
const KEY: &str = "passphrase=@env:COMITY_TEST_SECRET";
/// The key, and time limits that no stall of the machine reaches. A test of a time limit uses the
/// key alone.
const SECRET: &str = "passphrase=@env:COMITY_TEST_SECRET&peeridletimeo=60s&linger=60s";
/// The time limit of calls whose URI has none.
const PATIENT: &str = "conntimeo=60s";
/// Deadlines that no stall of the machine reaches. The receiver needs [`EARLY`] as well, or its
/// output waits for the deadlines.
const UNHURRIED: &str = "latency=60s&drop=expired";
/// Sections are written as they arrive.
const EARLY: &str = "deliver=early";
/// The environment of every command.
const SECRET_VALUE: [(&str, &str); 1] = [("COMITY_TEST_SECRET", "correct horse battery")];

fn clip() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/demo/clip/clip.ts")
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_comity"));
    command.args(args.iter().map(|arg| match arg.contains(SECRET) {
        true if is_call(arg) => format!("{arg}&{PATIENT}"),
        _ => (*arg).to_owned(),
    }));
    command.stdin(Stdio::null()).envs(SECRET_VALUE);
    command
}

/// Whether a URI is a caller's.
fn is_call(uri: &str) -> bool {
    !uri.starts_with("comity://:") && !uri.contains("mode=listener")
}

/// Runs the command to its end with this code. Returns its messages.
fn ends(code: i32, args: &[&str]) -> String {
    let child = command(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _watch = watch(&child);
    let output = child.wait_with_output().unwrap();
    checked(code, &output)
}

fn checked(code: i32, output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// Starts a tool of ffmpeg, or tshark. Returns `None` and prints a message if there is none. For
/// ffmpeg, that is a failure if `COMITY_NEED_FFMPEG` is set, as in CI.
#[expect(
    clippy::print_stderr,
    reason = "that a test was skipped has to be seen"
)]
fn tool(command: &mut Command) -> Option<Child> {
    match command.spawn() {
        Ok(child) => Some(child),
        Err(error) => {
            let is_needed = command.get_program() != "tshark"
                && std::env::var_os("COMITY_NEED_FFMPEG").is_some();
            assert!(!is_needed, "{command:?}: {error}");
            eprintln!("skipped: {command:?}: {error}");
            None
        }
    }
}

/// The sections of the clip: 250 pictures, 470 frames of sound and 66 tables.
const SECTIONS: u64 = 786 + LAYOUTS;

/// The layouts of the clip, with their announcement.
const LAYOUTS: u64 = 145;

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// The sections in a list of gaps. The list must name each once.
    fn listed(&self, name: &str) -> BTreeSet<(u64, u64)> {
        self.gaps(name).into_keys().collect()
    }

    /// Each section in a list of gaps, by stream and number, with its line. Neighbours with the
    /// same fate may share a line.
    fn gaps(&self, name: &str) -> BTreeMap<(u64, u64), Value> {
        let list = String::from_utf8(self.read(name)).unwrap();
        let mut sections = BTreeMap::new();
        for line in list.lines() {
            let gap: Value = serde_json::from_str(line).unwrap();
            let number = |name: &str| gap[name].as_u64().unwrap();
            let first = number("section");
            for section in first..first + number("count") {
                let earlier = sections.insert((number("stream"), section), gap.clone());
                assert!(earlier.is_none(), "{gap}");
            }
        }
        sections
    }
}

fn assert_same_media(received: &[u8], sent: &[u8]) {
    let (received, sent) = (elementary_streams(received), elementary_streams(sent));
    assert_eq!(
        received.keys().collect::<Vec<_>>(),
        sent.keys().collect::<Vec<_>>()
    );
    for (pid, units) in &sent {
        assert_eq!(received[pid].len(), units.len(), "PID {pid}");
        let differs = |(received, sent): (&Vec<u8>, &Vec<u8>)| received != sent;
        let first = received[pid].iter().zip(units).position(differs);
        let unit = first.map(|unit| {
            let [received, sent] = [&received[pid][unit], &units[unit]];
            let at = received
                .iter()
                .zip(sent)
                .position(|(one, other)| one != other);
            (unit, at, received.len(), sent.len())
        });
        assert_eq!(
            unit, None,
            "PID {pid}: unit, byte, length received and sent"
        );
    }
}

fn a_file_arrives_as_it_was() {
    let folder = Folder::new();
    let (clip, out) = (clip(), folder.path("out.ts"));
    let mut receiver = Running::start(&["recv", &format!("comity://:0?{SECRET}"), &out]);
    // Sections are written at their deadlines, the default.
    let target = format!("comity://127.0.0.1:{}?latency=5s&{SECRET}", receiver.port());
    let sender = Running::start(&["send", clip.to_str().unwrap(), &target, "--speed", "10"]);
    let (sent, _) = sender.end(0);
    let (received, _) = receiver.end(0);
    assert!(folder.read("out.ts") == fs::read(clip).unwrap());
    assert_eq!(
        (&sent["event"], &received["event"]),
        (&"end".into(), &"end".into())
    );
    assert_eq!(sent["passed"]["whole"]["key"]["sections"], 10);
    assert_eq!(sent["passed"]["whole"]["B"]["sections"], 160);
    assert_eq!(received["passed"]["whole"], sent["passed"]["whole"]);
    assert_eq!(sent["output"]["totals"]["sectionsAcknowledged"], SECTIONS);
    assert_eq!(sent["output"]["totals"]["byteSentLate"], 0);
    assert_eq!(received["input"]["totals"]["sectionsOnTime"], SECTIONS);
}

/// A receiver that asks for a new stream gets no layouts. The sender sends the rest unchanged.
fn a_new_stream_has_the_same_media() {
    let folder = Folder::new();
    let (clip, out) = (clip(), folder.path("out.ts"));
    let from = format!("comity://:0?{EARLY}&{SECRET}");
    let mut receiver = Running::start(&["recv", &from, &out, "--remux"]);
    let to = format!(
        "comity://127.0.0.1:{}?{UNHURRIED}&{SECRET}",
        receiver.port()
    );
    let sender = Running::start(&["send", clip.to_str().unwrap(), &to, "--speed", "10"]);
    let (sent, _) = sender.end(0);
    let (received, _) = receiver.end(0);
    let (written, clip) = (folder.read("out.ts"), fs::read(clip).unwrap());
    assert!(written != clip);
    assert_same_media(&written, &clip);
    let submitted = &sent["output"]["totals"]["sectionsSubmitted"];
    assert_eq!(*submitted, SECTIONS - LAYOUTS);
    assert_eq!(arrived(&received), SECTIONS - LAYOUTS);
}

/// The output of an opaque source is equal to its input too, although no picture was recognised.
fn an_opaque_file_arrives_as_it_was() {
    let folder = Folder::new();
    let (clip, out) = (clip(), folder.path("out.ts"));
    let mut receiver = Running::start(&["recv", &format!("comity://:0?{EARLY}&{SECRET}"), &out]);
    let to = format!(
        "comity://127.0.0.1:{}?{UNHURRIED}&{SECRET}",
        receiver.port()
    );
    let input = clip.to_str().unwrap();
    let sender = Running::start(&["send", input, &to, "--opaque", "--speed", "10"]);
    let (sent, said) = sender.end(0);
    receiver.end(0);
    assert!(folder.read("out.ts") == fs::read(clip).unwrap());
    let kinds: Vec<_> = sent["passed"]["whole"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(kinds, ["slice"]);
    assert!(!said.contains("unknown container"), "{said}");
}

/// The distinct deadlines of the sections of an MPEG-1 video that `comity send` submitted, sorted,
/// in milliseconds, and the number of sections.
fn deadlines_given(rule: &[&str]) -> (Vec<f64>, usize) {
    let folder = Folder::new();
    let (out, trace) = (folder.path("out.m1v"), folder.path("send.sqlog"));
    let video =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../product/media/tests/vectors/mpeg1.m1v");
    let mut receiver = Running::start(&["recv", &format!("comity://:0?{EARLY}&{SECRET}"), &out]);
    let target = format!(
        "comity://127.0.0.1:{}?{UNHURRIED}&{SECRET}",
        receiver.port()
    );
    let mut args = vec!["send", video.to_str().unwrap(), &target, "--speed", "10"];
    args.extend(["--qlog", &trace]);
    args.extend(rule);
    Running::start(&args).end(0);
    receiver.end(0);
    let text = String::from_utf8(folder.read("send.sqlog")).unwrap();
    let mut deadlines: Vec<f64> = text
        .split('\u{1e}')
        .skip(2)
        .map(|record| serde_json::from_str::<Value>(record).unwrap())
        .filter(|event| event["name"] == "comity:section_submitted")
        .map(|event| event["data"]["deadline"].as_f64().unwrap())
        .collect();
    let sections = deadlines.len();
    deadlines.sort_unstable_by(f64::total_cmp);
    deadlines.dedup();
    (deadlines, sections)
}

/// The differences between consecutive deadlines, in milliseconds of the video.
fn steps(deadlines: &[f64]) -> Vec<f64> {
    let step = |pair: &[f64]| ((pair[1] - pair[0]) * 10.0).round();
    deadlines.windows(2).map(step).collect()
}

/// The video has 50 pictures of 40 ms, in groups of 12. Each picture is due at its decoding time,
/// or each group when its I picture is shown, which is one picture in 12.
fn pictures_are_due_one_by_one_or_in_groups() {
    let (deadlines, sections) = deadlines_given(&[]);
    assert_eq!((deadlines.len(), sections), (50, 50));
    assert_eq!(steps(&deadlines), [40.0; 49]);
    let (deadlines, sections) = deadlines_given(&["--deadlines", "group"]);
    assert_eq!(sections, 50);
    assert_eq!(steps(&deadlines), [480.0; 4]);
}

fn every_section_is_whole_or_in_the_list_of_gaps() {
    let folder = Folder::new();
    let (clip, out, gaps) = (clip(), folder.path("out.ts"), folder.path("gaps.jsonl"));
    let receiver_uri = format!("comity://:0?{SECRET}");
    let mut receiver = Running::start(&["recv", &receiver_uri, &out, "--gaps", &gaps, "--remux"]);
    let to = format!("127.0.0.1:{}", receiver.port());
    let mut path = Running::start(&[
        "emulate",
        "--listen",
        "127.0.0.1:0",
        "--to",
        &to,
        "--delay",
        "80ms",
        "--loss",
        "30%",
        "--seed",
        "3",
    ]);
    let target = format!("comity://127.0.0.1:{}?latency=60ms&{SECRET}", path.port());
    let sender = Running::start(&["send", clip.to_str().unwrap(), &target, "--speed", "4"]);
    let (sent, _) = sender.end(0);
    let (received, _) = receiver.end(0);
    path.interrupt();
    let listed = folder.listed("gaps.jsonl");
    assert!(
        !listed.is_empty(),
        "a round trip takes longer than the latency: repairs are too late"
    );
    let whole = arrived(&received);
    let sections = SECTIONS - LAYOUTS;
    assert_eq!(sent["output"]["totals"]["sectionsSubmitted"], sections);
    assert_eq!(whole + listed.len() as u64, sections);
    // The output is whole: each unit equals a sent one, byte for byte.
    let (written, original) = (folder.read("out.ts"), fs::read(clip).unwrap());
    let (written, original) = (elementary_streams(&written), elementary_streams(&original));
    let mut units = 0;
    for (pid, found) in &written {
        let known: BTreeSet<&Vec<u8>> = original[pid].iter().collect();
        assert!(found.iter().all(|unit| known.contains(unit)), "PID {pid}");
        units += found.len() as u64;
    }
    let tables = received["passed"]["whole"]["table"]["sections"]
        .as_u64()
        .unwrap_or(0);
    assert_eq!(units, whole - tables);
}

fn pipes_carry_it_from_a_listener_to_a_caller() {
    let clip = fs::read(clip()).unwrap();
    let mut sender = Running::spawn(
        command(&[
            "send",
            "-",
            &format!("comity://:0?{UNHURRIED}&{SECRET}"),
            "--json",
        ])
        .stdin(Stdio::piped()),
    );
    let from = format!("comity://127.0.0.1:{}?{EARLY}&{SECRET}", sender.port());
    let receiver = command(&["recv", &from, "-", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = sender.child.stdin.take().unwrap();
    pipe.write_all(&clip).unwrap();
    drop(pipe);
    sender.end(0);
    let output = receiver.wait_with_output().unwrap();
    let said = checked(0, &output);
    assert_same_media(&output.stdout, &clip);
    let last: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!(last["event"], "end", "objects go to the standard error");
    assert_eq!(last["output"]["bytes"], output.stdout.len());
}

fn unknown_data_is_carried_unchanged_and_reported() {
    let folder = Folder::new();
    let (text, out) = (folder.path("text"), folder.path("out"));
    let bytes: Vec<u8> = (0..60_000_u32)
        .flat_map(|n| (n % 241).to_be_bytes())
        .collect();
    fs::write(&text, &bytes).unwrap();
    let mut receiver = Running::start(&["recv", &format!("comity://:0?{EARLY}&{SECRET}"), &out]);
    let target = format!(
        "comity://127.0.0.1:{}?{UNHURRIED}&{SECRET}",
        receiver.port()
    );
    let said = ends(0, &["send", &text, &target, "-q"]);
    assert!(
        said.contains("unknown container; sent as raw bytes") && said.contains("-f mpegts -"),
        "{said}"
    );
    receiver.end(0);
    assert!(folder.read("out") == bytes);
}

/// Half of the clip goes to a receiver that is stopped, and half to the next one.
fn a_lost_receiver_is_found_again() {
    let folder = Folder::new();
    let clip = fs::read(clip()).unwrap();
    let (first, second) = (folder.path("first.ts"), folder.path("second.ts"));
    let (before, after) = clip.split_at(clip.len() / 2);
    let settings = format!("{EARLY}&{SECRET}");
    let mut receiver = Running::start(&["recv", &format!("comity://:0?{settings}"), &first]);
    let port = receiver.port();
    let target = format!("comity://127.0.0.1:{port}?{UNHURRIED}&{SECRET}");
    let mut sender = Running::fed(&["send", "-", &target]);
    sender.feed(before);
    receiver.statistics_when(|statistics| arrived(statistics) > 0);
    receiver.interrupt();
    receiver.end(0);
    sender.event("disconnected");
    let receiver = Running::start(&["recv", &format!("comity://:{port}?{settings}"), &second]);
    sender.event("connected");
    sender.feed(after);
    let (sent, _) = sender.end(0);
    receiver.end(0);
    assert_eq!(sent["output"]["totals"]["connections"], 2);
    let original = elementary_streams(&clip);
    for name in ["first.ts", "second.ts"] {
        let written = elementary_streams(&folder.read(name));
        let units: usize = written.values().map(Vec::len).sum();
        assert!(units > 0 && units < 720, "{name}: {units} units");
        // The last unit may be cut where the source stopped.
        let is_known = |pid: &u16, unit: &Vec<u8>| {
            let mut whole = original[pid].iter();
            whole.any(|whole| whole.starts_with(unit))
        };
        assert!(
            written
                .iter()
                .all(|(pid, units)| { units.iter().all(|unit| is_known(pid, unit)) })
        );
    }
}

/// The receiver dies silently, and another one replaces it. Sections that neither received are in
/// the sender's list, unless the first one had acknowledged them.
fn sections_of_a_lost_connection_are_in_the_senders_list() {
    let folder = Folder::new();
    let clip = fs::read(clip()).unwrap();
    let (first, second) = (folder.path("first.ts"), folder.path("second.ts"));
    let gaps = folder.path("gaps.jsonl");
    let (before, rest) = clip.split_at(clip.len() / 3);
    let (meanwhile, after) = rest.split_at(rest.len() / 2);
    let settings = format!("{EARLY}&{SECRET}");
    let mut receiver = Running::start(&["recv", &format!("comity://:0?{settings}"), &first]);
    let port = receiver.port();
    // The connection ends after the default five seconds of silence.
    let target = format!("comity://127.0.0.1:{port}?{UNHURRIED}&linger=60s&{PATIENT}&{KEY}");
    let mut sender = Running::fed(&["send", "-", &target, "--gaps", &gaps]);
    sender.feed(before);
    receiver.statistics_when(|statistics| arrived(statistics) > 60);
    receiver.child.kill().unwrap();
    receiver.child.wait().unwrap();
    sender.feed(meanwhile);
    let lost = sender.event("disconnected");
    assert!(
        lost["reason"]
            .as_str()
            .unwrap()
            .contains("no packet from the peer"),
        "{lost}"
    );
    let receiver = Running::start(&["recv", &format!("comity://:{port}?{settings}"), &second]);
    sender.event("connected");
    sender.feed(after);
    let (sent, _) = sender.end(0);
    receiver.end(0);
    let totals = &sent["output"]["totals"];
    assert_eq!(totals["connections"], 2);

    let original = elementary_streams(&clip);
    let mut arrived = BTreeSet::new();
    for name in ["first.ts", "second.ts"] {
        let mut bytes = folder.read(name);
        // The killed receiver may have been in the middle of a packet.
        bytes.truncate(bytes.len() / 188 * 188);
        for (pid, units) in elementary_streams(&bytes) {
            let known = &original[&pid];
            let numbers = units
                .iter()
                .filter_map(|unit| known.iter().position(|one| one == unit));
            arrived.extend(numbers.map(|number| (pid, number as u64)));
        }
    }
    let listed = folder.listed("gaps.jsonl");
    for line in String::from_utf8(folder.read("gaps.jsonl"))
        .unwrap()
        .lines()
    {
        let gap: Value = serde_json::from_str(line).unwrap();
        assert!(gap["bytes"].is_u64() && gap["type"].is_string(), "{gap}");
    }
    // Streams are numbered from 1 in the order of the program map, which here is the order of the
    // PIDs.
    let (mut unnamed, mut in_both) = (0, 0);
    for ((pid, units), stream) in original.iter().zip(1..) {
        for number in 0..units.len() as u64 {
            match (
                arrived.contains(&(*pid, number)),
                listed.contains(&(stream, number)),
            ) {
                (false, false) => unnamed += 1,
                (true, true) => in_both += 1,
                _ => {}
            }
        }
    }
    // The first receiver acknowledged these and was killed before it wrote them.
    let acknowledged = totals["sectionsAcknowledged"].as_u64().unwrap();
    let written = arrived.len() as u64 - in_both;
    assert!(
        unnamed + written <= acknowledged,
        "{unnamed} are in no file and in no list, {written} were written, {acknowledged} acknowledged"
    );
    assert!(
        arrived.len() > 30 && listed.len() > 30,
        "{} and {}",
        arrived.len(),
        listed.len()
    );
}
