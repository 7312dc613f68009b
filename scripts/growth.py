#!/usr/bin/env python3
"""Holds each crate to its limit of product lines in growth.toml.

A product line is a line of code of the product: no comment, no blank line, no test, and no line of a crate that only
tests use. The lint fails where a crate is over 3 % above its limit, and where it is over 3 % below. `--update` writes
the counts of such crates as their limits, and changes no other limit.

    scripts/growth.py [--update | --list]
"""

import argparse
import io
import pathlib
import re
import subprocess
import sys
import tokenize
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "scripts" / "growth.toml"
MARGIN_PERCENT = 3
RAISE = "take lines out, or run scripts/growth.py --update and say in the commit what the new lines give a user"
LOWER = "run scripts/growth.py --update, which lowers the limit"

# The house of the crates that only tests use.
TESTS = "test/"
# The folder of the Python package. The crate `lab/python` has its native part.
PACKAGE = "python/comity"

TOKEN = re.compile(
    r"""(?P<line>//[^\n]*) | (?P<block>/\*) | (?P<lifetime>'\w+\b(?!'))
    | (?P<literal>(?<!\w)[bc]?r(?P<hashes>\#*)".*?"(?P=hashes) | "(?:\\.|[^"\\])*" | '(?:\\.[^']*|[^\\'])')""",
    re.VERBOSE | re.DOTALL,
)
ATTRIBUTE = re.compile(r"#\s*\[")
SPACE = re.compile(r"\s*")
ONLY_TESTS = re.compile(r"\s*cfg\s*\(\s*(?:test\b|all\s*\([^()]*\btest\b)")
ITEM = re.compile(
    r"(?:pub(?:\s*\([^)]*\))?\s+)?(?:async|const|enum|extern|fn|impl|macro_rules|mod|static|struct|trait|type|union|unsafe|use)\b"
)
OWN_FILE = re.compile(r"(?:pub(?:\s*\([^)]*\))?\s+)?mod\s+(\w+)\s*;")


def masked(text):
    r"""Rust without comments, and with an `s` for each character of a literal.

    >>> masked('a // b')
    'a     '
    >>> masked('/* a /* b */ c */ d')
    '                  d'
    >>> masked(r'f("//", r#"{ " } /*"#, b"a{", "\"//") // g')
    'f(ssss, ssss s s ssss, bssss, ssssss)     '
    >>> masked(r"<'a, 'b>{f('{', b'\'', '\u{7D}')}")
    "<'a, 'b>{f(sss, bssss, ssssssss)}"
    """
    pieces, at = [], 0
    while match := TOKEN.search(text, at):
        end = match.end()
        depth = bool(match["block"])
        while depth and (mark := re.compile(r"/\*|\*/").search(text, end)):
            depth += 1 if mark[0] == "/*" else -1
            end = mark.end()
        shown = match[0] if match["lifetime"] else re.sub(r"\S", "s" if match["literal"] else " ", text[match.start() : end])
        pieces += [text[at : match.start()], shown]
        at = end
    return "".join([*pieces, text[at:]])


def behind(code, at):
    """The index behind the bracket that closes the one at `at`."""
    depth = 0
    for bracket in re.compile(r"[][(){}]").finditer(code, at):
        depth += 1 if bracket[0] in "([{" else -1
        if depth == 0:
            return bracket.end()
    raise ValueError(f"the bracket before {code[at:at + 40]!r} is not closed")


def end_of_item(code, at):
    """The index behind an item, a statement or a field."""
    is_item = ITEM.match(code, at)
    while at < len(code) and code[at] not in ")]}":
        if code[at] in "([{":
            is_body = is_item and code[at] == "{"
            at = behind(code, at)
            if is_body:
                return re.compile(r"(\s*;)?").match(code, at).end()
        elif code[at] == ";" or not is_item and code[at] in ",\n":
            return at + 1
        else:
            at += 1
    return at


def rust(text):
    """Counts the product lines of a Rust file, and finds the modules of tests in files of their own.

    >>> rust('#[cfg(test)]\\nmod page;\\n#[allow(dead_code)]\\n#[cfg(all(test, unix))]\\npub(crate) mod other;\\nmod c;\\n')
    (1, ['page', 'other'])
    >>> rust('fn a() {}\\n\\n#[cfg(test)] // b\\nmod tests {\\n  const A: &str = r"} //";\\n}\\n/// C.\\nfn c() {}\\n')
    (2, [])
    >>> rust('let a = "\\n\\n// b\\n"; /* c\\n/* d */\\n*/ e();\\n/*\\nf();\\n*/\\n')
    (4, [])
    >>> rust('struct A {\\n  #[cfg(test)]\\n  pub b: C,\\n  d: E,\\n}\\n#[cfg(test)]\\nuse a::{b, c};\\nuse d;\\n')
    (4, [])
    >>> rust('#[cfg(not(test))]\\nfn a() {}\\n#[cfg(any(test, unix))]\\nmod b;\\n#[cfg(feature = "test")]\\nfn c() {}\\n')
    (6, [])
    """
    code = masked(text)
    modules, kept, begin, at = [], [], 0, 0
    while match := ATTRIBUTE.search(code, at):
        start, is_test = match.start(), False
        while match:
            is_test |= bool(ONLY_TESTS.match(code, match.end()))
            at = SPACE.match(code, behind(code, match.end() - 1)).end()
            match = ATTRIBUTE.match(code, at)
        if is_test:
            own_file = OWN_FILE.match(code, at)
            modules += [own_file[1]] if own_file else []
            at = end_of_item(code, at)
            kept.append(code[begin:start])
            begin = at
    kept.append(code[begin:])
    return sum(bool(line.strip()) for line in "".join(kept).splitlines()), modules


def python(text):
    """Counts the lines of a Python file without comments, blank lines and documentation.

    >>> python('\"\"\"A.\\n\\nB.\"\"\"\\nC = \"\"\"d\\n\\n# e\"\"\"\\n# f\\n\\ndef g():\\n    \"H.\"\\n    return (1,  # i\\n            # j\\n  2)\\n')
    5
    """
    layout = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
    nothing = {tokenize.COMMENT, tokenize.NL}
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in nothing]
    lines, before = set(), tokenize.ENCODING
    for token, after in zip(tokens, tokens[1:]):
        is_documentation = token.type == tokenize.STRING and before in layout and after.type == tokenize.NEWLINE
        if token.type not in layout and not is_documentation:
            shown = enumerate(token.string.splitlines(), token.start[0])
            lines.update(number for number, line in shown if line.strip())
        before = token.type
    return len(lines)


def product_lines(files):
    """Counts the product lines of files of one crate, which are pairs of a path and a text.

    >>> test = "#[cfg(test)]\\nmod b;\\nmod c;\\n"
    >>> files = [("src/a.rs", test), ("src/a/b.rs", "x"), ("src/a/c.rs", "x"), ("src/b.rs", "x"), ("src/a/b/d.rs", "x")]
    >>> product_lines(files)
    3
    >>> product_lines([("src/d/mod.rs", test), ("src/d/b/mod.rs", "x"), ("src/d/b/e.rs", "x"), ("src/d/c.rs", "x")])
    2
    """
    tests, counts = set(), {}
    for name, text in files:
        path = pathlib.PurePath(name)
        if path.suffix == ".rs":
            counts[path], modules = rust(text)
            folder = path.parent if path.stem in ("lib", "main", "mod") else path.with_suffix("")
            tests.update(folder / module for module in modules)
        else:
            counts[path] = python(text)
    return sum(count for path, count in counts.items() if tests.isdisjoint({path.with_suffix(""), *path.parents}))


def crates():
    """The product lines of each crate of the workspace, by its folder, and of the Python package."""
    members = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["members"]
    folders = {member: f"{member}/src" for member in members} | {PACKAGE: PACKAGE}
    counts = {}
    for name, folder in sorted(folders.items()):
        if not name.startswith(TESTS):
            command = ["git", "ls-files", "--", *(f"{folder}/*.{end}" for end in ("rs", "py", "pyi"))]
            listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
            paths = [path for path in listed if (ROOT / path).is_file()]
            counts[name] = product_lines((path, (ROOT / path).read_text()) for path in paths)
    return counts


def faults(limits, counts):
    """The crates whose count is too far from their limit, each with what is wrong and what to do.

    >>> for name, fault in faults({"a": 100, "b": 100, "c": 100, "d": 100}, {"a": 103, "b": 104, "c": 97, "d": 96}).items():
    ...     print(name, fault.split(":")[0])
    b has 104 product lines, 4.0 % over its limit of 100
    d has 96 product lines, 4.0 % under its limit of 100
    >>> for name, fault in faults({"a": 100}, {"b": 100}).items():
    ...     print(name, fault.split(":")[0])
    a has a limit and is no crate
    b has 100 product lines and no limit
    """
    found = {}
    for name in sorted(limits.keys() | counts.keys()):
        if name not in counts:
            found[name] = f"has a limit and is no crate: {LOWER}"
        elif not limits.get(name):
            found[name] = f"has {counts[name]:,} product lines and no limit: {RAISE}"
        elif 100 * abs(counts[name] - limits[name]) > MARGIN_PERCENT * limits[name]:
            change = 100 * counts[name] / limits[name] - 100
            side, advice = ("over", RAISE) if change > 0 else ("under", LOWER)
            found[name] = f"has {counts[name]:,} product lines, {abs(change):.1f} % {side} its limit of {limits[name]:,}: {advice}"
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write the counts of the crates that fail as their limits")
    parser.add_argument("--list", action="store_true", help="print the count of each crate beside its limit")
    options = parser.parse_args()
    text = LIST.read_text()
    limits, counts = tomllib.loads(text)["lines"], crates()
    wrong = faults(limits, counts)
    if options.list:
        print(f"{'crate':<18}{'lines':>8}{'limit':>8}")
        for name, count in counts.items():
            print(f"{name:<18}{count:>8}{limits.get(name, 0):>8}")
        print(f"{'all':<18}{sum(counts.values()):>8}{sum(limits.values()):>8}")
        return 0
    if options.update:
        for name in wrong:
            print(f"{name}: {limits.get(name, 0):,} to {counts.get(name, 0):,}")
        written = {name: count if name in wrong else limits[name] for name, count in counts.items()}
        comment, table, _ = text.partition("[lines]\n")
        LIST.write_text(comment + table + "".join(f'"{name}" = {limit}\n' for name, limit in written.items()))
        return 0
    for name, fault in wrong.items():
        print(f"error: {name} {fault}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
