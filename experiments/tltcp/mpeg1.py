"""Section 4: MPEG-1 over TLTCP beside the same video as a file over TCP, played frame by frame.

TLTCP's longest time without a frame stands against the longest pause of TCP's player, which the
paper does not describe: after a pause it waits for 290 kB, which was chosen here.
"""

from comity.reproduction import Scenario, claim

#: Rates that carry more than half of the video of 1.16 Mb/s, and rates that carry less.
HALF = ["1100kbps", "800kbps"]
LESS = ["500kbps", "300kbps"]
STARTS_LATE = (
    "each frame that is sent waited almost its two seconds behind others, and most expire on the way: "
    "no rule of the paper leaves room between what is sent and what is due. Feedback comes after the "
    "first losses, and tries all frames again after five good reports"
)
#: What the source submits: all frames, or what the reports of the reader leave.
SOURCES = {
    "all frames": '{ deadline = "2s" }',
    "frames by feedback": '{ deadline = "2s", feedback = "2s" }',
}


def of(column):
    """A column of the one flow."""
    return lambda run: run.flows("mpeg")[column].mean()


def longest_gap(runs):
    """The longest time for which no frame was in time, in s; a frame lasts 40 ms."""
    return runs.measure(of("timeline_longest_interruption")) * 0.04


def references_in_time(run):
    """The share of the 501 I and P frames that were in time, in per cent."""
    in_time = run.flows("mpeg")[["timeline_intra_in_time", "timeline_predicted_in_time"]]
    return in_time.to_numpy().sum() / 5.01


@claim(
    "tltcp-mpeg-playback",
    says=(
        "with too little bandwidth, frames are missing and playback continues; with TCP, playback "
        "stops"
    ),
    source="sections 1 and 4",
    scenario={"tltcp": Scenario("mpeg1.toml"), "tcp": Scenario("mpeg1_player.toml")},
    ours=True,
)
def playback(runs, check):
    tltcp, tcp = runs["tltcp"], runs["tcp"]
    longest, references = longest_gap(tltcp), tltcp.measure(references_in_time)
    pause = tcp.measure(of("longest_stall_s"))
    for reading, timeline in SOURCES.items():
        for rates, fails in ((HALF, None), (LESS, STARTS_LATE)):
            check(
                "longest time without a frame below TCP's longest pause, s",
                longest.at(rate=rates, timeline=timeline),
                below=pause.at(rate=rates),
                reading=reading,
                part=" and ".join(rates),
                fails=fails,
            )
        check.show(
            "longest time without a frame, s", longest.at(timeline=timeline), reading=reading
        )
        check.show("% of I and P frames in time", references.at(timeline=timeline), reading=reading)
    check.show("TCP: start-up delay, s", tcp.measure(of("startup_delay_s")))
    check.show("TCP: pauses", tcp.measure(of("stalls")))
    check.show("TCP: pauses, s", tcp.measure(of("stalled_s")))
    check.show("TCP: longest pause, s", pause)


@playback.picture
def picture(runs, draw):
    bars = {"TCP": runs["tcp"].measure(of("longest_stall_s"))}
    for name, timeline in SOURCES.items():
        bars[f"TLTCP, {name}"] = longest_gap(runs["tltcp"]).at(timeline=timeline)
    draw.bars("longest time without a frame", bars, over="rate", x="bottleneck", y="s")
