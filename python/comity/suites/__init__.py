"""Suites of test cases that researchers of congestion control expect: each case is run with every
controller and measured alike, and a suite is a table, a page and a chapter of a report.
"""

from . import metrics
from .case import Case, Column, Panel, Suite

__all__ = ["Case", "Column", "Panel", "Suite", "metrics"]
