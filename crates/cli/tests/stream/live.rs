//! A live encoder on the other end of the pipe.

use std::process::{Command, Stdio};

use super::{Folder, Running, SECRET, command, tool};

/// How long the encoder works, in real time, and what it makes in it.
const SECONDS: u32 = 3;
const RATE: u32 = 25;

/// Frames are sent as the encoder makes them, over three seconds, and every one of them arrives.
pub(super) fn an_encoder_is_piped_through_as_it_works() {
    let source = format!("testsrc2=size=320x180:rate={RATE}:duration={SECONDS}");
    let mut encoder = Command::new("ffmpeg");
    encoder
        .args(["-v", "error", "-re", "-f", "lavfi", "-i", &source])
        .args([
            "-c:v",
            "libx264",
            "-preset",
            "ultrafast",
            "-g",
            "25",
            "-bf",
            "2",
        ])
        .args(["-f", "mpegts", "-"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let Some(mut encoder) = tool(&mut encoder) else {
        return;
    };
    let folder = Folder::new();
    let out = folder.path("out.ts");
    let mut receiver = Running::start(&[
        "recv",
        &format!("comity://127.0.0.1:0?mode=listener&deliver=early&{SECRET}"),
        &out,
    ]);
    // Long enough for a machine that is busy.
    let to = format!(
        "comity://127.0.0.1:{}?latency=20s&drop=expired&{SECRET}",
        receiver.port()
    );
    let sender = Running::spawn(
        command(&["send", "-", &to, "--json"]).stdin(encoder.stdout.take().unwrap()),
    );
    let (sent, said) = sender.end(0);
    assert!(encoder.wait().unwrap().success());
    let (received, _) = receiver.end(0);
    let pictures: u64 = ["key", "P", "B"]
        .iter()
        .map(|kind| &received["passed"]["whole"][kind]["sections"])
        .map(|sections| sections.as_u64().unwrap_or(0))
        .sum();
    assert_eq!(pictures, u64::from(SECONDS * RATE), "{received}\n{said}");
    assert_eq!(received["passed"]["gaps"], serde_json::json!({}));
    // As it was made, not all at the end.
    let elapsed = sent["elapsed_s"].as_f64().unwrap();
    assert!(elapsed > f64::from(SECONDS) - 1.0, "{sent}");
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
    assert_eq!(shown, Some((SECONDS * RATE).to_string().as_str()));
}
