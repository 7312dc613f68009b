#!/usr/bin/env python3
"""Counts words that Comity does not use, and lines of comments and documents over 100 columns.

The words stand in vocabulary.toml, each with what the field says instead. The lint fails where a word stands more
often than `left` allows, and names the places. `--update` writes the present counts, where they are lower.

    scripts/vocabulary.py [--update] [--show WORD]
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "scripts" / "vocabulary.toml"
WIDTH = 100
COMMENT = re.compile(r"^\s*(//[/!]?|#(?!\[|!\[))(.*)$")


def parts(name, text):
    """The lines of a file as (number, kind, text), the kind being "code" or "prose".

    >>> list(parts("a.rs", "let most_x = 1; // a law\\n/// Told."))
    [(1, 'code', 'let most_x = 1; '), (1, 'prose', ' a law'), (2, 'prose', ' Told.')]
    >>> list(parts("a.md", "A law."))
    [(1, 'prose', 'A law.')]
    """
    mark = "//" if name.endswith(".rs") else "#"
    for number, line in enumerate(text.splitlines(), 1):
        if name.endswith(".md"):
            yield number, "prose", line
            continue
        whole = COMMENT.match(line)
        if whole and line.lstrip().startswith(mark):
            yield number, "prose", whole[2]
            continue
        code, _, comment = line.partition(f" {mark} ")
        yield number, "code", code + (" " if comment else "")
        if comment:
            yield number, "prose", f" {comment}"


def wide(name, text):
    """The numbers of lines of prose that are too long: no tables, no code, nothing that cannot be
    broken. In TOML a table is text with aligned columns, and a command ends with a backslash.

    >>> words = "ab " * 40
    >>> list(wide("a.rs", f"// {words}\\nlet a = 1;{' ' * 99}1\\n/// ```\\n/// {words}\\n/// ```\\n/// | {words}"))
    [1]
    >>> list(wide("a.md", f"{words}\\n| {words}\\n```\\n{words}\\n```\\n{'a' * 101}\\n{words}"))
    [1, 7]
    >>> list(wide("a.toml", f"# a  {words}\\n# --set {words} \\\\\\n# {words}"))
    [3]
    """
    in_fence = False
    for number, line in enumerate(text.splitlines(), 1):
        comment = COMMENT.match(line)
        if not name.endswith(".md") and not comment:
            in_fence = False
            continue
        prose = line if name.endswith(".md") else comment[2]
        if prose.lstrip().startswith("```"):
            in_fence = not in_fence
        elif name.endswith(".toml") and (re.search(r"\S {2,}\S", prose) or prose.endswith("\\")):
            continue
        elif len(line) > WIDTH and not in_fence and not prose.lstrip().startswith("|"):
            if " " in prose.strip()[: WIDTH - (len(line) - len(prose))]:
                yield number


def files():
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    for name in names:
        path = ROOT / name
        if path == LIST or path == pathlib.Path(__file__).resolve() or not path.is_file():
            continue
        if name.endswith((".rs", ".md")) or (name.endswith(".toml") and name.startswith("experiments/")):
            yield name, path.read_text()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write lower counts into the list")
    parser.add_argument("--show", metavar="WORD", help="print the places of one word")
    options = parser.parse_args()
    listed = LIST.read_text()
    rules = tomllib.loads(listed)
    words = [(word, re.compile(word["pattern"])) for word in rules["word"]]
    places = {word["not"]: [] for word, _ in words}
    too_long = []
    for name, text in files():
        too_long += [f"{name}:{number}" for number in wide(name, text)]
        found = [(word, pattern) for word, pattern in words if pattern.search(text)]
        for number, kind, part in parts(name, text) if found else ():
            for word, pattern in found:
                if word["where"] in (kind, "both"):
                    places[word["not"]] += [f"{name}:{number}: {part.strip()[:120]}" for _ in pattern.finditer(part)]
    if options.show is not None:
        if options.show not in places:
            parser.error(f"no such word: {options.show!r}; there are {', '.join(places)}")
        print("\n".join(places[options.show]))
        return 0
    failed = False
    for word, _ in words:
        found, left = len(places[word["not"]]), word["left"]
        if found > left:
            failed = True
            print(f'error: "{word["not"]}" stands {found} times, {left} allowed; write "{word["but"]}":')
            print(*(f"  {place}" for place in places[word["not"]][-3:]), sep="\n")
        elif found < left and options.update:
            block = re.compile(rf'(not = "{re.escape(word["not"])}"\n(?:.*\n)*?left = )\d+')
            listed = block.sub(rf"\g<1>{found}", listed, count=1)
        elif found < left:
            print(f'error: "{word["not"]}" stands {found} times and no longer {left}: run scripts/vocabulary.py --update')
            failed = True
    allowed = rules["width"]["left"]
    if len(too_long) > allowed:
        failed = True
        print(f"error: {len(too_long)} lines of comments and documents are over {WIDTH} columns, {allowed} allowed; the last:")
        print(*too_long[-20:], sep="\n")
    elif len(too_long) < allowed and options.update:
        listed = re.sub(r"(\[width\]\nleft = )\d+", rf"\g<1>{len(too_long)}", listed)
    elif len(too_long) < allowed:
        print(f"error: {len(too_long)} lines are over {WIDTH} columns and no longer {allowed}: run scripts/vocabulary.py --update")
        failed = True
    if options.update:
        LIST.write_text(listed)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
