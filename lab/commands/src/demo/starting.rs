//! The demo's flows in virtual time: the pictures that the sender sheds while its connection
//! searches for its rate.

use comity_frames::FrameType;
use comity_sim::frames::Frame;
use comity_sim::network::Workload;
use comity_sim::report::SectionsReport;
use comity_sim::scenario::{NoFiles, Reading, Scenario};
use comity_sim::{RunOptions, run};
use comity_units::{Seed, Span};

use super::clip::{Clip, Kind};

/// The video beside two Reno flows that begin with it, through a bottleneck of this rate.
fn beside_two(rate: &str, length: Span, seed: u64) -> SectionsReport {
    let text = format!(
        "[scenario]\n\
         name = \"start\"\n\
         duration = \"{}ns\"\n\
         [topology]\n\
         kind = \"dumbbell\"\n\
         bottleneck = {{ rate = \"{rate}\", delay = \"20ms\", queue = 60 }}\n\
         [[flow]]\n\
         group = \"video\"\n\
         transport = \"sections\"\n\
         latency = \"400ms\"\n\
         start = \"1s\"\n\
         workload = {{ kind = \"greedy\" }}\n\
         [[flow]]\n\
         group = \"rivals\"\n\
         count = 2\n\
         start = {{ at = \"950ms\", spread = \"60ms\" }}\n\
         transport = \"sections\"\n\
         controller = \"reno\"\n\
         latency = \"none\"\n\
         reliability = \"full\"\n",
        (length + Span::from_secs(2)).as_nanos()
    );
    let scenario = Scenario::parse("start", &text, NoFiles, &Reading::default()).unwrap();
    let (mut network, _) = scenario.prepare(&scenario.runs()[0]);
    let plan = Clip::bundled().plan(4, length);
    let frames = plan.iter().map(|planned| Frame {
        at: planned.at,
        bytes: u32::try_from(planned.media.payload.len()).unwrap(),
        frame_type: match planned.kind().is_picture() {
            true => planned.media.frame,
            false => FrameType::Slice,
        },
    });
    network.flows[0].workload = Workload::Frames(frames.collect());
    let report = run(&network, Seed::new(seed), &RunOptions::default()).unwrap();
    report.flows[0].sections.clone().unwrap()
}

/// The video needs three quarters of an equal share.
#[test]
fn no_picture_is_shed_while_the_rate_is_still_being_found() {
    for seed in 1..=20 {
        let report = beside_two("9Mbps", Span::from_secs(7), seed);
        assert_eq!(report.shed, 0, "seed {seed}");
        assert_eq!(report.on_time, report.submitted, "seed {seed}");
    }
}

/// The video needs nearly three equal shares.
#[test]
fn a_source_above_its_share_sheds_after_the_start() {
    let length = Span::from_secs(20);
    let plan = Clip::bundled().plan(4, length);
    let droppable = plan.iter().filter(|one| one.kind() == Kind::Bidirectional);
    let droppable = droppable.count() as u64;
    for seed in 1..=3 {
        let report = beside_two("2400kbps", length, seed);
        assert!(report.shed > droppable / 10, "seed {seed}: {}", report.shed);
    }
}
