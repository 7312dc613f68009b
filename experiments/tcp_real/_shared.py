"""Measures and numbers that the tables of TCP-Real share."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from comity.reproduction import Run, Study, Values, table

#: The drop rates of the bad state, of the tables with losses in the forward and in the reverse
#: direction.
FORWARD = [0, 0.01, 0.05, 0.1, 0.2, 0.33, 0.5]
REVERSE = [0, 0.019, 0.098, 0.19, 0.36, 0.555, 0.75]

#: Why nothing holds with a queue of 10 packets.
QUEUE_10 = (
    "a timeout lets a whole window leave at once: up to 48 segments into a queue of 10 packets. "
    "Most are dropped, and the next timeout follows"
)
#: The same, of a row of the paper beside ours.
QUEUE_10_ROW = f"with a queue of 50 packets Real is as good as Reno and Tahoe. With 10 {QUEUE_10}"
CUMULATIVE = (
    "acknowledgements are cumulative, and enough of those of up to 48 segments in flight arrive"
)


NAMES = ("Real", "Reno", "Tahoe")


class Protocols(NamedTuple):
    """A number of each protocol."""

    real: Values | float
    reno: Values | float
    tahoe: Values | float

    @property
    def gain(self) -> Values | float:
        """How many times as much Real has as Reno."""
        return self.real / self.reno

    @property
    def more(self) -> Values | float:
        """How much more Real has than Reno."""
        return self.real - self.reno

    def show(
        self,
        check,
        unit: str,
        paper: Protocols,
        notes: tuple[str | None, str | None, str | None] = (None,) * 3,
    ):
        """Shows each protocol's numbers beside the paper's."""
        for name, ours, theirs, note in zip(NAMES, self, paper, notes):
            check.show(f"{name}, {unit}", ours, paper=theirs, note=note)

    def at(self, **axes: object) -> Protocols:
        """The numbers at the points where axes have these values."""
        return Protocols(*(value.at(**axes) for value in self))

    def beside(self, paper: Protocols) -> dict[str, tuple[Values, Values | float]]:
        """The numbers and the paper's, by the name of the protocol."""
        return dict(zip(NAMES, zip(self, paper)))

    def draw_losses(self, draw, title: str, paper: Protocols, y: str) -> None:
        """Draws the numbers over the drop rate, beside the paper's."""
        draw.lines(title, self.beside(paper), over="drop", x="drop rate in the bad state", y=y)

    def draw_handoffs(self, draw, paper: Protocols, y: str) -> None:
        """Draws the numbers with handoffs for each queue, beside the paper's."""
        draw.bars("handoffs", self.beside(paper), over="queue", x="queue, packets", y=y)


def printed(
    drop: list[float], real: list[float], reno: list[float], tahoe: list[float]
) -> Protocols:
    """The rows of a table of the paper by its drop rates."""
    return Protocols(*(table("drop", drop, row) for row in (real, reno, tahoe)))


def by_protocol(numbers: Values, repair: str = "reno") -> Protocols:
    """The numbers of each protocol of the sweep, in which Real and Reno have this repair."""
    return Protocols(
        numbers.at(protocol="real"),
        numbers.at(protocol="reno", recovery=repair),
        numbers.at(protocol="reno", recovery="tahoe"),
    )


def goodput_kBps(runs: Study, repair: str = "reno") -> Protocols:
    """Bytes of the file over the time that it took, in kB/s; 0 for a transfer that did not end."""

    def goodput(run: Run) -> float:
        flows = run.flows("tcp")
        return (flows.delivered_total_bytes / flows.finished_ns).fillna(0).mean() * 1e6

    return by_protocol(runs.measure(goodput), repair)


def satisfied_reads(runs: Study) -> Protocols:
    """The share of a player's reads that found all their data, in per cent; read every 40 ms."""

    def share(run: Run) -> float:
        flows = run.flows("tcp")
        return 100 * flows.reads_satisfied.sum() / flows.reads.sum()

    return by_protocol(runs.measure(share).at(interval="40ms"))


def playback(column: str) -> Callable[[Study], Protocols]:
    """A measure of a player that reads every 40 ms: its `stalls`, `stalled_s` and so on."""

    def measure(runs: Study) -> Protocols:
        values = runs.measure(lambda run: run.flows("tcp")[column].mean())
        return by_protocol(values.at(interval="40ms"))

    return measure


#: What of a playback scenario is run: a read of 5 kB every 40 ms.
EVERY_40_MS = {"only": {"interval": ["40ms"], "bytes": ["5kB"]}}


def of_tables(runs: Study, measure: Callable[[Study], Protocols]) -> tuple[Protocols, ...]:
    """The numbers of three tables: losses forward and in reverse, handoffs."""
    return tuple(measure(runs[name]) for name in ("forward", "reverse", "handoff"))


def draw_tables(
    runs: Study, draw, measure: Callable[[Study], Protocols], y: str, *papers: Protocols
) -> None:
    """Draws three tables, each as ours and the paper's: losses forward and in reverse, handoffs."""
    forward, reverse, handoff = zip(of_tables(runs, measure), papers)
    for title, (ours, paper) in (("losses forward", forward), ("losses in reverse", reverse)):
        ours.at(queue=50).draw_losses(draw, f"{title}, queue of 50", paper, y)
    ours, paper = handoff
    ours.draw_handoffs(draw, paper, y)
