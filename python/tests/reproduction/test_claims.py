"""Checks, the relations that they have, and verdicts."""

import numpy as np
import pandas as pd
import pytest
from comity.reproduction import (
    Cause,
    Checks,
    Claim,
    Form,
    Outcome,
    Scenario,
    Values,
    Verdict,
    held_by_tests,
    table,
)
from comity.reproduction.claims import verdict
from comity.reproduction.text import verdict_with_checks
from comity.reproduction.values import replicated


def seeds(*numbers, x=0):
    """Numbers of several seeds at one point."""
    rows = [
        {"x": x, "point": 0, "seed": seed, "number": number} for seed, number in enumerate(numbers)
    ]
    return replicated(pd.DataFrame(rows), ["x"], "number", range(len(numbers)))


def judged(of=Form.QUICK, **kwargs):
    """The one check that a call makes."""
    check = Checks(of)
    check("it holds", **kwargs)
    return check.list[0]


@pytest.mark.parametrize(
    ("relation", "bound", "holds", "fails"),
    [
        ("above", 2, 2.1, 2.0),
        ("at_least", 2, 2.0, 1.9),
        ("below", 2, 1.9, 2.0),
        ("at_most", 2, 2.0, 2.1),
        ("equal", 2, 2.0, 2.1),
        ("within", (0.1, 10), 9.0, 8.9),
        ("within", (0.1, 10), 11.0, 11.1),
    ],
)
def test_each_relation_holds_and_fails(relation, bound, holds, fails):
    assert judged(value=holds, **{relation: bound}).outcome is Outcome.HOLDS
    assert judged(value=fails, **{relation: bound}).outcome is Outcome.FAILS


def test_wholly_above_asks_that_intervals_do_not_meet():
    low, near, far = seeds(1.0, 1.2, 1.1), seeds(1.1, 1.4, 1.2), seeds(5.0, 5.1, 5.2)
    assert judged(value=far, wholly_above=low).outcome is Outcome.HOLDS
    assert judged(value=near, wholly_above=low).outcome is Outcome.FAILS
    assert judged(value=low, wholly_below=far).outcome is Outcome.HOLDS
    assert judged(value=low, wholly_below=near).outcome is Outcome.FAILS
    # One seed has no interval, and so nothing to tell them apart.
    assert judged(value=2.0, wholly_above=1.0).outcome is Outcome.FAILS


def test_several_bounds_hold_together():
    assert judged(value=1.0, at_least=0.9, at_most=1.1).outcome is Outcome.HOLDS
    assert judged(value=1.2, at_least=0.9, at_most=1.1).outcome is Outcome.FAILS
    assert judged(value=0.8, at_least=0.9, at_most=1.1).outcome is Outcome.FAILS


def test_one_point_that_fails_fails_the_check():
    numbers = table("drop", [0, 0.1, 0.2], [3, 1, 3])
    check = judged(value=numbers, above=2)
    assert check.outcome is Outcome.FAILS
    assert [row.holds for row in check.rows] == [True, False, True]
    assert [row.at for row in check.rows] == [{"drop": 0}, {"drop": 0.1}, {"drop": 0.2}]


def test_a_number_that_does_not_exist_holds_nothing():
    nothing = Values(pd.DataFrame(index=[0]), np.array([[np.nan]]), 0)
    for relation in ("above", "below", "at_least", "at_most", "equal"):
        assert judged(value=nothing, **{relation: 0}).outcome is Outcome.FAILS
    assert judged(value=nothing, above=0).rows[0].value is None


def test_a_series_falls_or_rises_up_to_its_intervals():
    falling = table("n", [1, 2, 3], [3.0, 2.0, 2.0])
    assert judged(value=falling, falls_over="n").outcome is Outcome.HOLDS
    assert judged(value=falling, rises_over="n").outcome is Outcome.FAILS
    rising = table("n", [1, 2, 3], [1.0, 2.0, 3.0])
    assert judged(value=rising, rises_over="n").outcome is Outcome.HOLDS
    assert judged(value=rising, falls_over="n").outcome is Outcome.FAILS
    rows = [
        {"n": point, "point": point, "seed": seed, "number": number}
        for point, numbers in enumerate([(1.0, 2.0, 3.0), (1.5, 2.5, 3.5)])
        for seed, number in enumerate(numbers)
    ]
    noisy = replicated(pd.DataFrame(rows), ["n"], "number", range(3))
    check = judged(value=noisy, falls_over="n")
    assert check.outcome is Outcome.HOLDS
    assert [row.sure for row in check.rows] == [True, False]


def test_sure_says_whether_other_seeds_might_say_otherwise():
    assert judged(value=seeds(5.0, 5.1, 5.2), above=1).rows[0].sure
    assert not judged(value=seeds(0.0, 5.1, 9.2), above=1).rows[0].sure


def test_the_papers_number_of_a_point_stands_beside_it():
    paper = table("drop", [0.1, 0.2], [7, 8])
    check = judged(value=table("drop", [0, 0.1, 0.2], [1, 1, 1]), above=0, paper=paper)
    assert [row.paper for row in check.rows] == [None, 7, 8]


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"value": 1, "over": 2}, "'over' is no relation: expected one of above, at_least"),
        ({"value": 1}, "expected either bounds or an axis"),
        (
            {"value": table("n", [1], [1]), "above": 0, "falls_over": "n"},
            "expected either bounds or an axis",
        ),
        (
            {"value": 1, "above": 0, "fails": "a", "chance": "b"},
            "expected `fails` or `chance`, not both",
        ),
    ],
)
def test_a_check_that_says_nothing_or_two_things_is_refused(kwargs, message):
    with pytest.raises(TypeError, match=message):
        judged(**kwargs)


def test_a_check_without_a_point_is_refused():
    with pytest.raises(ValueError, match="'it holds' has no point"):
        judged(value=table("n", [1], [1]).at(n=2), above=0)


def test_a_check_of_the_other_form_is_skipped():
    assert judged(Form.QUICK, value=1, above=2, form="full").outcome is Outcome.SKIPPED
    assert judged(Form.FULL, value=1, above=2, form="full").outcome is Outcome.FAILS


def test_what_is_known_to_come_out_is_no_surprise():
    assert not judged(value=1, above=2).is_as_expected
    assert judged(value=1, above=2, fails="why").is_as_expected
    assert not judged(value=3, above=2, fails="why").is_as_expected
    assert judged(value=1, above=2, chance="why").is_as_expected
    assert judged(value=3, above=2, chance="why").is_as_expected


def verdict_of(*calls, cannot=None, form=Form.QUICK):
    """The verdict on a claim that makes these checks."""
    claim = Claim("id", "says", "source", {"": Scenario("a.toml")}, None, cannot=cannot)
    check = Checks(form)
    for call in calls:
        shows = call.pop("shows", False)
        (check.show if shows else check)("says", **call)
    return verdict(claim, check.list), verdict_with_checks(claim, check.list)


HOLDS, FAILS = {"value": 1, "above": 0}, {"value": 1, "above": 2}


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([HOLDS], Verdict.HOLDS),
        ([FAILS], Verdict.FAILS),
        ([HOLDS, FAILS], Verdict.HOLDS_IN_PART),
        # What chance decides counts for nothing, on either side.
        ([HOLDS, {**FAILS, "chance": "why"}], Verdict.HOLDS),
        ([FAILS, {**HOLDS, "chance": "why"}], Verdict.FAILS),
        ([{**HOLDS, "chance": "why"}], Verdict.NOT_JUDGED),
        # What the paper has a number for and is shown only, or is judged in the other form, is left
        # open.
        ([HOLDS, {"shows": True, "value": 1}], Verdict.HOLDS),
        ([HOLDS, {"shows": True, "value": 1, "paper": 2}], Verdict.HOLDS_IN_PART),
        ([HOLDS, {**HOLDS, "form": "full"}], Verdict.HOLDS_IN_PART),
        # Readings.
        ([{**HOLDS, "reading": "a"}, {**FAILS, "reading": "b"}], Verdict.HOLDS_FOR_READINGS),
        ([{**HOLDS, "reading": "a"}, {**FAILS, "reading": "a"}], Verdict.HOLDS_IN_PART),
        ([FAILS, {**HOLDS, "reading": "a"}], Verdict.HOLDS_IN_PART),
        ([{**HOLDS, "reading": "a"}, {**HOLDS, "reading": "b"}], Verdict.HOLDS),
        ([{**FAILS, "reading": "a"}, {**FAILS, "reading": "b"}], Verdict.FAILS),
        # A reading that chance decides in part is none that holds.
        (
            [
                {**HOLDS, "reading": "a"},
                {**HOLDS, "reading": "a", "chance": "w"},
                {**FAILS, "reading": "b"},
            ],
            Verdict.HOLDS_IN_PART,
        ),
        (
            [{**HOLDS, "reading": "a"}, {**HOLDS, "chance": "w"}, {**FAILS, "reading": "b"}],
            Verdict.HOLDS_FOR_READINGS,
        ),
        # Of each subject one reading has to hold.
        ([{**HOLDS, "reading": "x: a"}, {**FAILS, "reading": "y: a"}], Verdict.HOLDS_IN_PART),
        (
            [
                {**HOLDS, "reading": "x: a"},
                {**FAILS, "reading": "y: a"},
                {**HOLDS, "reading": "y: b"},
            ],
            Verdict.HOLDS_FOR_READINGS,
        ),
    ],
)
def test_verdicts(calls, expected):
    assert verdict_of(*[dict(call) for call in calls])[0] is expected


def test_a_verdict_names_the_readings_that_hold():
    calls = [{**HOLDS, "reading": "a"}, {**FAILS, "reading": "b"}, {**HOLDS, "reading": "c"}]
    assert verdict_of(*calls)[1] == "holds for some readings, 2 of 3 checks: a; c"


def test_a_verdict_in_part_names_what_is_missing_where_no_check_fails():
    shown = {"shows": True, "value": 1, "paper": 2}
    other = {**HOLDS, "form": "full"}
    for calls, missing in [
        ([shown], "1 number of the paper shown but not judged"),
        ([other, other], "2 checks of the other form left out"),
        (
            [other, shown, shown],
            "1 check of the other form left out and 2 numbers of the paper shown but not judged",
        ),
    ]:
        said = verdict_of(dict(HOLDS), *[dict(call) for call in calls])[1]
        assert said == f"holds in part, 1 of 1 check; {missing}"
    # Where a check fails, that is what is missing.
    assert verdict_of(dict(HOLDS), dict(FAILS), dict(shown))[1] == "holds in part, 1 of 2 checks"


def test_only_the_full_form_quotes_what_it_measured():
    cause = Cause("it is so", "It measures 5")
    assert judged(Form.QUICK, value=1, above=2, fails=cause).reason == "it is so"
    assert judged(Form.FULL, value=1, above=2, chance=cause).reason == "it is so. It measures 5"
    for form, said in [(Form.QUICK, "it is so"), (Form.FULL, "it is so. It measures 5")]:
        checks = Checks(form)
        checks.show("a number", 1, note=cause)
        assert checks.list[0].reason == said


def test_what_cannot_hold_is_called_so_where_it_fails():
    assert verdict_of(dict(FAILS), cannot="why")[0] is Verdict.CANNOT
    assert verdict_of(dict(HOLDS), cannot="why")[0] is Verdict.HOLDS


def test_tests_of_the_project_hold_a_claim_without_runs():
    claim = held_by_tests("id", says="says", source="section 1", tests=["a.rs: b"])
    assert verdict(claim, claim.checks({}, Form.QUICK)) is Verdict.HOLDS
