"""Measures and numbers that the tables of TCP-Real share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from comity.reproduction import Cause, Run, Study, Values, table

#: The drop rates of the bad state, of the tables with transient losses and with losses in the
#: reverse direction.
TRANSIENT = [0, 0.01, 0.05, 0.1, 0.2, 0.33, 0.5]
REVERSE = [0, 0.019, 0.098, 0.19, 0.36, 0.555, 0.75]

#: What the paper leaves open, by the axes of the scenarios, and how a reading calls each value.
OPEN = {
    "direction": {
        "both": "both ways at once",
        "each": "both ways apart",
        "forward": "forward alone",
    },
    "window": {8: "8 segments", 16: "16 segments", 48: "48 segments"},
    "rate": {f"{mbps}Mbps": f"{mbps} Mb/s" for mbps in ("1.9", "5", "6", "10")},
    "acks": {"false": "every ACK", "bsd": "delayed ACKs"},
    "timers": {"ns2-2000": "timers of ns-2", "bsd": "timers of BSD"},
}

NAMES = ("Real", "Reno", "Tahoe")

#: What is known of a check: `fails` or `chance` and why, for the readings with these values.
Known = Sequence[tuple[Mapping[str, object], Mapping[str, "str | Cause"]]]


def known(rules: Known, reading: Mapping[str, object]) -> Mapping[str, str | Cause]:
    """What the first of the rules says that is about this reading; nothing if none is."""
    for values, says in rules:
        if values.items() <= reading.items():
            return says
    return {}


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
        """The numbers at the points where axes have these values. What has no such axis is the same
        for all of its values."""
        return Protocols(
            *(
                value.at(**{axis: choice for axis, choice in axes.items() if axis in value.axes})
                for value in self
            )
        )

    def readings(self) -> dict[str, dict[str, object]]:
        """Every way to read what the paper leaves open that was run: its name, and the values of
        its axes."""
        axes = [axis for axis in OPEN if axis in self.reno.axes]
        found = self.reno.points[axes].drop_duplicates().to_dict("records")
        return {
            ", ".join(OPEN[axis][value] for axis, value in reading.items()): reading
            for reading in found
        }

    def beside(self, paper: Protocols) -> dict[str, tuple[Values, Values | float]]:
        """The numbers and the paper's, by the name of the protocol."""
        return dict(zip(NAMES, zip(self, paper)))

    def draw_losses(self, draw, title: str, paper: Protocols, y: str) -> None:
        """Draws the numbers over the drop rate, beside the paper's."""
        draw.lines(title, self.beside(paper), over="drop", x="drop rate in the bad state", y=y)

    def draw_handoffs(self, draw, paper: Protocols, y: str, over: str, x: str) -> None:
        """Draws the numbers with handoffs over an axis, beside the paper's."""
        draw.bars("handoffs", self.beside(paper), over=over, x=x, y=y)


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
        flows = run.flows()
        return (flows.delivered_total_bytes / flows.finished_ns).fillna(0).mean() * 1e6

    return by_protocol(runs.measure(goodput), repair)


def satisfied_reads(runs: Study) -> Protocols:
    """The share of a player's reads that found all their data, in per cent. Reads begin with the
    first byte; 0 where none arrives."""

    def share(run: Run) -> float:
        flows = run.flows()
        return 100 * flows.reads_satisfied.sum() / max(flows.reads.sum(), 1)

    return by_protocol(runs.measure(share))


def playback(column: str) -> Callable[[Study], Protocols]:
    """A measure of a player: its `stalls`, `stalled_s` and so on. One for whom nothing arrives
    waits for the start as long as the run."""

    def measure(runs: Study) -> Protocols:
        return by_protocol(runs.measure(lambda run: run.flows()[column].fillna(28).mean()))

    return measure


#: The quick form has the first of the seeds, and the timers of ns-2.
QUICK = {"seeds": 20, "only": {"timers": ["ns2-2000"]}}


def of_tables(runs: Study, measure: Callable[[Study], Protocols]) -> tuple[Protocols, ...]:
    """The numbers of three tables: transient losses, losses in reverse, handoffs."""
    return tuple(measure(runs[name]) for name in ("transient", "reverse", "handoff"))


def draw_tables(
    runs: Study,
    draw,
    measure: Callable[[Study], Protocols],
    y: str,
    reading: Mapping[str, object],
    *papers: Protocols,
) -> None:
    """Draws three tables in one reading, each as ours and the paper's: transient losses, losses in
    reverse, handoffs. Those with handoffs stand over the ways in which packets are lost."""
    transient, reverse, handoff = zip(of_tables(runs, measure), papers)
    for title, (ours, paper) in (("transient losses", transient), ("losses in reverse", reverse)):
        ours.at(**reading).draw_losses(draw, title, paper, y)
    ours, paper = handoff
    of_handoffs = {axis: value for axis, value in reading.items() if axis != "direction"}
    ours.at(**of_handoffs).draw_handoffs(draw, paper, y, "direction", "losses")
