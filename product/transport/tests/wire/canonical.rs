//! Payloads, datagrams and transport parameters as canonical JSON, like that of the codec in
//! Python, and in the shortest form on the wire.

use comity_congestion::{Report, Tag};
use comity_transport::wire::frame::{
    self, Ack, Content, Data, Frame, Framing, ReceiverReport, Section,
};
use comity_transport::wire::header::{self, Packet, encode_version_negotiation};
use comity_transport::wire::limits::VERSION;
use comity_transport::wire::parameters::{Deliver, Parameters, Reliability};

/// The codec's result for some bytes: canonical JSON or an error, and the shortest form of the
/// bytes if they can be read and written.
pub(crate) struct Answer {
    pub(crate) json: String,
    pub(crate) shortest: Option<Vec<u8>>,
}

impl Answer {
    fn unwritten(json: impl Into<String>) -> Self {
        Self {
            json: json.into(),
            shortest: None,
        }
    }

    fn read(json: String, shortest: Vec<u8>) -> Self {
        Self {
            json,
            shortest: Some(shortest),
        }
    }
}

/// An object with its names in order.
fn object(mut fields: Vec<(&str, String)>) -> String {
    fields.sort_unstable();
    let fields = fields.into_iter();
    let fields: Vec<_> = fields
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .collect();
    format!("{{{}}}", fields.join(","))
}

macro_rules! object {
    ($($name:literal: $value:expr),* $(,)?) => {
        object(vec![$(($name, $value.to_string())),*])
    };
}

fn list(values: impl IntoIterator<Item = impl ToString>) -> String {
    let values: Vec<_> = values.into_iter().map(|value| value.to_string()).collect();
    format!("[{}]", values.join(","))
}

fn or_null(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| value.to_string())
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn octets(bytes: &[u8]) -> String {
    quoted(&hex(bytes))
}

fn ack(ack: &Ack<'_>) -> String {
    let ranges = ack.ranges.iter();
    let ranges = ranges.map(|range| list([range.first.get(), range.last.get()]));
    object! {
        "frame": quoted("ack"),
        "delay": ack.delay.as_micros(),
        "arrival": ack.arrival.as_micros(),
        "ranges": list(ranges),
        "ecn": or_null(ack.ecn.map(|ecn| list([ecn.ect0, ecn.ect1, ecn.ce]))),
        "proof": or_null(ack.proof),
    }
}

fn section(section: &Section<'_>) -> String {
    let header = &section.header;
    let Data::Bytes(data) = section.data else {
        panic!("the bytes are there: {section:?}");
    };
    let after = (header.deadline.as_nanos() - header.source_time.as_nanos()) / 1_000;
    object! {
        "frame": quoted("section"),
        "repeated": header.is_retransmission,
        "stream": header.stream,
        "section": header.section,
        "floor": header.floor,
        "offset": header.offset,
        "total": header.total,
        "source_time": header.source_time.as_nanos() / 1_000,
        "deadline": or_null((!header.deadline.is_never()).then_some(after)),
        "importance": header.importance,
        "needs": or_null(header.needs),
        "data": octets(data),
    }
}

fn tag(tag: &Tag) -> String {
    match *tag {
        Tag::None => panic!("a frame has a tag"),
        Tag::Wave {
            wave,
            segments,
            position,
        } => object! {
            "frame": quoted("tag_wave"),
            "wave": wave,
            "segments": segments,
            "position": position,
        },
        Tag::Round { round, rtt } => object! {
            "frame": quoted("tag_round"),
            "round": round,
            "round_trip_time": rtt.as_micros(),
        },
        Tag::Numbered { number, rtt } => object! {
            "frame": quoted("tag_numbered"),
            "number": number,
            "round_trip_time": rtt.as_micros(),
        },
    }
}

fn feedback(report: &Report) -> String {
    match *report {
        Report::None => panic!("a frame has a report"),
        Report::Wave { level } => object! {"frame": quoted("feedback_wave"), "level": level},
        Report::LossEvents { rate, received } => object! {
            "frame": quoted("feedback_loss_events"),
            "loss_event_rate": rate.to_bits(),
            "receive_rate": received.as_bps(),
        },
        Report::Count { round, packets } => object! {
            "frame": quoted("feedback_count"),
            "round": round,
            "packets": packets,
        },
    }
}

fn receiver_report(report: &ReceiverReport) -> String {
    object! {
        "frame": quoted("receiver_report"),
        "complete": report.complete,
        "on_time": report.on_time,
        "late": report.late,
        "with_gaps": report.with_gaps,
        "bytes": report.bytes,
        "packets": report.packets,
        "duplicates": report.duplicates,
        "one_way_delay_latest": report.one_way_latest_us,
        "one_way_delay_least": report.one_way_least_us,
        "jitter": report.jitter.as_micros(),
        "buffered": report.buffered,
        "clock_drift": report.drift_ppb,
    }
}

fn frame(frame: &Frame<'_>) -> String {
    match frame {
        Frame::Padding { length } => object! {"frame": quoted("padding"), "count": length},
        Frame::Ping => object! {"frame": quoted("ping")},
        Frame::Ack(frame) => ack(frame),
        Frame::Section(frame) => section(frame),
        Frame::Floor(frame) => object! {
            "frame": quoted("floor"),
            "stream": frame.stream,
            "floor": frame.floor,
        },
        Frame::Dropped(frame) => object! {
            "frame": quoted("drop"),
            "stream": frame.stream,
            "section": frame.section,
            "reason": frame.reason as u8,
        },
        Frame::Credit(frame) => object! {
            "frame": quoted("credit"),
            "bytes": frame.bytes,
            "sections": frame.sections,
        },
        Frame::Tag(frame) => tag(frame),
        Frame::Feedback(frame) => feedback(frame),
        Frame::ReceiverReport(frame) => receiver_report(frame),
        Frame::PathChallenge(data) => {
            object! {"frame": quoted("path_challenge"), "data": octets(data)}
        }
        Frame::PathResponse(data) => {
            object! {"frame": quoted("path_response"), "data": octets(data)}
        }
        Frame::Close(frame) => object! {
            "frame": quoted("close"),
            "code": frame.code.get(),
            "reason": octets(frame.reason.as_bytes()),
        },
        Frame::End(frame) => object! {
            "frame": quoted("end"),
            "stream": frame.stream,
            "sections": frame.sections,
        },
        Frame::Blocked => object! {"frame": quoted("blocked")},
    }
}

pub(crate) fn payload(bytes: &[u8]) -> Answer {
    let read = frame::decode(bytes, Content::Present).and_then(|read| {
        let frames: Result<Vec<_>, _> = read.frames.collect();
        Ok((read.departure, frames?))
    });
    let (departure, frames) = match read {
        Ok(read) => read,
        Err(error) => return Answer::unwritten(format!("error {}", error.code().get())),
    };
    let json = object! {
        "departure": departure.as_micros(),
        "frames": list(frames.iter().map(frame)),
    };
    let mut shortest = Vec::new();
    frame::encode_departure(departure, &mut shortest);
    let last = frames.len() - 1;
    for (at, mut frame) in frames.into_iter().enumerate() {
        if let Frame::Section(section) = &mut frame {
            section.framing = match at == last {
                true => Framing::ToEnd,
                false => Framing::Length,
            };
        }
        frame
            .encode(&mut shortest)
            .expect("what was read can be written");
    }
    Answer::read(json, shortest)
}

pub(crate) fn datagram(bytes: &[u8]) -> Answer {
    let Ok(packet) = header::decode(bytes) else {
        return Answer::unwritten("error");
    };
    let mut out = Vec::new();
    let (json, written) = match packet {
        Packet::Initial(initial) => (
            object! {
                "packet": quoted("initial"),
                "version": VERSION,
                "source": initial.source.get(),
                "pattern": initial.pattern as u8,
                "cookie": octets(initial.cookie),
                "message": octets(initial.message),
            },
            initial.encode(&mut out),
        ),
        Packet::UnknownVersion { version, source } => {
            return Answer::unwritten(object! {
                "packet": quoted("initial"),
                "version": version,
                "source": source.get(),
            });
        }
        Packet::Retry(retry) => (
            object! {
                "packet": quoted("retry"),
                "version": VERSION,
                "destination": retry.destination.get(),
                "cookie": octets(retry.cookie),
            },
            retry.encode(&mut out),
        ),
        Packet::Answer(answer) => (
            object! {
                "packet": quoted("answer"),
                "version": VERSION,
                "destination": answer.destination.get(),
                "ticket": octets(answer.ticket),
                "message": octets(answer.message),
            },
            answer.encode(&mut out),
        ),
        Packet::Data { header, sealed, .. } => {
            // Without the mask, flags other than the key phase are errors. The session checks them.
            if bytes[0] & 0x0e != 0 {
                return Answer::unwritten("error");
            }
            out.extend(header.encode());
            out.extend(sealed);
            let json = object! {
                "packet": quoted("data"),
                "phase": u8::from(header.key_phase),
                "destination": header.destination.get(),
                "number": header.number,
                "payload": octets(sealed),
            };
            (json, Ok(()))
        }
        Packet::VersionNegotiation {
            destination,
            versions,
        } => {
            let versions: Vec<u32> = versions.iter().collect();
            let json = object! {
                "packet": quoted("version_negotiation"),
                "destination": destination.get(),
                "versions": list(&versions),
            };
            (
                json,
                encode_version_negotiation(destination, &versions, &mut out),
            )
        }
        Packet::Confirm(confirm) => (
            object! {
                "packet": quoted("confirm"),
                "ticket": octets(confirm.ticket),
                "message": octets(confirm.message),
            },
            confirm.encode(&mut out),
        ),
        Packet::Accept(accept) => (
            object! {
                "packet": quoted("accept"),
                "destination": accept.destination.get(),
                "message": octets(accept.message),
            },
            accept.encode(&mut out),
        ),
        Packet::Reset(reset) => {
            out.extend(reset.encode());
            let json = object! {
                "packet": quoted("reset"),
                "source": reset.source.get(),
                "token": octets(&reset.token),
            };
            (json, Ok(()))
        }
    };
    written.expect("what was read can be written");
    Answer::read(json, out)
}

/// Returns no shortest form: it omits defaults, which this codec writes.
pub(crate) fn parameters(bytes: &[u8]) -> Answer {
    let Ok(read) = Parameters::decode(bytes) else {
        return Answer::unwritten("error");
    };
    let text = |text: &Option<String>| or_null(text.as_ref().map(|text| octets(text.as_bytes())));
    Answer::unwritten(object! {
        "latency": read.latency.as_micros(),
        "reliability": match read.reliability {
            Reliability::Timeline => 0,
            Reliability::None => 1,
            Reliability::Full => 2,
        },
        "deliver": match read.deliver {
            Deliver::Early => 0,
            Deliver::Paced => 1,
        },
        "largest_datagram": read.max_datagram,
        "idle_timeout": read.idle_timeout.as_millis(),
        "initial_credit": read.initial_credit,
        "open_sections": read.max_open_sections,
        "largest_ack_delay": read.max_ack_delay.as_micros(),
        "stream_name": text(&read.stream_name),
        "meter": text(&read.meter),
        "ecn": u8::from(read.ecn),
        "controller": text(&read.controller),
        "meter_parameters": text(&read.meter_parameters),
        "features": read.features,
        "proofs": u8::from(read.proofs),
    })
}
