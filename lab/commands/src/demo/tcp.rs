//! The same video over simulated TCP: the TCP of the kernel cannot pass an emulator of UDP.

use comity_frames::FrameType;
use comity_link::LinkConfig;
use comity_sim::frames::Frame;
use comity_sim::network::Workload;
use comity_sim::scenario::{NoFiles, Reading, Scenario};
use comity_sim::{Observer, RunOptions, SectionEvent, run_observed};
use comity_units::{Seed, Span, Time};

use super::clip::Planned;
use super::recording::{Fate, Other, Sent, Setup};
use super::viewer::Viewing;
use crate::numbers::percent;

pub(super) const NAME: &str = "TCP, simulated";
/// When the video begins: the competitors begin slightly earlier, as in the emulator.
const BEGIN: Span = Span::from_millis(50);
/// How long after the last deadline a section counts as complete.
const PATIENCE: Span = Span::from_secs(3);

/// The number of runs; odd, so that there is a median.
const RUNS: u64 = 11;

/// Simulates the video as one TCP connection of Linux, beside as many TCP flows as there were
/// competitors, through `link` in each direction. The result of TCP depends on chance, so the
/// median run counts.
pub(crate) fn simulate(setup: &Setup, plan: &[Planned], link: &LinkConfig) -> Other {
    let flows = match setup.flows {
        1 => format!("one TCP flow ({})", setup.rival()),
        flows => format!("{flows} TCP flows ({})", setup.rival()),
    };
    let mut how = format!(
        "Simulated in virtual time, not sent: CUBIC as in Linux 6, beside {flows}, through the same bottleneck."
    );
    let sections = runs(setup, plan, link).map(|mut runs| {
        runs.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        if let [(least, _), .., (most, _)] = runs.as_slice() {
            how += &format!(
                " Of {RUNS} runs with other seeds, this is the one in the middle; {} to {} of the pictures were \
                 shown in time.",
                percent(*least),
                percent(*most)
            );
        }
        let middle = runs.len() / 2;
        runs.swap_remove(middle).1
    });
    Other {
        name: NAME.into(),
        how,
        sections,
    }
}

/// The sections of each run, and the share of pictures that were shown in time.
fn runs(
    setup: &Setup,
    plan: &[Planned],
    link: &LinkConfig,
) -> Result<Vec<(f64, Vec<Sent>)>, String> {
    (0..RUNS)
        .map(|number| {
            let seed = Seed::new(setup.seed.wrapping_add(number));
            let times = completions(setup, plan, link, seed)?;
            let fate = |index, due_s| fate(&times, index, due_s);
            let sections = Sent::all(plan, setup.latency, fate);
            Ok((Viewing::of(&sections).shown_share(), sections))
        })
        .collect()
}

fn fate(times: &[Option<Time>], index: usize, due_s: f64) -> Fate {
    let begin_s = BEGIN.as_secs_f64();
    match times.get(index).copied().flatten() {
        Some(at) => Fate::Complete {
            slack_ms: (due_s - (at.as_secs_f64() - begin_s)) * 1e3,
        },
        None => Fate::Gap("not complete at the end"),
    }
}

/// When each section of the plan was complete.
fn completions(
    setup: &Setup,
    plan: &[Planned],
    link: &LinkConfig,
    seed: Seed,
) -> Result<Vec<Option<Time>>, String> {
    let frames: Vec<Frame> = plan
        .iter()
        .map(|planned| Frame {
            at: planned.at,
            bytes: u32::try_from(planned.media.payload.len()).unwrap_or(u32::MAX),
            frame_type: FrameType::Slice,
        })
        .collect();
    let text = scenario(setup);
    let scenario = Scenario::parse("the demo", &text, NoFiles, &Reading::default());
    let scenario = scenario.map_err(|problems| {
        // The position in the generated text does not help the reader.
        let text = problems.to_string();
        let line = text.lines().next().unwrap_or_default();
        let reason = line.rsplit_once("`: ").map_or(line, |(_, reason)| reason);
        format!("{}: {reason}", setup.rivals)
    })?;
    let runs = scenario.runs();
    let run = runs.first().ok_or("the scenario has no run")?;
    let (mut network, _) = scenario.prepare(run);
    for one in &mut network.links {
        one.config = link.clone();
    }
    if let Some(video) = network.flows.first_mut() {
        video.workload = Workload::Frames(frames.as_slice().into());
    }
    let mut seen = Seen {
        frames: &frames,
        times: vec![None; frames.len()],
        next: 0,
    };
    run_observed(&network, seed, &RunOptions::default(), &mut seen)
        .map_err(|error| error.to_string())?;
    Ok(seen.times)
}

/// The flows. The links and the workload of the video are set elsewhere.
fn scenario(setup: &Setup) -> String {
    let duration = setup.duration + setup.latency + BEGIN + PATIENCE;
    format!(
        "[scenario]\n\
         name = \"demo\"\n\
         duration = \"{}ns\"\n\
         [topology]\n\
         kind = \"dumbbell\"\n\
         bottleneck = {{ rate = \"1Mbps\", delay = \"1ms\", queue = 60 }}\n\
         [[flow]]\n\
         group = \"video\"\n\
         preset = \"modern\"\n\
         start = \"{}ns\"\n\
         timeline = {{ deadline = \"{}ns\", drop_expired = false }}\n\
         workload = {{ kind = \"greedy\" }}\n\
         [[flow]]\n\
         group = \"tcp\"\n\
         count = {}\n\
         preset = \"modern\"\n\
         controller = \"{}\"\n\
         start = {{ spread = \"50ms\" }}\n",
        duration.as_nanos(),
        BEGIN.as_nanos(),
        setup.latency.as_nanos(),
        setup.flows,
        setup.rivals,
    )
}

/// Records when the receiver of the video has each section; TCP delivers them in order.
struct Seen<'a> {
    frames: &'a [Frame],
    times: Vec<Option<Time>>,
    next: usize,
}

impl Observer for Seen<'_> {
    fn on_section(&mut self, flow: u32, event: &SectionEvent) {
        if flow != 0 {
            return;
        }
        // The send buffer may have had no room for the sections in between.
        let rest = self.frames.iter().skip(self.next);
        let skipped = rest
            .take_while(|frame| u64::from(frame.bytes) != event.bytes)
            .count();
        let index = self.next + skipped;
        if let Some(time) = self.times.get_mut(index) {
            *time = event.completed;
        }
        self.next = index + 1;
    }
}

#[cfg(test)]
mod tests {
    use comity_link::{Limit, Queue};
    use comity_units::Rate;

    use super::super::clip::Clip;
    use super::super::metrics::tests::recording;
    use super::*;

    /// 2.3 Mb/s alone through a link of this rate, with a delay of 20 ms.
    fn shown(mbps: u64) -> f64 {
        let setup = Setup {
            flows: 0,
            duration: Span::from_secs(5),
            ..recording().setup
        };
        let plan = Clip::bundled().plan(4, setup.duration);
        let link = LinkConfig {
            queue: Queue::DropTail(Limit::Packets(60)),
            ..LinkConfig::new(Rate::from_mbps(mbps), Span::from_millis(20))
        };
        let sections = simulate(&setup, &plan, &link).sections.unwrap();
        assert_eq!(sections.len(), plan.len());
        let delays = sections.iter().filter_map(|section| match section.fate {
            Fate::Complete { slack_ms } => Some(section.allowed_ms - slack_ms),
            _ => None,
        });
        assert!(delays.into_iter().all(|delay| delay > 20.0));
        Viewing::of(&sections).shown_share()
    }

    #[test]
    fn simulated_tcp_is_late_if_the_video_does_not_fit() {
        assert_eq!(shown(20), 1.0);
        let half = shown(1);
        assert!(half < 0.5, "{half}");
    }
}
