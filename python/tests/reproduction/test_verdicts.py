"""Verdicts: parts and readings, counted apart, and what does not count."""

import pytest
from comity.reproduction import Checks, Claim, Form, Scenario, Verdict, held_by_tests, judge
from comity.reproduction.text import counts, headline, title, verdict_in_words


def made_of(*calls, id="id", form=Form.QUICK, ours=False, paper="Paper: A."):
    """A claim, and the checks that these calls make."""
    claim = Claim(id, "says", "source", {"": Scenario("a.toml")}, None, ours=ours, paper=paper)
    check = Checks(form)
    for number, call in enumerate(calls):
        call = {"says": f"statement {number}", **call}
        (check.show if call.pop("shows", False) else check)(call.pop("says"), **call)
    return claim, check.list


HOLDS, FAILS = {"value": 1, "above": 0}, {"value": 1, "above": 2}
CHANCE, CERTAIN = {"chance": "why"}, {"cannot_fail": "why"}
#: The same statement in every reading.
SAME = {"says": "share"}


@pytest.mark.parametrize(
    ("calls", "verdict", "words"),
    [
        ([HOLDS], Verdict.HOLDS, "holds"),
        ([HOLDS, HOLDS], Verdict.HOLDS, "holds"),
        ([FAILS], Verdict.FAILS, "does not hold"),
        ([HOLDS, FAILS, HOLDS], Verdict.HOLDS_IN_PARTS, "holds in 2 of 3 parts"),
        # A part holds if all of its checks do.
        (
            [{**HOLDS, "part": "table 1"}, {**FAILS, "part": "table 1"}, HOLDS],
            Verdict.HOLDS_IN_PARTS,
            "holds in 1 of 2 parts",
        ),
        # A table that the paper also claims is a part and no reading.
        (
            [{**HOLDS, **SAME, "part": "table 1"}, {**FAILS, **SAME, "part": "table 2"}],
            Verdict.HOLDS_IN_PARTS,
            "holds in 1 of 2 parts",
        ),
        # What chance decides counts for nothing, on either side.
        ([HOLDS, {**FAILS, **CHANCE}], Verdict.HOLDS, "holds (chance decides 1 check)"),
        (
            [FAILS, {**HOLDS, **CHANCE}],
            Verdict.FAILS,
            "does not hold (chance decides 1 check)",
        ),
        ([{**HOLDS, **CHANCE}], Verdict.NOT_JUDGED, "not judged (chance decides 1 check)"),
        # What cannot fail neither holds a claim nor adds a part.
        ([HOLDS, {**HOLDS, **CERTAIN}], Verdict.HOLDS, "holds (1 check cannot fail)"),
        (
            [FAILS, {**HOLDS, **CERTAIN}, {**HOLDS, **CERTAIN}],
            Verdict.FAILS,
            "does not hold (2 checks cannot fail)",
        ),
        ([{**HOLDS, **CERTAIN}], Verdict.CANNOT_FAIL, "cannot fail"),
        # What is judged in the other form is a part that is left out.
        (
            [HOLDS, {**HOLDS, "form": "full"}],
            Verdict.HOLDS_IN_PARTS,
            "holds in 1 of 2 parts (1 check of the other form left out)",
        ),
        # A number of the paper that is only shown leaves the claim open.
        ([HOLDS, {"shows": True, "value": 1}], Verdict.HOLDS, "holds"),
        (
            [HOLDS, {"shows": True, "value": 1, "paper": 2}],
            Verdict.HOLDS_IN_PARTS,
            "holds in 1 of 1 part (1 number of the paper shown but not judged)",
        ),
        # Readings.
        (
            [{**HOLDS, **SAME, "reading": "a"}, {**FAILS, **SAME, "reading": "b"}],
            Verdict.HOLDS_FOR_READINGS,
            "holds for these readings, 1 of 2: a",
        ),
        (
            [{**HOLDS, **SAME, "reading": "a"}, {**HOLDS, **SAME, "reading": "b"}],
            Verdict.HOLDS,
            "holds in all 2 readings",
        ),
        (
            [{**FAILS, **SAME, "reading": "a"}, {**FAILS, **SAME, "reading": "b"}],
            Verdict.FAILS,
            "does not hold in any of 2 readings",
        ),
        # Parts are those of one reading: two readings with a part each are not two parts.
        (
            [
                {**HOLDS, "says": "x", "reading": "a"},
                {**FAILS, "says": "y", "reading": "a"},
                {**HOLDS, "says": "y", "reading": "b"},
                {**FAILS, "says": "x", "reading": "b"},
            ],
            Verdict.HOLDS_IN_PARTS,
            "holds in 1 of 2 parts with the best of 2 readings: a",
        ),
        # What is common to all readings is a part of each.
        (
            [FAILS, {**HOLDS, "reading": "a"}, {**FAILS, "reading": "b"}],
            Verdict.HOLDS_IN_PARTS,
            "holds in 1 of 2 parts with the best of 2 readings: a",
        ),
        # A reading that chance decides in part is none that holds.
        (
            [
                {**HOLDS, "says": "x", "reading": "a"},
                {**HOLDS, "says": "y", "reading": "a", **CHANCE},
                {**FAILS, "says": "x", "reading": "b"},
            ],
            Verdict.HOLDS_IN_PARTS,
            "holds in 1 of 2 parts with the best of 2 readings: a (chance decides 1 check)",
        ),
        (
            [{**HOLDS, "reading": "a"}, {**HOLDS, **CHANCE}, {**FAILS, "reading": "b"}],
            Verdict.HOLDS_FOR_READINGS,
            "holds for these readings, 1 of 2: a (chance decides 1 check)",
        ),
        # So is a part that this form leaves out, though chance decides it in the other.
        (
            [{**HOLDS, "reading": "a"}, {**HOLDS, "reading": "a", "form": "full", **CHANCE}],
            Verdict.HOLDS_IN_PARTS,
            "holds in 1 of 2 parts (1 check of the other form left out)",
        ),
        # Of each subject one reading has to hold.
        (
            [{**HOLDS, "reading": "x: a"}, {**FAILS, "reading": "y: a"}],
            Verdict.HOLDS_IN_PARTS,
            "holds in 1 of 2 parts with the best of 2 readings: x: a; y: a",
        ),
        (
            [
                {**HOLDS, "reading": "x: a"},
                {**FAILS, **SAME, "reading": "y: a"},
                {**HOLDS, **SAME, "reading": "y: b"},
            ],
            Verdict.HOLDS_FOR_READINGS,
            "holds for these readings, 2 of 3: x: a; y: b",
        ),
        # A reading of what cannot fail is none that holds.
        (
            [{**HOLDS, **CERTAIN, "reading": "a"}, {**FAILS, "reading": "b"}],
            Verdict.FAILS,
            "does not hold in any of 2 readings (1 check cannot fail)",
        ),
        # A reading that this form leaves out is not among those that are judged.
        (
            [
                {**HOLDS, "reading": "a"},
                {**FAILS, "reading": "b"},
                {**HOLDS, "reading": "c", "form": "full"},
            ],
            Verdict.HOLDS_FOR_READINGS,
            "holds for these readings, 1 of 2: a (1 check of the other form left out)",
        ),
    ],
)
def test_verdicts_and_their_words(calls, verdict, words):
    claim, checks = made_of(*calls)
    assert judge(claim, checks).verdict is verdict
    assert verdict_in_words(claim, checks) == words


def test_tests_of_the_project_hold_a_claim_without_runs():
    claim = held_by_tests("id", says="says", source="section 1", tests=["a.rs: b"])
    checks = claim.checks({}, Form.QUICK)
    assert judge(claim, checks).verdict is Verdict.HOLDS
    assert verdict_in_words(claim, checks) == "holds, by tests"


def test_a_headline_counts_every_verdict_ours_apart_and_what_cannot_fail():
    readings = [{**HOLDS, "reading": "a"}, {**FAILS, "reading": "b"}]
    results = [
        ("system", *made_of(*calls, **claim))
        for calls, claim in [
            ([HOLDS], {}),
            ([HOLDS], {"paper": "Other: B."}),
            ([HOLDS, FAILS], {}),
            (readings, {}),
            ([FAILS, {**HOLDS, **CERTAIN}], {}),
            ([{**HOLDS, **CERTAIN}], {}),
            ([HOLDS], {"ours": True}),
            ([FAILS], {"ours": True}),
        ]
    ]
    assert headline(results, Form.FULL) == (
        "In the full form, of 6 claims of two papers, 2 hold, 1 holds in parts, 1 holds for some "
        "readings, 1 does not hold and 1 cannot fail. Of 2 claims of our own, 1 holds and 1 does "
        "not hold. 2 checks cannot fail and are not counted."
    )
    assert title(results, Form.FULL) == (
        "2 of 6 claims of two papers hold here, in the full form"
    )
    # A run of our own claims alone says nothing of papers.
    assert counts(results[-1:]) == "of 1 claim of our own, 1 does not hold."
