"""The metrics of RFC 8868, section 3, from the tables of a run.

Rates over time come from the column `sent_wire_bytes` or `delivered_bytes` of `flow_series`. Each
function names the metric's number in the RFC.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..reproduction.study import Run

__all__ = [
    "convergence",
    "delay_ms",
    "delivered",
    "fairness",
    "in_time",
    "lost",
    "mean_steps",
    "possible",
    "rates",
    "swings",
    "variation",
]

#: A rate is stable while its means over a second stay within this share of the period's mean.
TOLERANCE = 0.2
#: The number of seconds for which it has to be stable.
HOLD_S = 5


def rates(
    run: Run,
    *names: str,
    column: str = "delivered_bytes",
    over_s: float = 1.0,
    start_s: float = 0.0,
    end_s: float = np.inf,
) -> np.ndarray:
    """Metric 1: rates in bit/s, a row for each flow and a column for each `over_s` seconds."""
    bins = run.bins(*names, column=column, start_s=start_s, end_s=end_s)
    width = round(over_s / run.bin_s)
    count = bins.shape[1] // width
    whole = bins[:, : count * width].reshape(len(bins), count, width)
    return whole.sum(axis=2) * 8 / (width * run.bin_s)


def delivered(run: Run, *names: str, start_s: float = 0.0, end_s: float = np.inf) -> float:
    """Metric 1: the mean goodput of these flows together, in bit/s."""
    bins = run.bins(*names, column="delivered_bytes", start_s=start_s, end_s=end_s)
    return float(bins.sum() * 8 / (bins.shape[1] * run.bin_s))


def delay_ms(run: Run, *names: str, which: str = "p95") -> float:
    """Metric 4: a percentile of the one-way delay of packets, of the flow with the largest."""
    return float(run.flows(*names)[f"delay_{which}_s"].max() * 1000)


def lost(run: Run, *names: str) -> float:
    """Metric 5: the share of the flows' data packets that the path dropped."""
    flows = run.flows(*names)
    return float(flows.dropped_data_packets.sum() / flows.sent_packets.sum())


def in_time(run: Run, *names: str) -> float:
    """Metrics 5 and 6: the share of the source's frames that were complete by their deadline, after
    retransmissions. Frames that the source left out count as missing.
    """
    flows = run.flows(*names)
    frames = flows.sections_submitted + flows.sections_shed + flows.sections_refused
    return float(flows.sections_on_time.sum() / (frames - flows.sections_open).sum())


def fairness(
    run: Run, *names: str, over_s: float, start_s: float = 0.0, end_s: float = np.inf
) -> float:
    """Metric 7: the largest over the least rate of the flows in intervals of `over_s` seconds, the
    median over the intervals.
    """
    each = rates(run, *names, over_s=over_s, start_s=start_s, end_s=end_s)
    if not each.size:
        return np.nan
    with np.errstate(divide="ignore"):
        return float(np.median(each.max(axis=0) / each.min(axis=0)))


def convergence(run: Run, *names: str, start_s: float, end_s: float) -> float:
    """Metric 8: seconds from `start_s` until the flows' goodput is stable: for five seconds its
    means over a second are within 20 % of its mean over the second half of the period. Not a number
    if it never is. The period ends at `end_s`.
    """
    together = rates(run, *names, start_s=start_s, end_s=end_s, over_s=0.5).sum(axis=0)
    if len(together) <= 2 * HOLD_S:
        return np.nan
    seconds = (together[1:] + together[:-1]) / 2
    level = together[len(together) // 2 :].mean()
    stable = np.abs(seconds - level) <= TOLERANCE * level
    held = np.convolve(stable, np.ones(2 * HOLD_S), mode="valid") == 2 * HOLD_S
    return float(np.argmax(held) * 0.5) if held.any() else np.nan


def swings(run: Run, *names: str, low: float = 300e3, high: float = 1200e3) -> float:
    """Metric 9: how often the sending rate over half a second goes from above `high` to below `low`
    or back, in bit/s; a flow's mean.
    """
    sent = rates(run, *names, column="sent_wire_bytes", over_s=0.5)
    return float(np.mean([_passes(flow, low, high) for flow in sent]))


def _passes(values: np.ndarray, low: float, high: float) -> int:
    marks = np.where(values >= high, 1, np.where(values <= low, -1, 0))
    marks = marks[marks != 0]
    return int(np.count_nonzero(np.diff(marks)))


def variation(run: Run, *names: str, periods: Sequence[tuple[float, float]]) -> float:
    """The standard deviation over the mean of the sending rate over a second, in the second halves
    of periods; a flow's and period's mean.
    """
    found = []
    for start_s, end_s in periods:
        middle = (start_s + end_s) / 2
        sent = rates(run, *names, column="sent_wire_bytes", start_s=middle, end_s=end_s)
        found += [flow.std() / flow.mean() for flow in sent if flow.size and flow.mean() > 0]
    return float(np.mean(found)) if found else np.nan


def possible(
    steps: Sequence[tuple[float, float]],
    ends: Sequence[tuple[float, float]],
    rate: float,
    end_s: float,
) -> float:
    """What flows of at most `rate` bit/s can have of a capacity in `steps`, each from the start to
    the end that `ends` has for it: their mean rate together until `end_s`, for metric 10.
    """
    times = np.arange(0.0, end_s, 0.1)
    running = sum(((times >= start) & (times < end)).astype(float) for start, end in ends)
    return float(np.minimum(mean_steps(steps, times), running * rate).mean())


def mean_steps(steps: Sequence[tuple[float, float]], times: np.ndarray) -> np.ndarray:
    """The value of steps at each time."""
    starts, values = (np.array(column) for column in zip(*steps))
    return values[np.searchsorted(starts, times + 1e-9, side="right") - 1]
