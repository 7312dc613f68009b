"""Checks and the relations that they have."""

import numpy as np
import pandas as pd
import pytest
from comity.reproduction import (
    Cause,
    Checks,
    Form,
    Outcome,
    Values,
    table,
)
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


def series(*points):
    """Numbers of several seeds at the points 1, 2, 3 of an axis."""
    rows = [
        {"n": at, "point": at, "seed": seed, "number": number}
        for at, numbers in enumerate(points, 1)
        for seed, number in enumerate(numbers)
    ]
    return replicated(pd.DataFrame(rows), ["n"], "number", range(len(points[0])))


@pytest.mark.parametrize(("relation", "sign"), [("falls_over", -1), ("rises_over", 1)])
def test_a_series_falls_or_rises_where_intervals_do_not_meet(relation, sign):
    # Three seeds that differ by 0.1 have a half width of 0.25 (Student's t, 4.30 * 0.1 / sqrt(3)).
    def steps(step):
        return series(*[[sign * at * step + noise for noise in (-0.1, 0, 0.1)] for at in range(3)])

    apart = judged(value=steps(0.51), **{relation: "n"})
    assert apart.outcome is Outcome.HOLDS and all(row.sure for row in apart.rows)
    for meet in (0.48, 0.0, -0.51):
        assert judged(value=steps(meet), **{relation: "n"}).outcome is Outcome.FAILS
    # One step that is too small fails.
    assert judged(value=series((0, 0.1), (9, 9.1), (9, 9.1)), rises_over="n").outcome is (
        Outcome.FAILS
    )


def test_without_intervals_nothing_falls_or_rises():
    assert judged(value=table("n", [1, 2], [2.0, 1.0]), falls_over="n").outcome is Outcome.FAILS
    assert judged(value=table("n", [1, 2], [1.0, 2.0]), rises_over="n").outcome is Outcome.FAILS


def test_a_series_never_rises_beyond_its_intervals():
    def never_rises(value):
        return judged(value=value, never_rises_over="n")

    noisy = never_rises(series((1.0, 2.0, 3.0), (1.5, 2.5, 3.5)))
    assert noisy.outcome is Outcome.HOLDS
    assert [row.sure for row in noisy.rows] == [True, False]
    assert never_rises(series((1.0, 1.1, 1.2), (2.0, 2.1, 2.2))).outcome is Outcome.FAILS
    assert never_rises(table("n", [1, 2, 3], [3.0, 2.0, 2.0])).outcome is Outcome.HOLDS
    assert never_rises(table("n", [1, 2, 3], [3.0, 2.0, 2.1])).outcome is Outcome.FAILS


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
            "expected one of `fails`, `chance` and `cannot_fail`",
        ),
        (
            {"value": 1, "above": 0, "cannot_fail": "a", "chance": "b"},
            "expected one of `fails`, `chance` and `cannot_fail`",
        ),
        (
            {"value": table("n", [1], [1]), "rises_over": "n", "falls_over": "n"},
            "expected either bounds or an axis",
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
    assert judged(value=3, above=2, cannot_fail="why").is_as_expected
    assert not judged(value=1, above=2, cannot_fail="why").is_as_expected


def test_only_the_full_form_quotes_what_it_measured():
    cause = Cause("it is so", "It measures 5")
    assert judged(Form.QUICK, value=1, above=2, fails=cause).reason == "it is so"
    assert judged(Form.FULL, value=1, above=2, chance=cause).reason == "it is so. It measures 5"
    for form, said in [(Form.QUICK, "it is so"), (Form.FULL, "it is so. It measures 5")]:
        checks = Checks(form)
        checks.show("a number", 1, note=cause)
        assert checks.list[0].reason == said
