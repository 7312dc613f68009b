"""Numbers of one run that the papers plot."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["best", "friendliness", "jain", "max_min_ratio", "variation", "worst"]


def jain(values: npt.ArrayLike) -> float:
    """Jain's fairness index: ``(Σ x)² / (n Σ x²)``, 1 when all are equal. R. Jain, DEC TR-301
    (1984).
    """
    x = np.asarray(values, dtype=float)
    return float(x.sum() ** 2 / (len(x) * (x**2).sum()))


def friendliness(ours: npt.ArrayLike, others: npt.ArrayLike) -> float:
    """F of TLTCP, section 6.2: the ratio of the mean of ours to that of the others."""
    return float(np.mean(ours) / np.mean(others))


def worst(values: npt.ArrayLike) -> float:
    """F_worst of TLTCP, section 6.2: the ratio of the mean of the upper half to that of the
    lower."""
    x = np.sort(np.asarray(values, dtype=float))
    half = len(x) // 2
    return float(x[len(x) - half :].mean() / x[:half].mean())


def best(values: npt.ArrayLike) -> float:
    """F_best of TLTCP, section 6.2: flows by rank, the ratio of the larger mean of odd and even ranks
    to the smaller.
    """
    x = np.sort(np.asarray(values, dtype=float))
    means = x[::2].mean(), x[1::2].mean()
    return float(max(means) / min(means))


def max_min_ratio(values: npt.ArrayLike) -> float:
    """S of TLTCP, section 6.2: the ratio of the largest to the least."""
    return float(np.max(values) / np.min(values))


def variation(values: npt.ArrayLike) -> float:
    """The coefficient of variation: the ratio of the standard deviation (over n) to the mean."""
    return float(np.std(values) / np.mean(values))
