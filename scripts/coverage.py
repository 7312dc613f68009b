#!/usr/bin/env python3
"""Prints the coverage of each crate from the summary of `cargo llvm-cov report --json`.

>>> files = [("crates/link/src/a.rs", {"lines": (3, 4)}), ("crates/link/src/b.rs", {"lines": (0, 4)})]
>>> by_crate(files)
{'link': {'lines': [3, 8]}}
>>> share([3, 8])
' 37.5 %'
>>> share([0, 0])
'     -  '
"""

import json
import pathlib
import sys

KINDS = ["lines", "functions", "regions"]


def crate_of(path):
    """The crate of a source file; none for tests and for files outside of `crates`."""
    parts = pathlib.PurePath(path).parts
    if "crates" not in parts:
        return None
    at = parts.index("crates")
    return parts[at + 1] if "src" in parts[at + 2 : at + 3] else None


def by_crate(files):
    crates = {}
    for path, counts in files:
        if (crate := crate_of(path)) is None:
            continue
        sums = crates.setdefault(crate, {})
        for kind, (covered, count) in counts.items():
            both = sums.setdefault(kind, [0, 0])
            both[0] += covered
            both[1] += count
    return crates


def share(both):
    return f"{100 * both[0] / both[1]:5.1f} %" if both[1] else "     -  "


def main(path):
    data = json.loads(pathlib.Path(path).read_text())["data"][0]
    files = [
        (file["filename"], {kind: (file["summary"][kind]["covered"], file["summary"][kind]["count"]) for kind in KINDS})
        for file in data["files"]
    ]
    crates = by_crate(files)
    crates["all"] = {kind: [sum(x) for x in zip(*(crate[kind] for crate in crates.values()))] for kind in KINDS}
    print(f"{'crate':<12}" + "".join(f"{kind:>12}" for kind in KINDS) + f"{'lines':>10}")
    for name, sums in crates.items():
        row = "".join(f"{share(sums[kind]):>12}" for kind in KINDS)
        print(f"{name:<12}{row}{sums['lines'][1]:>10}")


if __name__ == "__main__":
    main(sys.argv[1])
