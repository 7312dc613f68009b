"""Python objects as TOML, as far as scenarios need it."""

from __future__ import annotations

import json
import math
import os
import re
import typing
from collections.abc import Iterable, Mapping

from .errors import ScenarioError

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def value(thing: typing.Any, key: str) -> str:
    """A value in one line. Numbers of NumPy are numbers, and its arrays are lists.

    >>> value({"rate": "2Mbps", "loss": [0.5, True]}, "x")
    '{ rate = "2Mbps", loss = [0.5, true] }'
    """
    if hasattr(thing, "tolist"):
        thing = thing.tolist()
    if isinstance(thing, bool):
        return "true" if thing else "false"
    if isinstance(thing, int):
        return str(thing)
    if isinstance(thing, float):
        if math.isfinite(thing):
            # TOML wants digits on both sides of the point.
            return repr(thing) if "." in repr(thing) else f"{thing:e}"
        return "nan" if math.isnan(thing) else "inf" if thing > 0 else "-inf"
    if isinstance(thing, (str, os.PathLike)):
        # JSON's strings are TOML's, but for one control character.
        return json.dumps(os.fspath(thing), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(thing, Mapping):
        entries = ", ".join(f"{_name(k)} = {value(v, f'{key}.{k}')}" for k, v in thing.items())
        return f"{{ {entries} }}" if entries else "{}"
    if isinstance(thing, Iterable) and not isinstance(thing, (bytes, bytearray)):
        return f"[{', '.join(value(item, key) for item in thing)}]"
    raise ScenarioError(
        f"`{key}` is {thing!r}; expected a string, a number, a boolean, a list or a dict"
    )


def document(scenario: Mapping[str, typing.Any]) -> str:
    """A whole scenario: a table for each dict, and one for each dict in a list.

    >>> print(document({"scenario": {"name": "x"}, "flow": [{"count": 2}]}), end="")
    [scenario]
    name = "x"
    <BLANKLINE>
    [[flow]]
    count = 2
    <BLANKLINE>
    """
    plain, tables = [], []
    for key, thing in scenario.items():
        if isinstance(thing, Mapping):
            tables.append((f"[{_name(key)}]", key, thing))
        elif (
            isinstance(thing, (list, tuple))
            and thing
            and all(isinstance(item, Mapping) for item in thing)
        ):
            tables.extend((f"[[{_name(key)}]]", key, item) for item in thing)
        else:
            plain.append(f"{_name(key)} = {value(thing, str(key))}\n")
    for header, key, table in tables:
        lines = [f"{_name(k)} = {value(v, f'{key}.{k}')}\n" for k, v in table.items()]
        plain.append(f"{header}\n{''.join(lines)}\n")
    return "".join(plain)


def _name(key: typing.Any) -> str:
    if not isinstance(key, str):
        raise ScenarioError(f"{key!r} is not a key of a scenario; expected a string")
    return key if _BARE.fullmatch(key) else value(key, key)
