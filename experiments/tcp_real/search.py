"""Which reading of the paper is nearest to each table of TCP-Real?

Makes docs/results/tcp-real-search.md:

    scripts/python.sh experiments.tcp_real.search

What the paper leaves open is crossed, as in the full form of the claims. The nearest reading of a
table is chosen on seeds that take no part in the claims, and is judged on those of the claims.
"""

from __future__ import annotations

import argparse
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import comity
import numpy as np
from comity.reproduction import Claim, Form, Outcome, Study

from . import (
    table01_goodput_15ms,
    table02_reverse_15ms,
    table03_handoff_15ms,
    table04_06_playback_15ms,
    table07_09_goodput_50ms,
    table10_12_playback_50ms,
)
from ._shared import OPEN, Protocols, goodput_kBps, satisfied_reads

FOLDER = Path(__file__).parent
PAGE = FOLDER.parents[1] / "docs" / "results" / "tcp-real-search.md"
#: The seeds on which a reading is chosen, and those of the claims, on which it is judged.
CHOICE, JUDGEMENT = range(1, 61), range(61, 121)


class Table(NamedTuple):
    """A table of the paper: what judges it, which of the scenarios it is, and its numbers."""

    claim: Claim
    scenario: str
    measure: Callable[[Study], Protocols]
    paper: Protocols

    def distance(self, ours: Protocols) -> float:
        """The root mean square over all numbers of the table: of ln(ours / the paper's) for a
        goodput, where 0.1 is about a tenth, and of the difference for a share of reads, in
        points."""
        if self.measure is satisfied_reads:
            off = [(mine - its).value for mine, its in zip(ours, self.paper)]
        else:
            off = [np.log(np.maximum((o / p).value, 1e-3)) for o, p in zip(ours, self.paper)]
        return float(np.sqrt(np.mean(np.concatenate(off) ** 2)))


TABLES = {
    1: Table(table01_goodput_15ms.table_1, "", goodput_kBps, table01_goodput_15ms.PAPER),
    2: Table(table02_reverse_15ms.table_2, "", goodput_kBps, table02_reverse_15ms.PAPER),
    3: Table(table03_handoff_15ms.table_3, "", goodput_kBps, table03_handoff_15ms.PAPER),
}
for module, judge, numbers, measure in (
    (table04_06_playback_15ms, "tables_4_to_6", (4, 5, 6), satisfied_reads),
    (table07_09_goodput_50ms, "tables_7_to_9", (7, 8, 9), goodput_kBps),
    (table10_12_playback_50ms, "tables_10_to_12", (10, 11, 12), satisfied_reads),
):
    papers = (module.TRANSIENT_PAPER, module.REVERSE_PAPER, module.HANDOFF_PAPER)
    for number, scenario, paper in zip(numbers, ("transient", "reverse", "handoff"), papers):
        TABLES[number] = Table(getattr(module, judge), scenario, measure, paper)


class Found(NamedTuple):
    """What was found for a table."""

    nearest: str
    chosen: float
    """The distance of the nearest reading on the seeds of the choice."""
    judged: float
    """Its distance on the others."""
    holds: bool | None
    """Whether what the claim says of the table holds there; `None` where it says nothing."""
    readings: Counter[str]
    """How many readings there are of each direction of losses."""
    holding: Counter[str]
    """In how many of them it holds."""


def studies(claim: Claim, seeds: range, names: list[str] | None = None) -> Mapping[str, Study]:
    """The runs of a claim's scenarios, or of those with these names, in full with these seeds."""
    found = {}
    for name, scenario in claim.scenarios.items():
        if names is None or name in names:
            print(f"{Path(scenario.path).name}, seeds {seeds[0]} to {seeds[-1]}", flush=True)
            results = comity.run(
                FOLDER / Path(scenario.path).name, set=dict(scenario.changes()), seeds=seeds
            )
            found[name] = Study.of(results)
    return found


def find(numbers: list[int]) -> dict[int, Found]:
    """What is found for these tables, which one claim judges."""
    claim = TABLES[numbers[0]].claim
    judged = studies(claim, JUDGEMENT)
    checks = claim.checks(judged if list(judged) != [""] else judged[""], Form.FULL)
    names = [TABLES[number].scenario for number in numbers]
    chosen = studies(claim, CHOICE, names)
    found = {}
    for number in numbers:
        table = TABLES[number]
        measured = table.measure(chosen[table.scenario])
        readings = measured.readings()
        nearest = min(readings, key=lambda name: table.distance(measured.at(**readings[name])))
        again = table.measure(judged[table.scenario]).at(**readings[nearest])
        outcomes: dict[str, bool] = {}
        for check in checks:
            is_ours = check.part is None or check.part.startswith(f"table {number}")
            if check.reading and is_ours and check.outcome is not Outcome.SHOWN:
                holds = check.outcome is Outcome.HOLDS
                outcomes[check.reading] = outcomes.get(check.reading, True) and holds
        # Where losses go in reverse alone, a reading of the claim has a direction of other tables.
        own = {name: _holds(outcomes, name) for name in readings}
        known = {name: holds for name, holds in own.items() if holds is not None}
        found[number] = Found(
            nearest,
            table.distance(measured.at(**readings[nearest])),
            table.distance(again),
            own[nearest],
            Counter(readings[name].get("direction", "reverse") for name in readings),
            Counter(readings[n].get("direction", "reverse") for n, holds in known.items() if holds),
        )
    return found


def _holds(outcomes: Mapping[str, bool], reading: str) -> bool | None:
    """Whether the claim holds in a reading; of those that end like it, in any."""
    found = [holds for name, holds in outcomes.items() if name.endswith(reading)]
    return any(found) if found else None


def row(number: int, found: Found) -> str:
    """A row of the page."""
    counts = [
        f"{found.holding[way]} of {found.readings[way]}" if found.readings[way] else "–"
        for way in (*OPEN["direction"], "reverse")
    ]
    if found.holds is None:
        counts = ["no check" if count != "–" else count for count in counts]
    is_share = TABLES[number].measure is satisfied_reads
    off = [f"{of:.1f} points" if is_share else f"{of:.2f}" for of in (found.chosen, found.judged)]
    verdict = {True: "holds", False: "does not hold", None: "no check"}[found.holds]
    return f"| {' | '.join([str(number), *counts, found.nearest, *off, verdict])} |"


def page(found: Mapping[int, Found]) -> str:
    """The whole page."""
    both_ways = [one for one in found.values() if one.readings["forward"]]
    nearest = Counter(
        way for one in both_ways for way, name in OPEN["direction"].items() if name in one.nearest
    )
    held = [number for number, one in found.items() if one.holds]
    failed = [number for number, one in found.items() if one.holds is False]
    goodputs = [number for number in found if TABLES[number].measure is goodput_kBps]
    farthest = max(goodputs, key=lambda number: found[number].judged)
    texts = (
        "**Losses in both directions.** Section 4.1 calls table 2 the case in which the virtual "
        'protocol is "only configured in the reverse direction". The loss rates of table 2 are '
        "1 − (1 − p)² for a rate p of table 1, which is the loss of a round trip.",
        "A reading is a combination of choices for the details that the paper leaves open. All "
        f"readings ran with {len(CHOICE)} seeds. The nearest reading of a table was chosen on seeds "
        f"{CHOICE[0]} to {CHOICE[-1]}, and judged on seeds {JUDGEMENT[0]} to {JUDGEMENT[-1]}, those "
        f"of the claims. {len(both_ways)} tables have losses in both directions. Their nearest "
        f"reading has one state for both directions in {nearest['both']}, a state for each "
        f"direction in {nearest['each']}, and losses of data only in {nearest['forward']}. On the "
        f"seeds of the judgement, the nearest reading fulfils the check of {_tables(held)}, and not "
        f"that of {_tables(failed)}. No reading is near table {farthest}.",
        "The distance is the root mean square over all numbers of a table: of ln(ours / the "
        "paper's) for a goodput, where 0.1 is about 10 %, and of the difference for a share of "
        "reads. The columns of directions count the readings in which the whole check of the "
        "table holds.",
    )
    heads = [*OPEN["direction"].values(), "reverse alone"]
    columns = ["table", *heads, "nearest reading", "distance, choice", "judgement", "check there"]
    lines = [f"| {' | '.join(columns)} |", "| ---: " + "| --- " * (len(columns) - 1) + "|"]
    lines += [row(number, one) for number, one in found.items()]
    parts = [
        "# TCP-Real: which reading of the paper fits its tables?",
        *(textwrap.fill(text, 100) for text in texts[:2]),
        "\n".join(lines),
        textwrap.fill(texts[2], 100),
        "This command makes the page:",
        "```sh\nscripts/python.sh experiments.tcp_real.search\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _tables(numbers: list[int]) -> str:
    """Some tables in words."""
    if not numbers:
        return "no table"
    names = list(map(str, numbers))
    return "table " + names[0] if len(names) == 1 else "tables " + ", ".join(names)


def main() -> None:
    """Runs the readings and writes the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "tables",
        nargs="*",
        type=int,
        metavar="N",
        help="print the rows of these tables, and write no page (all, and the page)",
    )
    chosen = parser.parse_args().tables
    unknown = sorted(set(chosen) - set(TABLES))
    if unknown:
        parser.error(f"there is no table {unknown[0]}: expected 1 to {max(TABLES)}")
    claims: dict[str, list[int]] = {}
    for number in chosen or TABLES:
        claims.setdefault(TABLES[number].claim.id, []).append(number)
    found = {}
    for numbers in claims.values():
        found |= find(numbers)
    if chosen:
        print("\n".join(row(number, one) for number, one in found.items()))
    else:
        PAGE.write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
