//! A live encoder at the other end of the pipe.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{EARLY, Folder, Running, SECRET, UNHURRIED, clip, command, tool};

const WIDTH: usize = 320;
const HEIGHT: usize = 180;
/// The number of frames for the encoder, and the number of them before the first pictures have
/// arrived.
const FRAMES: usize = 75;
const AT_FIRST: usize = 50;

/// A bar that moves over a grey picture, in YUV 4:2:0.
fn frame(number: usize) -> Vec<u8> {
    let bar = number * 4 % WIDTH..(number * 4 % WIDTH) + 16;
    let row = (0..WIDTH).map(|at| if bar.contains(&at) { 235 } else { 90 });
    let row: Vec<u8> = row.collect();
    [row.repeat(HEIGHT), vec![128; WIDTH * HEIGHT / 2]].concat()
}

fn pictures(object: &Value) -> u64 {
    let count = |kind: &&str| object["passed"]["whole"][*kind]["sections"].as_u64();
    ["key", "P", "B"].iter().filter_map(count).sum()
}

/// Pictures arrive while the encoder still works, and at the end all of them have arrived.
pub(super) fn a_working_encoder_is_piped_through_live() {
    let size = format!("{WIDTH}x{HEIGHT}");
    let mut encoder = Command::new("ffmpeg");
    encoder
        .args(["-v", "error", "-f", "rawvideo", "-pix_fmt", "yuv420p"])
        .args(["-s", &size, "-r", "25", "-i", "-"])
        .args(["-c:v", "libx264", "-preset", "ultrafast"])
        .args(["-g", "25", "-bf", "2", "-flush_packets", "1"])
        .args(["-f", "mpegts", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let Some(mut encoder) = tool(&mut encoder) else {
        return;
    };
    let folder = Folder::new();
    let out = folder.path("out.ts");
    let mut receiver = Running::start(&[
        "recv",
        &format!("comity://127.0.0.1:0?mode=listener&{EARLY}&{SECRET}"),
        &out,
    ]);
    let to = format!(
        "comity://127.0.0.1:{}?{UNHURRIED}&{SECRET}",
        receiver.port()
    );
    let sender = Running::spawn(
        command(&["send", "-", &to, "--json"]).stdin(encoder.stdout.take().unwrap()),
    );
    let mut frames = (0..FRAMES).map(frame);
    let mut source = encoder.stdin.take().unwrap();
    for frame in frames.by_ref().take(AT_FIRST) {
        source.write_all(&frame).unwrap();
    }
    receiver.statistics_when(|statistics| pictures(statistics) > 10);
    for frame in frames {
        source.write_all(&frame).unwrap();
    }
    drop(source);
    let (_, said) = sender.end(0);
    assert!(encoder.wait().unwrap().success());
    let (received, _) = receiver.end(0);
    assert_eq!(pictures(&received), FRAMES as u64, "{received}\n{said}");
    assert_eq!(received["passed"]["gaps"], serde_json::json!({}));
    let mut probe = Command::new("ffprobe");
    probe
        .args(["-v", "error", "-count_frames", "-select_streams", "v:0"])
        .args(["-show_entries", "stream=nb_read_frames"])
        .args(["-of", "default=nokey=1:noprint_wrappers=1", &out])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let Some(probe) = tool(&mut probe) else {
        return;
    };
    let probed = probe.wait_with_output().unwrap();
    let complaints = String::from_utf8_lossy(&probed.stderr);
    assert_eq!(complaints, "");
    let shown = String::from_utf8_lossy(&probed.stdout);
    let shown = shown.lines().next().map(str::trim);
    assert_eq!(shown, Some(FRAMES.to_string().as_str()));
}

/// The clock references of a live source jump by 3 s in the middle. The output is equal to the
/// input, and a message reports the jump.
pub(super) fn a_live_source_with_jumping_times_arrives_unchanged() {
    let mut source = fs::read(clip()).unwrap();
    let half = source.len() / 188 / 2 * 188;
    for packet in source[half..].chunks_mut(188) {
        if packet[3] & 0x20 != 0 && packet[4] > 0 && packet[5] & 0x10 != 0 {
            let reference = packet[6..10].iter();
            let reference = reference.fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte));
            // In ticks of 45 kHz: the lowest bit of the base is left out.
            let jumped = reference.wrapping_add(3 * 45_000);
            packet[6..10].copy_from_slice(&jumped.to_be_bytes());
        }
    }
    let folder = Folder::new();
    let out = folder.path("out.ts");
    let mut receiver = Running::start(&["recv", &format!("comity://:0?{EARLY}&{SECRET}"), &out]);
    let to = format!(
        "comity://127.0.0.1:{}?{UNHURRIED}&{SECRET}",
        receiver.port()
    );
    let mut sender = Running::fed(&["send", "-", &to]);
    sender.feed(&source);
    let warning = sender.event("warning");
    let message = warning["message"].as_str().unwrap();
    assert!(
        message.contains("PID 256: the clock references (PCR) of the source jumped 3.0")
            && message.contains(" s ahead"),
        "{message}"
    );
    let (sent, _) = sender.end(0);
    receiver.end(0);
    assert_eq!(sent["passed"]["notices"]["discontinuity"], 1, "{sent}");
    assert!(folder.read("out.ts") == source);
}
