//! Files without times.

use std::fs;
use std::io::Write;
use std::thread;

use crate::{EARLY, Folder, Running, SECRET, UNHURRIED, clip, elementary_streams};

/// The clip without time stamps and clock references.
fn untimed() -> Vec<u8> {
    let mut stream = fs::read(clip()).unwrap();
    for packet in stream.chunks_mut(188) {
        let (has_field, begins) = (packet[3] & 0x20 != 0, packet[1] & 0x40 != 0);
        if has_field && packet[4] > 0 && packet[5] & 0x10 != 0 {
            packet[5] &= !0x10;
            packet[6..12].fill(0xff);
        }
        let start = match has_field {
            true => 5 + usize::from(packet[4]),
            false => 4,
        };
        let head = &mut packet[start..];
        if begins && head.starts_with(&[0, 0, 1]) {
            head[7] &= 0x3f;
            let length = usize::from(head[8]);
            head[9..9 + length].fill(0xff);
        }
    }
    stream
}

pub(super) fn a_file_without_times_is_sent_at_once_and_reported() {
    let folder = Folder::new();
    let (source, out) = (folder.path("in.ts"), folder.path("out.ts"));
    fs::write(&source, untimed()).unwrap();
    let mut receiver = Running::start(&["recv", &format!("comity://:0?{EARLY}&{SECRET}"), &out]);
    let target = format!(
        "comity://127.0.0.1:{}?{UNHURRIED}&{SECRET}",
        receiver.port()
    );
    let mut sender = Running::start(&["send", &source, &target]);
    let warning = sender.event("warning");
    let message = warning["message"].as_str().unwrap();
    for part in ["no time stamps", "sent at once", "ffmpeg"] {
        assert!(message.contains(part), "{message}");
    }
    let (_, said) = sender.end(0);
    assert!(said.contains(message), "{said}");
    receiver.end(0);
    let received = folder.read("out.ts");
    let media = |stream: &[u8]| {
        let streams = elementary_streams(stream);
        streams
            .into_values()
            .map(|units| units.len())
            .sum::<usize>()
    };
    assert_eq!(media(&received), media(&fs::read(&source).unwrap()));
}

/// Bytes that are appended to a file after its end was read are not sent, and the sender reports
/// them.
pub(super) fn a_growing_file_is_reported() {
    let clip = fs::read(clip()).unwrap();
    for grows in [true, false] {
        let folder = Folder::new();
        let (source, out) = (folder.path("growing.ts"), folder.path("out.ts"));
        fs::write(&source, &clip[..clip.len() / 5 / 188 * 188]).unwrap();
        let mut relay = Running::start(&["relay", &source, &out]);
        let mut file = fs::OpenOptions::new().append(true).open(&source).unwrap();
        // The end of the file is read at once, a second before the last section leaves.
        while grows && relay.child.try_wait().unwrap().is_none() {
            file.write_all(&clip[..188]).unwrap();
            thread::yield_now();
        }
        let (_, said) = relay.end(0);
        assert_eq!(said.contains("has grown by"), grows, "{said}");
        assert_eq!(said.contains("tail -c +1 -f"), grows, "{said}");
    }
}
