"""Numbers with units, as scenarios write them."""

from __future__ import annotations

import re
from typing import Any

_UNITS = {
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "bps": 1.0,
    "kbps": 1e3,
    "Mbps": 1e6,
    "Gbps": 1e9,
    "B": 1.0,
    "kB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "KiB": 1024.0,
    "MiB": 1048576.0,
}


def quantity(text: str) -> float:
    """The number of a quantity such as `40ms` or `1.5Mbps`: in seconds, bit/s or bytes."""
    found = re.fullmatch(r"([0-9.]+)([A-Za-z]+)", text.strip())
    if not found or found[2] not in _UNITS:
        raise ValueError(
            f"{text!r} is no quantity: expected a number and a unit, such as 40ms, 1.5Mbps or 1500B"
        )
    return float(found[1]) * _UNITS[found[2]]


def key(value: Any) -> Any:
    """What two values of an axis have to have in common to be the same: `1ms` and `1000us` have."""
    if isinstance(value, str):
        try:
            return quantity(value)
        except ValueError:
            return value
    return (
        value
        if isinstance(value, bool)
        else float(value)
        if isinstance(value, (int, float)) or hasattr(value, "__float__")
        else value
    )
