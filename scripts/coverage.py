#!/usr/bin/env python3
"""Prints the coverage of each crate from the summary of `cargo llvm-cov report --json`.

>>> files = [("lab/link/src/a.rs", {"lines": (3, 4)}), ("lab/link/src/b.rs", {"lines": (0, 4)})]
>>> by_crate(files)
{'lab/link': {'lines': [3, 8]}}
>>> share([3, 8])
' 37.5 %'
>>> share([0, 0])
'     -  '
"""

import json
import pathlib
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
MEMBERS = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["members"]
KINDS = ["lines", "functions", "regions"]


def crate_of(path):
    """The crate of a source file, by its folder; none for tests and for files outside of the workspace.

    >>> crate_of("product/media/src/reader/mod.rs"), crate_of("program/src/lib.rs"), crate_of("product/media/tests/a.rs")
    ('product/media', 'program', None)
    """
    path = pathlib.PurePath(path)
    folder = str((path.relative_to(ROOT) if path.is_absolute() and path.is_relative_to(ROOT) else path)).partition("/src/")
    return folder[0] if folder[1] and folder[0] in MEMBERS else None


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
    print(f"{'crate':<18}" + "".join(f"{kind:>12}" for kind in KINDS) + f"{'lines':>10}")
    for name, sums in crates.items():
        row = "".join(f"{share(sums[kind]):>12}" for kind in KINDS)
        print(f"{name:<18}{row}{sums['lines'][1]:>10}")


if __name__ == "__main__":
    main(sys.argv[1])
