#!/usr/bin/env python3
"""Holds each promise of security to a test.

Each item of "What is promised" in SECURITY.md, and each row of "Attackers" and "Bounds" in docs/design/threat-model.md,
links at least one test: `[name](path of its file)`. The lint fails where an item links none, and where the file has no
test of that name. The rows of the table of attackers name their tests in the last column.

    scripts/promises.py
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECURITY = ROOT / "SECURITY.md"
MODEL = ROOT / "docs" / "design" / "threat-model.md"
LINK = re.compile(r"\[`?(\w+)`?\]\(([^)#]+\.(?:rs|py))\)")
NOT_PROMISED = "—"


def section(page, heading):
    """The lines below a heading, up to the next one.

    >>> section("# A\\n\\n## B\\nb\\n## C\\nc", "## B")
    ['b']
    """
    lines = page.splitlines()
    begin = lines.index(heading) + 1
    rest = lines[begin:]
    ends = [at for at, line in enumerate(rest) if line.startswith("#")]
    return rest[: ends[0]] if ends else rest


def items(lines):
    """The items of a list, each as one text.

    >>> items(["With a key:", "", "- one", "  more", "- two", "", "Text."])
    ['one more', 'two']
    """
    found, is_open = [], False
    for line in lines:
        if line.startswith("- "):
            found.append(line[2:])
            is_open = True
        elif is_open and line.startswith("  "):
            found[-1] += " " + line.strip()
        else:
            is_open = False
    return found


def rows(lines):
    """The rows of a table, without its head.

    >>> rows(["| a | b |", "|---|---|", "| 1 | 2 |", "", "text"])
    [['1', '2']]
    """
    table = [line for line in lines if line.startswith("|")]
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table[2:]]


def has_test(text, name):
    """Whether a file in Rust or Python has a test of this name.

    >>> has_test("#[test]\\nfn it_holds() {", "it_holds"), has_test("fn it_holds() {", "it_holds")
    (True, False)
    >>> has_test("#[tokio::test]\\nasync fn it_holds() {", "it_holds")
    True
    >>> has_test("trials![\\n  ends::it_holds,\\n]", "it_holds")
    True
    """
    attribute = r"#\[(?:tokio::)?test(?:\([^)]*\))?\]\s*(?:#\[[^\]]*\]\s*)*(?:async )?fn "
    listed = r"trials!\[[^\]]*\b(?:\w+::)?"
    return any(re.search(f"{before}{name}\\b", text) for before in (attribute, listed))


def faults(place, what, cell, folder):
    """What is wrong with the links of an item."""
    links = LINK.findall(cell)
    if not links:
        yield f"{place}: {what!r}: names no test; expected [test](file)"
    for name, target in links:
        file = (folder / target).resolve()
        if not file.is_file():
            yield f"{place}: {what!r}: there is no {target}"
        elif not has_test(file.read_text(), name):
            yield f"{place}: {what!r}: {target} has no test {name}"


def check():
    found = []
    promised = items(section(SECURITY.read_text(), "## What is promised"))
    for text in promised:
        found += faults("SECURITY.md", text.split(":")[0][:60], text, SECURITY.parent)
    model = MODEL.read_text()
    attackers = rows(section(model, "## Attackers and what they get"))
    bounds = rows(section(model, "## Bounds"))
    for row in attackers:
        if row[2] != NOT_PROMISED:
            found += faults("threat-model.md", row[0], row[-1], MODEL.parent)
    for row in bounds:
        found += faults("threat-model.md", row[0], row[-1], MODEL.parent)
    if not promised or not attackers or len(bounds) < 20:
        found.append("the lists of promises are not where they were")
    return found


if __name__ == "__main__":
    wrong = check()
    for line in wrong:
        print(line, file=sys.stderr)
    sys.exit(1 if wrong else 0)
