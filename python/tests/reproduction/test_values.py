"""Numbers with intervals, against scipy and numpy as independent oracles."""

import comity
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from comity.reproduction import Study, Values, spearman, table
from comity.reproduction.values import replicated
from conftest import DICT


def values_of(samples, axis="x", at=None):
    """One number for each seed (columns) at each point (rows)."""
    samples = np.atleast_2d(samples)
    at = list(range(len(samples))) if at is None else at
    rows = [
        {axis: at[point], "point": point, "seed": seed + 1, "number": number}
        for point, numbers in enumerate(samples)
        for seed, number in enumerate(numbers)
    ]
    return replicated(pd.DataFrame(rows), [axis], "number", range(1, samples.shape[1] + 1))


def test_the_interval_of_a_mean_is_students():
    sample = np.random.default_rng(3).normal(10, 2, size=7)
    values = values_of(sample)
    low, high = scipy.stats.t.interval(0.95, 6, loc=sample.mean(), scale=scipy.stats.sem(sample))
    interval = values.interval(0)
    assert values.value[0] == pytest.approx(sample.mean())
    assert (interval.low, interval.high) == pytest.approx((low, high))
    assert interval.method == "jackknife"


def test_the_interval_of_a_ratio_is_near_that_of_the_delta_method():
    generator = np.random.default_rng(5)
    above, below = generator.normal(10, 0.5, 40), generator.normal(5, 0.3, 40)
    ratio = above.mean() / below.mean()
    residuals = (above - ratio * below) / below.mean()
    half = scipy.stats.t.ppf(0.975, 39) * residuals.std(ddof=1) / np.sqrt(40)
    interval = (values_of(above) / values_of(below)).interval(0)
    assert (interval.high - interval.low) / 2 == pytest.approx(half, rel=0.02)
    assert (interval.high + interval.low) / 2 == pytest.approx(ratio)


def test_what_a_seed_decides_is_left_out_of_both_sides():
    # Both sides go up and down with the seed, so their ratio hardly does.
    common = np.random.default_rng(7).normal(10, 3, 6)
    together = (values_of(2 * common) / values_of(common)).interval(0)
    assert together.high - together.low < 1e-9
    shuffled = (values_of(2 * common[::-1]) / values_of(common)).interval(0)
    assert shuffled.high - shuffled.low > 1


def test_intervals_of_a_ratio_of_five_seeds_cover_the_truth_as_often_as_they_say():
    generator = np.random.default_rng(11)
    covered = 0
    for _ in range(300):
        ratio = values_of(generator.normal(12, 2, 5)) / values_of(generator.normal(10, 2, 5))
        interval = ratio.interval(0)
        covered += interval.low <= 1.2 <= interval.high
    # 95 % of 300 are 285, with a standard deviation of 3.8.
    assert 270 <= covered <= 297


def test_a_place_has_the_interval_of_resamples():
    values = values_of(
        [[1, 2, 3, 2], [5, 6, 5, 7], [2, 3, 2, 4]], axis="spacing", at=["0us", "100us", "200us"]
    )
    place = values.argmax("spacing")
    interval = place.interval(0)
    assert place.value[0] == pytest.approx(100e-6)
    assert (interval.low, interval.high, interval.method) == (
        pytest.approx(1e-4),
        pytest.approx(1e-4),
        "bootstrap",
    )
    assert values.argmin("spacing").value[0] == 0


def test_a_rank_correlation_is_scipys_at_the_points_that_both_have():
    ours = values_of(
        [[3.0, 3.1], [1.0, 1.1], [2.0, 2.2], [9.0, 9.0]], axis="drop", at=[0, 0.1, 0.2, 0.9]
    )
    theirs = table("drop", [0, 0.1, 0.2], [1.0, 2.0, 3.0])
    assert spearman(ours, theirs).value[0] == pytest.approx(
        scipy.stats.spearmanr([3, 1, 2], [1, 2, 3]).statistic
    )


def test_one_seed_has_no_interval():
    assert values_of([[4.0]]).interval(0) is None


def test_a_number_that_does_not_exist_has_no_interval():
    assert values_of([[1.0, np.nan]]).interval(0) is None


@pytest.mark.parametrize(
    ("choice", "left"),
    [
        ({"delay": "1ms"}, [1.0]),
        ({"delay": "1000us"}, [1.0]),
        ({"delay": ["1ms", "3s"]}, [1.0, 3.0]),
        ({"delay": lambda seconds: seconds >= 0.002}, [2.0, 3.0]),
    ],
)
def test_points_are_chosen_by_quantities(choice, left):
    values = values_of([[1.0], [2.0], [3.0]], axis="delay", at=["1ms", "2ms", "3s"])
    assert list(values.at(**choice).value) == left


def test_axes_that_a_choice_decides_are_gone_with_it():
    points = pd.DataFrame(
        {"protocol": ["a", "a", "b", "b"], "recovery": ["x", "x", "y", "y"], "n": [1, 2, 1, 2]}
    )
    values = Values(points, np.arange(4.0)[:, None], 1)
    assert values.at(protocol="a").axes == ["n"]
    # A list leaves its axis, so that numbers of a paper may meet there.
    assert values.at(protocol=["a"]).axes == ["protocol", "recovery", "n"]


def test_two_values_meet_where_their_common_axes_agree():
    ours = values_of([[10.0], [20.0], [40.0]], axis="drop", at=[0.0, 0.1, 0.2])
    theirs = table("drop", [0.2, 0.1], [4.0, 5.0])
    ratio = ours / theirs
    assert list(ratio.points["drop"]) == [0.1, 0.2]
    assert list(ratio.value) == [4.0, 10.0]


def test_reductions_over_an_axis_keep_the_others():
    points = pd.DataFrame({"n": [1, 1, 2, 2], "draw": ["a", "b", "a", "b"]})
    values = Values(points, np.array([[1.0], [3.0], [5.0], [9.0]]), 1)
    assert list(values.mean(over="draw").value) == [2.0, 7.0]
    assert list(values.max(over="draw").value) == [3.0, 9.0]
    assert list(values.min().value) == [1.0]
    assert len(values.at(n=7).mean()) == 0
    with_delay = Values(points.assign(delay=["1ms", "2ms", "1ms", "2ms"]), values.numbers, 1)
    assert with_delay.mean(over="draw").axes == ["n"]


def test_an_axis_that_does_not_exist_is_named_with_those_that_do():
    with pytest.raises(ValueError, match="axis 'droop': expected one of drop"):
        table("drop", [0], [1]).at(droop=0)


def test_a_table_has_a_number_for_each_value_of_its_axis():
    with pytest.raises(ValueError, match="2 numbers at 3 values of drop: expected as many"):
        table("drop", [0, 1, 2], [1, 2])


def test_a_study_of_results_has_their_means_and_intervals():
    results = comity.run(DICT, seeds=[5, 6, 7])
    of_libra = Study.of(results).measure(lambda run: run.flows("libra").throughput_bps.mean())
    groups = results.groups.pandas().query("group == 'libra'")
    by_queue = groups.groupby("axis.topology.bottleneck.queue")["mean_throughput_bps"]
    assert list(of_libra.value) == pytest.approx(list(by_queue.mean()))
    for row, (_, sample) in enumerate(by_queue):
        sample = sample.to_numpy(dtype=float)
        ends = scipy.stats.t.interval(0.95, 2, loc=sample.mean(), scale=scipy.stats.sem(sample))
        interval = of_libra.interval(row)
        assert (interval.low, interval.high) == pytest.approx(ends)
    assert of_libra.value[0] != pytest.approx(of_libra.value[1], rel=1e-3)
