//! Schemes and keys of other tools, and their equivalents in Comity.

use comity::uri::keys;

/// The advice for a URI of a protocol that Comity does not support: a tool that does, and a pipe.
/// `None` for other schemes.
pub(super) fn bridge(scheme: &str) -> Option<String> {
    let speaks = "which other tools speak";
    let scheme = scheme.to_ascii_lowercase();
    Some(match &*scheme {
        "srt" => format!(
            "SRT is a protocol of its own, {speaks}. Bridge it with a pipe: srt-live-transmit -q 'srt://..' \
             file://con | comity send - comity://host:9000, or comity recv comity://:9000 - | \
             srt-live-transmit -q file://con 'srt://..'"
        ),
        "rist" | "rtmp" | "rtmps" | "rtsp" | "rtsps" | "http" | "https" | "hls" | "tcp"
        | "whip" | "whep" | "sftp" | "ftp" => format!(
            "it is a protocol of its own, {speaks}. Bridge it with a pipe: ffmpeg -i '{scheme}://..' -c copy \
             -f mpegts - | comity send - comity://host:9000, or comity recv comity://:9000 - | ffmpeg -i - \
             -c copy -f {} '{scheme}://..'",
            match &*scheme {
                "rtmp" | "rtmps" => "flv",
                "rtsp" | "rtsps" => "rtsp",
                _ => "mpegts",
            }
        ),
        _ => return None,
    })
}

/// Like [`bridge`], for `comity check`, which only reads.
pub(crate) fn bridge_to_check(scheme: &str) -> Option<String> {
    bridge(scheme)?;
    let scheme = scheme.to_ascii_lowercase();
    let tool = match &*scheme {
        "srt" => "srt-live-transmit -q 'srt://..' file://con".to_owned(),
        _ => format!("ffmpeg -i '{scheme}://..' -c copy -f mpegts -"),
    };
    Some(format!(
        "other tools speak this protocol. Bridge it with a pipe: {tool} | comity check -"
    ))
}

/// The advice for a key of ffmpeg or of a connection in a `udp://` or `rtp://` URI.
pub(super) fn hint(name: &str) -> Option<&'static str> {
    Some(match name {
        "fifo_size" => "unread datagrams wait in the socket: set its size with \"rcvbuf\"",
        "overrun_nonfatal" => {
            "datagrams beyond \"rcvbuf\" are lost and counted, and the program goes on; leave it out"
        }
        "localaddr" | "localport" | "local_port" => "set the local address and port with \"bind\"",
        "reuse" | "reuse_socket" => "several programs can always listen to one group; leave it out",
        "connect" | "broadcast" | "sources" | "block" | "timeout" | "write_to_file" => {
            "Comity has no such setting; leave it out"
        }
        "bitrate" | "burst_bits" => "packets leave when their media is due; leave it out",
        name if keys().iter().any(|key| key.is_called(name)) => {
            "it is a key of comity://, for connections only; leave it out"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::media::KEYS;
    use super::*;

    #[test]
    fn hints_are_for_names_that_are_none_here_and_name_what_is() {
        for key in &KEYS {
            let own = [key.name].into_iter().chain(key.aliases.iter().copied());
            assert!(
                own.filter(|name| !keys().iter().any(|key| key.is_called(name)))
                    .all(|name| hint(name).is_none())
            );
        }
        for (name, ours) in [("fifo_size", "rcvbuf"), ("localaddr", "bind")] {
            let hint = hint(name).expect(name);
            assert!(hint.contains(&format!("\"{ours}\"")), "{hint}");
            assert!(KEYS.iter().any(|key| key.name == ours), "{ours}");
        }
        assert!(hint("latency").is_some_and(|hint| hint.contains("comity://")));
        assert_eq!(hint("colour"), None);
    }
}
