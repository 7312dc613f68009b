"""Numbers with units, as scenarios write them."""

from __future__ import annotations

from typing import Any

from . import _comity


def quantity(text: str) -> float:
    """The number of a quantity such as `40ms` or `1.5Mbps`: in seconds, bit/s or bytes."""
    number = _comity.quantity(text)
    if number is None:
        raise ValueError(
            f"{text!r} is no quantity: expected a number and a unit, such as 40ms, 1.5Mbps or 1500B"
        )
    return number


def key(value: Any) -> Any:
    """A key that is the same for equal values of an axis, such as `1ms` and `1000us`."""
    if isinstance(value, str):
        number = _comity.quantity(value)
        return value if number is None else number
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        return value
    return float(value)
