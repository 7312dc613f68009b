"""Markdown whose lines are at most 100 columns wide, for the pages that programs write."""

import itertools
import re
import textwrap

WIDTH = 100
FIXED = re.compile(r"\||#|!\[|<|$")
"""Lines that stay as they are: rows of tables, headings, pictures, tags and empty lines."""
ITEM = re.compile(r"(- |\d+\. )")


def wrapped(page):
    """The page with its paragraphs and items broken anew where a line of them is too wide.

    >>> long = "word " * 25
    >>> [len(line) for line in wrapped(f"| {long} |\\n- {long}\\n- short\\n").splitlines()]
    [129, 96, 31, 7]
    >>> wrapped("stays\\nas it is\\n\\n```sh\\nmake it\\n```\\n")
    'stays\\nas it is\\n\\n```sh\\nmake it\\n```\\n'
    """
    lines, is_code = [], False
    for block in blocks(page.split("\n")):
        fences = sum(line.lstrip().startswith("```") for line in block)
        if is_code or fences or max(map(len, block)) <= WIDTH or FIXED.match(block[0]):
            lines += block
        else:
            item = ITEM.match(block[0])
            lines += textwrap.wrap(
                " ".join(line.strip() for line in block),
                WIDTH,
                subsequent_indent=" " * (len(item[0]) if item else 0),
                break_long_words=False,
                break_on_hyphens=False,
            )
        is_code ^= fences % 2 == 1
    return "\n".join(lines)


def blocks(lines):
    """Lines that belong together: a paragraph, an item of a list, or a single line that is neither.

    >>> list(blocks(["a", "b", "", "- c", "  d", "- e", "| f |", "| g |"]))
    [['a', 'b'], [''], ['- c', '  d'], ['- e'], ['| f |'], ['| g |']]
    """
    block = []
    for line in itertools.chain(lines, [None]):
        begins = line is None or FIXED.match(line) or ITEM.match(line) or line.startswith("```")
        if block and (begins or FIXED.match(block[0]) or block[0].startswith("```")):
            yield block
            block = []
        if line is not None:
            block.append(line)
