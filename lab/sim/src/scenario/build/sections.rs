//! From tables to flows of sections.

use comity_congestion::table::{Parameters, find};
use comity_transport::datagram;
use comity_transport::timeline::{Deliver, DropPolicy, Reliability};
use comity_units::{Span, Time};

use super::super::problem::ProblemKind;
use super::super::schema::Context;
use super::super::tables::flow::{FlowTable, WorkloadTable};
use super::super::tables::sections::{EncoderTable, PauseTable, SectionsTable, VideoTable};
use super::sizes::{narrow, size};
use crate::frames::{AdaptiveVideo, AdaptiveVideoError, Pause, Video};
use crate::network::{FlowError, SectionsSpec};

/// The default latency of sections.
const USUAL_LATENCY: Span = Span::from_millis(120);

/// The transport of a flow of sections; `None` only after a report.
pub(super) fn spec(
    table: &SectionsTable,
    flow: &FlowTable,
    cx: &mut Context<'_>,
) -> Option<SectionsSpec> {
    let reported = cx.problems.len();
    let written = &table.written;
    let is_greedy = matches!(flow.workload, None | Some(WorkloadTable::Greedy(_)));
    let usual = (!is_greedy).then_some(USUAL_LATENCY);
    let mut spec = SectionsSpec {
        config: datagram::Config {
            reliability: table.reliability.unwrap_or_default(),
            drop: table.drop,
            deliver: table.deliver,
            payload: narrow(table.payload),
            overhead: narrow(table.overhead),
            ack_frequency: table.ack_frequency,
            ack_delay: table.ack_delay,
            keep_alive: table.keep_alive,
            idle_timeout: table.idle_timeout,
            pace_windows: table.pace_windows,
            ecn: table.ecn,
            pad: table.pad,
            send_buffer: table.buffer.get(),
            ..datagram::Config::default()
        },
        controller: table.controller.clone(),
        parameters: Parameters::new(),
        initial_window: size(table.initial_window, table.payload),
        latency: table.latency.unwrap_or(usual),
        section: table.section,
        acknowledgement: table.acknowledgement,
        shed: table.shed,
    };
    let row = find(&spec.controller).ok();
    if let (None, Some(row)) = (table.reliability, row) {
        spec.config.reliability = Reliability::usual(row);
    }
    report_idle(table, flow, &spec, cx);
    if let Some(table) = &table.parameters {
        let path = written.path_of("parameters");
        table.set(row, &mut spec.parameters, &path, cx);
    }
    (cx.problems.len() == reported).then_some(spec)
}

/// Reports keys that have no effect beside the others. A key that states the default is not
/// reported.
fn report_idle(table: &SectionsTable, flow: &FlowTable, spec: &SectionsSpec, cx: &mut Context<'_>) {
    let written = &table.written;
    let is_full = spec.config.reliability == Reliability::Full;
    let why_kept = match (is_full, spec.latency) {
        (true, _) => Some("with reliability = \"full\", deadlines are not enforced"),
        (false, None) => Some("without `latency`, sections have no deadlines"),
        (false, Some(_)) => None,
    };
    if let Some(why) = why_kept.filter(|_| table.drop != DropPolicy::Never) {
        cx.report_idle(written, "drop", why);
    }
    if spec.latency.is_none() && table.deliver == Deliver::Paced {
        cx.report_idle(
            written,
            "deliver",
            "without `latency`, sections have no deadlines",
        );
    }
    if flow.has_frames() {
        cx.report_idle(written, "section", "each frame is a section");
    }
    if table.shed && is_full {
        cx.report_idle(
            written,
            "shed",
            "with reliability = \"full\", nothing is shed",
        );
    } else if table.shed && !flow.has_frames() {
        cx.report_idle(written, "shed", "only frames are shed");
    }
}

pub(super) fn video(table: &VideoTable, cx: &mut Context<'_>) -> Option<Video> {
    let Ok(ratio) = <[f64; 3]>::try_from(table.ratio.as_slice()) else {
        let (found, min, max) = (table.ratio.len(), 3, 3);
        let kind = ProblemKind::Length { found, min, max };
        cx.report_at(&table.written, "ratio", kind);
        return None;
    };
    Some(Video {
        fps: table.fps,
        rate: table.rate,
        group: table.group,
        b_frames: table.b_frames,
        ratio,
        variation: table.variation,
    })
}

pub(super) fn encoder(table: &EncoderTable, cx: &mut Context<'_>) -> Option<AdaptiveVideo> {
    let pause = |pause: &PauseTable| Pause {
        at: Time::ZERO + pause.at,
        lasts: pause.lasts,
    };
    let video = AdaptiveVideo {
        min_rate: table.min_rate,
        max_rate: table.max_rate,
        initial_rate: table.initial_rate.unwrap_or(table.max_rate),
        reaction: table.reaction,
        fps: table.fps,
        group: table.group,
        key_size: table.key_size,
        burst: table.burst,
        abrupt: table.abrupt,
        size_scale: table.size_scale,
        interval_scale: table.interval_scale,
        pauses: table.pauses.iter().map(pause).collect(),
    };
    if let Err(error) = video.validate() {
        let keys: &[&str] = match error {
            AdaptiveVideoError::Rates { .. } => &["min_rate", "max_rate"],
            AdaptiveVideoError::InitialRate { .. } => &["initial_rate"],
            AdaptiveVideoError::KeySize { .. } => &["key_size", "burst", "group"],
            AdaptiveVideoError::NoFrames | AdaptiveVideoError::Share => &[],
        };
        let key = keys.iter().find(|key| table.written.has(key));
        let kind = ProblemKind::Flow {
            error: FlowError::Encoder(error),
        };
        cx.report_at(&table.written, key.copied().unwrap_or(""), kind);
        return None;
    }
    if video.key_size <= 1.0 {
        let why = "with key_size = 1, key frames have the mean size";
        cx.report_idle(&table.written, "burst", why);
    }
    if video.min_rate == video.max_rate {
        let why = "the minimum rate is the maximum, so the rate never changes";
        for key in ["reaction", "abrupt", "initial_rate"] {
            cx.report_idle(&table.written, key, why);
        }
    }
    Some(video)
}
