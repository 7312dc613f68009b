//! Notices about the media of an input.

use std::time::Duration;

use comity_media::rtp::TRANSPORT_STREAM;
use comity_media::{self as media, Jump, JumpedTimes, PACKET};
use comity_stream::Notice;
use comity_units::Rate;

/// The kinds of notices.
pub(crate) const NOTICES: [&str; 10] = [
    "codec",
    "damage",
    "discontinuity",
    "format",
    "full",
    "other",
    "overrun",
    "rtp",
    "rtp loss",
    "scrambled",
];

/// What is said of two RTP sources, such as a main and a backup encoder.
pub(crate) const RTP_RIVAL: &str = "two RTP sources send to this address at the same time; the second one is used when \
     the first is silent for half a second";

/// What is said of RTP packets of this type at an udp:// input.
pub(crate) fn looks_like_rtp(payload_type: u8) -> String {
    let by_type = match payload_type {
        TRANSPORT_STREAM => String::new(),
        other => format!("?pt={other}"),
    };
    format!(
        "the datagrams are RTP packets: each has a header before its transport packets. \
         rtp://HOST:PORT{by_type} reads them"
    )
}

/// The datagrams of bare media are RTP packets.
pub(super) fn is_rtp(payload_type: u8) -> Notice {
    Notice {
        kind: "rtp",
        text: format!(
            "{}; --opaque carries them as they are",
            looks_like_rtp(payload_type)
        ),
    }
}

/// The read-ahead buffer is full: it contains `bytes` bytes, which cover this time of the source.
pub(super) fn full(bytes: usize, held: Duration) -> Notice {
    Notice {
        kind: "full",
        text: format!(
            "at most {} MiB of the input are read ahead, which hold {:.2} s of it here: its rate is very high, or \
             its times stand still. Streams that lie further apart in it leave at different times",
            bytes >> 20,
            held.as_secs_f64(),
        ),
    }
}

/// A file has grown by this many bytes since it was read to its end.
pub(super) fn grown(name: &str, more: u64) -> Notice {
    Notice {
        kind: "other",
        text: format!(
            "{name} has grown by {more} bytes since its end was read, and these are not sent. To follow a file that \
             is being written: tail -c +1 -f {name} | comity send - .."
        ),
    }
}

/// Packets of an RTP source are missing before those that arrived.
pub(super) fn rtp_loss(packets: u64) -> Notice {
    Notice {
        kind: "rtp loss",
        text: format!(
            "{packets} RTP packets are missing from the input: they did not come, or came more than 50 ms behind later \
             ones"
        ),
    }
}

/// Two RTP sources send to one address.
pub(super) fn rtp_rival() -> Notice {
    Notice {
        kind: "rtp",
        text: format!("{RTP_RIVAL}; only one is sent"),
    }
}

/// This host dropped datagrams of the input.
pub(super) fn overrun(datagrams: u64) -> Notice {
    Notice {
        kind: "overrun",
        text: format!(
            "this host dropped {datagrams} datagrams of the input, since they came faster than it read them: the source \
             and the network before it are not to blame. Raise sysctl net.core.rmem_max and rcvbuf in the URI, or \
             relieve this host"
        ),
    }
}

/// The meaning of a notice for the operator of the source. `stored_at` is the assumed rate of a
/// file without times.
pub(super) fn for_operator(notice: &media::Notice, stored_at: Option<Rate>) -> Notice {
    Notice {
        kind: kind(notice),
        text: text(notice, stored_at),
    }
}

const fn kind(notice: &media::Notice) -> &'static str {
    match notice {
        media::Notice::UnknownFormat | media::Notice::PacketsApart { .. } => "format",
        media::Notice::UnsupportedCodec { .. } | media::Notice::TooManyStreams { .. } => "codec",
        media::Notice::Scrambled { .. } => "scrambled",
        media::Notice::Discontinuity { .. } => "discontinuity",
        media::Notice::LostSync { .. }
        | media::Notice::Damaged { .. }
        | media::Notice::Break { .. }
        | media::Notice::WrongLength { .. }
        | media::Notice::NoFrames { .. }
        | media::Notice::Oversized { .. } => "damage",
        _ => "other",
    }
}

fn text(notice: &media::Notice, stored_at: Option<Rate>) -> String {
    match *notice {
        media::Notice::UnknownFormat => format!(
            "unknown container; sent as raw bytes, {}. If ffmpeg can read it: \
             ffmpeg -i INPUT -c copy -f mpegts - | comity send - ..",
            match stored_at {
                Some(rate) => format!("as if it had {rate} (--input-rate)"),
                None => "as they arrive".into(),
            }
        ),
        media::Notice::UnsupportedCodec { pid, stream_type } => format!(
            "PID {pid} has the unknown stream type {stream_type:#04x}: its packets are sent whole, and without frame \
             types"
        ),
        media::Notice::TooManyStreams { pid, most } => format!(
            "the transport stream has more than {most} streams: the packets of PID {pid} and of those listed after it \
             are sent whole, without frame types, and a receiver with --remux leaves them out"
        ),
        media::Notice::Scrambled { pid } => {
            format!("PID {pid} is scrambled: its packets are sent as they are, in slices")
        }
        media::Notice::Untimed { bytes } => format!(
            "no time stamps (PTS) and no clock references (PCR) in {bytes} bytes: all of it was sent at once. \
             ffmpeg can add them: ffmpeg -re -i INPUT -c copy -f mpegts - | comity send - .."
        ),
        media::Notice::PacketsApart { bytes } => format!(
            "the transport stream has packets of {bytes} bytes: a receiver with --remux or an rtp:// output leaves \
             out {} bytes of each",
            bytes.saturating_sub(PACKET as u64)
        ),
        media::Notice::LostSync { skipped } => {
            format!("the transport stream lost sync: {skipped} bytes are in no packet")
        }
        media::Notice::Damaged { pid } => {
            format!(
                "PID {pid}: part of an access unit or a table is missing from the input, or marked as wrong there"
            )
        }
        media::Notice::Break { pid } => format!(
            "PID {pid}: packets are missing from the input between access units, or it was spliced there; every unit is whole"
        ),
        media::Notice::WrongLength { pid } => format!(
            "PID {pid}: PES packets are shorter or longer than they say; each ends where the next one begins"
        ),
        media::Notice::NoFrames { pid } => format!(
            "PID {pid}: audio outside of frames of AAC or MPEG audio is sent as it comes, in whole PES packets"
        ),
        media::Notice::Oversized { pid, bytes } => {
            format!("PID {pid}: an access unit of more than {bytes} bytes is dropped")
        }
        media::Notice::Discontinuity { pid, times, by } => {
            let times = match times {
                JumpedTimes::Stamps => "time stamps (DTS, PTS)",
                JumpedTimes::References => "clock references (PCR)",
            };
            let (by, direction) = match by {
                Jump::Ahead(by) => (by, "ahead"),
                Jump::Back(by) => (by, "back"),
            };
            let goes_on = match stored_at {
                Some(_) => "its sections go on without a pause",
                None => "its sections are due by their arrival, as before",
            };
            format!(
                "PID {pid}: the {times} of the source jumped {:.3} s {direction}; {goes_on}",
                by.as_secs_f64()
            )
        }
        _ => format!("{notice:?}"),
    }
}
