"""Every controller on the same networks: makes docs/results/controllers.md.

    python experiments/controllers/matrix.py [--seeds N]

Friendliness over loss rate, round trip, buffer and number of flows; smoothness over time scales;
the response to a step of capacity; the convergence of a late starter; the delay at the bottleneck;
frames on time.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

import comity
import numpy as np
import pandas as pd
from comity.suites.chapter import markdown

FOLDER = Path(__file__).parent
PAGE = FOLDER.parent.parent / "docs" / "results" / "controllers.md"

CONTROLLERS = {
    "reno": "Reno",
    "cubic": "CUBIC",
    "bbr": "BBR",
    "vegas": "Vegas",
    "libra": "Libra",
    "real": "TCP-Real",
    "iftp": "IFTP",
    "psp": "packet spacing",
    "rap": "RAP",
    "tfrc": "TFRC",
    "steady": "media",
}
RIVALS = {"reno": "Reno", "cubic": "CUBIC", "bbr": "BBR"}

#: What differs from the base, by the axes loss, delay, queue and rivals.
NETWORKS = {
    ("[]", "20ms", "67", "1"): "base",
    ("0.001", "20ms", "67", "1"): "loss 0.1 %",
    ("0.01", "20ms", "67", "1"): "loss 1 %",
    ("[]", "5ms", "17", "1"): "RTT 10 ms",
    ("[]", "75ms", "250", "1"): "RTT 150 ms",
    ("[]", "20ms", "17", "1"): "buffer ¼",
    ("[]", "20ms", "267", "1"): "buffer 4",
    ("[]", "20ms", "codel", "1"): "CoDel",
    ("[]", "20ms", "67", "4"): "4 rivals",
    ("[]", "20ms", "67", "16"): "16 rivals",
}
AXES = ["rival", "loss", "delay", "queue", "rivals"]
#: When the capacity of alone.toml falls and returns, in seconds, and the capacities, in bit/s.
FALL, RETURN, HIGH, LOW = 40.0, 80.0, 20e6, 5e6
BIN = 0.1


def network(loss: str, delay: str, queue: str, rivals: object) -> str:
    """The name of a network by the values of its axes."""
    loss = loss.split("probability = ")[1].split(" ")[0] if "probability" in loss else "[]"
    queue = "codel" if "codel" in str(queue) else str(queue)
    return NETWORKS[loss, delay, queue, str(rivals)]


def friendliness(flows: pd.DataFrame) -> pd.DataFrame:
    """The throughput of the tested flow over the mean of its rivals': a row for each run."""
    names = [network(*row) for row in zip(*(flows[axis] for axis in AXES[1:]))]
    runs = ["rival", "network", "controller", "seed"]
    mean = flows.assign(network=names).pivot_table(
        index=runs, columns="group", values="throughput_bps"
    )
    return (mean.tested / mean.rival).rename("ratio").reset_index()


def smoothness(rates: np.ndarray, scale: float) -> float:
    """The coefficient of variation of a rate, given for each bin, over means of `scale` seconds."""
    width = round(scale / BIN)
    means = rates[: len(rates) // width * width].reshape(-1, width).mean(axis=1)
    return float(means.std() / means.mean()) if means.mean() > 0 else np.nan


def first_time(
    times: np.ndarray, holds: np.ndarray, start: float, end: float, length: float = 1.0
) -> float:
    """Seconds from `start` until something holds for `length` seconds, if it does by `end`."""
    inside = (times >= start - 1e-9) & (times < end - 1e-9)
    run = 0
    for time, now in zip(times[inside], holds[inside]):
        run = run + 1 if now else 0
        if run >= round(length / BIN):
            return float(time - start - (run - 1) * BIN)
    return np.nan


def alone(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """What a flow alone uses, how smooth it is, and how fast it follows: a row for each run."""
    rows = []
    bottleneck = tables["link_series"][tables["link_series"].link == "bottleneck"]
    links = dict(list(bottleneck.sort_values("bin_start_ns").groupby("run")))
    flows = dict(list(tables["flow_series"].sort_values("bin_start_ns").groupby("run")))
    for run in tables["runs"].itertuples():
        flow, link = flows[run.run], links[run.run]
        times = flow.bin_start_ns.to_numpy() / 1e9
        sent = flow.sent_packets.to_numpy(dtype=float)
        carried = link.carried_bytes.to_numpy() * 8 / BIN
        steady = (times >= 10) & (times < FALL)
        # Packets are of one size: what they carry of the link when none is lost.
        offered = sent * carried[steady].sum() / sent[steady].sum()
        rows.append(
            {
                "controller": run.controller,
                "seed": run.seed,
                "used": carried[steady].mean() / HIGH,
                **{
                    f"variation_{scale:g}": smoothness(sent[steady], scale) for scale in (0.1, 1, 5)
                },
                "fall_s": first_time(times, last_second(offered) <= 1.1 * LOW, FALL, RETURN),
                "lost": link.dropped_packets.to_numpy()[(times >= FALL) & (times < FALL + 5)].sum(),
                "return_s": first_time(times, last_second(carried) >= 0.9 * HIGH, RETURN, 120.0),
            }
        )
    return pd.DataFrame(rows)


def last_second(values: np.ndarray) -> np.ndarray:
    """The mean over the second that ends with each bin."""
    width = round(1 / BIN)
    return np.convolve(values, np.ones(width) / width)[: len(values)]


def delays(pair: pd.DataFrame, beside: pd.DataFrame) -> pd.DataFrame:
    """The queueing delay with two flows of a controller, and beside Reno: a row for each run."""
    runs = ["controller", "seed"]
    pair = pair[pair.link == "bottleneck"].set_index(runs)
    rows = zip(*(beside[axis] for axis in AXES))
    base = np.array([rival == "reno" and network(*row) == "base" for rival, *row in rows])
    beside = beside[base & (beside.link == "bottleneck")].set_index(runs)
    return pd.DataFrame(
        {
            "two_median_ms": pair.queueing_delay_median_s * 1000,
            "two_p95_ms": pair.queueing_delay_p95_s * 1000,
            "reno_median_ms": beside.queueing_delay_median_s * 1000,
            "reno_p95_ms": beside.queueing_delay_p95_s * 1000,
        }
    ).reset_index()


def newcomer(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """When a late starter has its share, and how equal both are then: a row for each run."""
    groups = tables["groups"]
    together = groups[groups.group == "tested"]
    return together[["controller", "seed", "convergence_s", "jain"]]


def video(flows: pd.DataFrame) -> pd.DataFrame:
    """The share of frames that can be decoded in time: a row for each run."""
    tested = flows[flows.group == "tested"]
    beside = [
        "nobody" if rivals == 0 else f"{rivals} {RIVALS[rival]}"
        for rivals, rival in zip(tested.rivals, tested.rival)
    ]
    # What is under way at the end of the run has no outcome yet.
    decodable = tested.sections_decodable / (tested.sections_submitted - tested.sections_open)
    return tested.assign(beside=beside, decodable=decodable)[
        ["controller", "latency", "beside", "seed", "decodable"]
    ]


def cells(
    frame: pd.DataFrame, value: str, columns: list[str], form: Callable[[float], str]
) -> list[list[str]]:
    """A row of medians over the seeds for each controller, with a cell for each of `columns`."""
    key = [column for column in frame if column not in ("controller", "seed", value)]
    median = frame.groupby(["controller", *key])[value].median()
    return [
        [name, *(form(median.get((controller, column), np.nan)) for column in columns)]
        for controller, name in CONTROLLERS.items()
    ]


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(markdown(head, rows))


def number(value: float, digits: int = 2) -> str:
    """A number, or a dash."""
    return f"{value:.{digits}f}" if np.isfinite(value) else "–"


def whole(value: float) -> str:
    """A number without digits, or a dash."""
    return number(value, 0)


def percent(value: float) -> str:
    """A share in percent, or a dash."""
    return number(100 * value, 1)


def seconds(value: float) -> str:
    """A time in seconds, or never."""
    return number(value, 1) if np.isfinite(value) else "never"


def page(tables: Callable[[str], dict[str, pd.DataFrame]], seeds: int) -> str:
    """The whole page."""
    beside, pair = tables("friendly"), tables("newcomer")
    ratio = friendliness(beside["flows"])
    single, late = alone(tables("alone")), newcomer(pair)
    waiting = delays(pair["links"], beside["links"])
    frames = video(tables("video")["flows"])

    def middle(frame: pd.DataFrame, value: str, **choice: object) -> pd.Series:
        for axis, chosen in choice.items():
            frame = frame[frame[axis] == chosen]
        # A median over seeds; where most runs never get there, it is infinite.
        return frame.assign(value=frame[value].fillna(np.inf)).groupby("controller").value.median()

    def on_networks(rival: str) -> pd.Series:
        chosen = ratio[ratio.rival == rival].groupby(["controller", "network"]).ratio.median()
        return chosen.map(lambda value: 0.5 <= value <= 2.0).groupby("controller").sum()

    def overview(columns: dict[str, pd.Series]) -> str:
        """A table with a row for each controller, and these columns."""
        rows = [
            [name, *(column[key] for column in columns.values())]
            for key, name in CONTROLLERS.items()
        ]
        return table(["controller", *columns], rows)

    on_time = {
        (latency, beside): middle(frames, "decodable", latency=latency, beside=beside).map(percent)
        for latency, beside in (("120ms", "nobody"), ("400ms", "1 CUBIC"))
    }
    falls, returns = (middle(single, value).map(seconds) for value in ("fall_s", "return_s"))
    equal_after = middle(late, "convergence_s").map(seconds)
    delay = {value: middle(waiting, value).map(whole) for value in waiting if value.endswith("_ms")}
    matrix = overview(
        {
            "beside Reno": on_networks("reno").map("{} of 10".format),
            "beside CUBIC": on_networks("cubic").map("{} of 10".format),
            "link used, %": middle(single, "used").map(percent),
            "delay of two, ms": delay["two_p95_ms"],
            "variation in 1 s": middle(single, "variation_1").map(number),
            "falls in, s": falls,
            "returns in, s": returns,
            "late flow, s": equal_after,
            "120 ms alone, %": on_time["120ms", "nobody"],
            "400 ms beside CUBIC, %": on_time["400ms", "1 CUBIC"],
        }
    )
    parts = [HEAD.format(seeds=seeds), matrix, READING]
    for rival, name in RIVALS.items():
        rows = cells(
            ratio[ratio.rival == rival].drop(columns="rival"),
            "ratio",
            list(NETWORKS.values()),
            number,
        )
        parts += [f"### Beside {name}", table(["controller", *NETWORKS.values()], rows)]
    parts += [
        SMOOTH,
        overview(
            {
                f"{scale} s": middle(single, f"variation_{scale}").map(number)
                for scale in ("0.1", "1", "5")
            }
        ),
        STEPS,
        overview(
            {
                "falls in, s": falls,
                "lost in 5 s, packets": middle(single, "lost").map(whole),
                "returns in, s": returns,
            }
        ),
        DELAY,
        overview(
            {
                "two: median": delay["two_median_ms"],
                "two: 95th percentile": delay["two_p95_ms"],
                "beside Reno: median": delay["reno_median_ms"],
                "beside Reno: 95th percentile": delay["reno_p95_ms"],
            }
        ),
        LATE,
        overview(
            {
                "shares are equal after, s": equal_after,
                "Jain's index, 60 to 120 s": middle(late, "jain").map("{:.3f}".format),
            }
        ),
        FRAMES,
    ]
    for latency in ("120ms", "400ms", "1s"):
        chosen = frames[frames.latency == latency].drop(columns="latency")
        beside = list(dict.fromkeys(chosen.beside))
        rows = cells(chosen, "decodable", beside, percent)
        parts += [
            f"### {latency.replace('ms', ' ms').replace('1s', '1,000 ms')}",
            table(["controller", *beside], rows),
        ]
    return "\n\n".join(parts) + "\n"


HEAD = """\
# Which controller?

Made by `python experiments/controllers/matrix.py --seeds {seeds}`. Do not edit.

**Live video: `steady`, the media controller** ("media" in the tables), the default of
`comity send`. With a latency of 120 ms beside TCP, it has two to four times as many frames on time
as the next controller. With 400 ms beside Reno and CUBIC, it has all frames on time, like Reno,
CUBIC, BBR and RAP. Beside BBR it has half of them, and all others except BBR have almost none. The
price: beside Reno it takes three to five times its share if 1 % is lost at random, and if round
trips are much shorter or longer than the base. Alone with a latency of 120 ms, it has fewer frames
on time than others: key frames leave at once, and overflow a buffer that it has filled. If the
latency is that short and no other flow uses the link, `cubic` and `iftp` lose fewer frames.

**Stored video, and other media with a second of buffer: `cubic`**, the default of `comity tcp`.
With a latency of 1,000 ms beside Reno and CUBIC, seven controllers have every frame on time, so
speed and fairness decide. CUBIC uses the whole link, and follows a step of capacity at once and
with few losses. Of the controllers that fill the link, it has equal shares of two flows soonest.
Beside Reno on long round trips, `rap` and `tfrc` are fairer. With `steady`, no section with a
deadline is late there, either.

**Not on shared links**: `bbr` takes nearly the whole link from Reno and CUBIC unless the buffer is
large. `libra` leaves them nearly the whole link. `vegas` and `real` take the jitter of
acknowledgements for a queue, and alone use half to two thirds of a link. Flows of `psp` keep the
shares with which they began. `iftp` misses frames beside TCP even with 1,000 ms.

All controllers run on the transport of sections, so that only the controller differs. The base
network is a link of 20 Mb/s, 20 ms each way, with a drop-tail buffer of one bandwidth-delay
product. Rivals are the simulated TCP of preset "modern". Numbers are medians over the seeds."""

READING = """\
*Beside Reno* and *beside CUBIC* count the networks below on which the flow gets half to twice the
rate of each rival. *Link used* and *variation* (the coefficient of variation of the sending rate)
are those of one flow alone. *Delay of two* is the 95th percentile of the queueing delay with two
flows of the controller; a full buffer is 40 ms. *Falls in* and *returns in* are the times in which
a flow alone follows a fall to a quarter of the capacity, and its return. *Late flow* is the time
until a flow that begins 30 s late has three quarters of its share for 5 s. The last two columns are
the frames that can be decoded in time.

## Friendliness

The throughput of one greedy flow over that of each rival. Each network differs from the base in one
property."""

SMOOTH = """\
## Smoothness

The coefficient of variation of the sending rate of one flow alone, by the interval over which the
rate is measured."""

STEPS = """\
## A step of capacity

One flow runs alone. After 40 s the link falls from 20 to 5 Mb/s, and 40 s later it returns. *Falls
in* is the time until the flow sends at most 5.5 Mb/s over a second. *Returns in* is the time until
it uses 90 % of the link over a second."""

DELAY = """\
## Delay added at the bottleneck

The queueing delay in milliseconds, with two flows of the controller, and with one flow beside one
Reno flow on the base network. A full buffer is 40 ms."""

LATE = """\
## A late starter

A second flow of the same controller begins after 30 s. Shares can be equal over a minute, but
unequal in every 5 s: the flows of BBR take turns."""

FRAMES = """\
## Frames on time

The frames of a live video that can be decoded in time, in percent. The video has 10 Mb/s alone, and
half of an equal share beside others. It does not adapt to the capacity of the path."""


def main() -> None:
    """Runs the scenarios and writes the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seeds", type=int, default=5, metavar="N", help="the first N seeds of the scenarios (5)"
    )
    options = parser.parse_args()

    def tables(name: str) -> dict[str, pd.DataFrame]:
        results = comity.run(
            FOLDER / f"{name}.toml", seeds=range(1, options.seeds + 1), progress=True
        )
        return {
            table.name: table.arrow()
            .to_pandas()
            .rename(columns=lambda column: column.removeprefix("axis."))
            for table in results
        }

    PAGE.write_text(page(tables, options.seeds), encoding="utf-8")


if __name__ == "__main__":
    main()
