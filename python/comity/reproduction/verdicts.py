"""The verdict on a claim from its checks: parts and readings, counted separately."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from .claims import Check, Claim, Expected, Outcome

__all__ = ["Judgement", "Verdict", "judge"]


class Verdict(str, enum.Enum):
    """The outcome of a claim."""

    HOLDS = "holds"
    HOLDS_IN_PARTS = "holds in parts"
    HOLDS_FOR_READINGS = "holds for these readings"
    FAILS = "does not hold"
    CANNOT_FAIL = "cannot fail"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True)
class Judgement:
    """The verdict on a claim, and its basis.

    Parts are those of one reading: the readings that hold, or the one in which most parts do.
    """

    verdict: Verdict
    """The verdict."""
    holding: int = 0
    """How many parts hold."""
    parts: int = 0
    """How many parts the claim has, without those that chance or the set-up decides."""
    readings: tuple[str, ...] = ()
    """The readings that hold; where none does, the one in which most parts hold."""
    judged_readings: int = 0
    """How many readings are judged."""
    by_chance: int = 0
    """How many checks chance decides."""
    certain: int = 0
    """How many checks cannot fail."""
    skipped: int = 0
    """How many checks are judged in the other form only."""
    shown: int = 0
    """How many numbers of the paper are shown and not judged, if no part fails."""


def judge(claim: Claim, checks: Sequence[Check]) -> Judgement:
    """The verdict on a claim.

    A reading holds if each of its parts does, chance decides none of them, and the parts that are
    common to all readings hold. A reading that begins with a subject, as in `"TCP: Reno"`, is about
    that alone: then each subject needs one that holds.
    """
    notes = {
        "by_chance": _judged(checks, Expected.CHANCE),
        "certain": _judged(checks, Expected.CERTAIN),
        "skipped": sum(check.outcome is Outcome.SKIPPED for check in checks),
    }
    if not any(check.counts and _is_judged(check) for check in checks):
        if claim.tests and not checks:
            return Judgement(Verdict.HOLDS)
        undecided = notes["by_chance"] or notes["skipped"] or not notes["certain"]
        return Judgement(Verdict.NOT_JUDGED if undecided else Verdict.CANNOT_FAIL, **notes)
    common, subjects = _split(checks)
    choices = [
        _Choice(names, common, [check for check in checks if check.reading in names])
        for names in itertools.product(*subjects)
    ]
    wholly = [choice for choice in choices if choice.holds]
    # Of several with an equal share, the first one is named.
    best = max(choices, key=lambda choice: (choice.share, choice.holding))
    names = dict.fromkeys(name for choice in wholly or [best] for name in choice.names)
    counts = {
        "holding": best.holding,
        "parts": best.parts,
        "readings": tuple(names),
        "judged_readings": sum(map(len, subjects)),
        **notes,
    }
    if not any(map(_is_open, checks)):
        shown = sum(check.compares_without_judging for check in checks)
        found = Verdict.HOLDS_IN_PARTS if shown else Verdict.HOLDS
        return Judgement(found, **{**counts, "shown": shown})
    if wholly and any(wholly[0].names):
        return Judgement(Verdict.HOLDS_FOR_READINGS, **counts)
    return Judgement(Verdict.HOLDS_IN_PARTS if best.holding else Verdict.FAILS, **counts)


def _is_open(check: Check) -> bool:
    """Whether the claim does not hold because of it: it fails, or this form leaves it out."""
    if check.outcome is Outcome.SKIPPED:
        return check.expected is not Expected.CERTAIN
    return check.outcome is Outcome.FAILS and check.counts


def _is_judged(check: Check) -> bool:
    return check.outcome in (Outcome.HOLDS, Outcome.FAILS)


def _judged(checks: Sequence[Check], expected: Expected) -> int:
    return sum(check.expected is expected and _is_judged(check) for check in checks)


def _split(checks: Sequence[Check]) -> tuple[list[Check], list[list[str]]]:
    """The checks about all readings, and the judged readings of each subject."""
    subjects: dict[str, dict[str, None]] = {}
    for check in checks:
        if check.reading is not None and _is_judged(check):
            subjects.setdefault(_subject(check.reading), {})[check.reading] = None
    common = [check for check in checks if check.reading is None]
    return common, [list(readings) for readings in subjects.values()]


class _Choice:
    """One reading of each subject, with its parts."""

    def __init__(self, names: tuple[str, ...], common: list[Check], own: list[Check]) -> None:
        self.names = names
        outcomes: dict[str, set[Outcome]] = {}
        for check in [*common, *own]:
            if _is_open(check) or (check.counts and _is_judged(check)):
                outcomes.setdefault(check.part_of_claim, set()).add(check.outcome)
        for check in own:
            # If chance decides a part within a reading, the reading does not show that part.
            if check.expected is Expected.CHANCE and _is_judged(check):
                outcomes.setdefault(check.part_of_claim, set())
        self.parts = len(outcomes)
        self.holding = sum(found == {Outcome.HOLDS} for found in outcomes.values())
        self.share = self.holding / self.parts if self.parts else 0.0
        by_chance = any(check.expected is Expected.CHANCE and _is_judged(check) for check in own)
        self.holds = self.holding == self.parts > 0 and not by_chance


def _subject(reading: str) -> str:
    return reading.partition(": ")[0] if ": " in reading else ""
