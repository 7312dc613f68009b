"""The numeric claims of the five papers, their checks, and a verdict on each.
"""

from .claims import Cause, Checks, Claim, Expected, Form, Outcome, claim, held_by_tests
from .statistics import best, friendliness, jain, max_min_ratio, variation, worst
from .study import Run, Scenario, Study
from .values import Interval, Values, spearman, table
from .verdicts import Judgement, Verdict, judge

__all__ = [
    "Cause",
    "Checks",
    "Claim",
    "Expected",
    "Form",
    "Interval",
    "Judgement",
    "Outcome",
    "Run",
    "Scenario",
    "Study",
    "Values",
    "Verdict",
    "best",
    "claim",
    "friendliness",
    "held_by_tests",
    "jain",
    "judge",
    "max_min_ratio",
    "spearman",
    "table",
    "variation",
    "worst",
]
