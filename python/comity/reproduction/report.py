"""One page about all claims, which needs no other file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markdown_it import MarkdownIt

from . import text
from .claims import Check, Claim, Form
from .pictures import Drawing
from .study import Scenario
from .verdicts import Verdict, judge

__all__ = ["Report", "html", "templates"]

#: A sign for each verdict, so that verdicts do not differ by colour alone.
SIGNS = {
    Verdict.HOLDS: "✓",
    Verdict.HOLDS_IN_PARTS: "◐",
    Verdict.HOLDS_FOR_READINGS: "◐",
    Verdict.FAILS: "✗",
    Verdict.CANNOT_FAIL: "·",
    Verdict.NOT_JUDGED: "·",
}


@dataclass(frozen=True)
class Entry:
    """The part of the page about a claim."""

    system: str
    claim: Claim
    checks: list[Check]
    picture: str
    settings: list[tuple[str, str, str, str]]

    @property
    def verdict(self) -> str:
        """The verdict, with the parts and readings for which it holds."""
        return text.verdict_in_words(self.claim, self.checks)

    @property
    def kind(self) -> str:
        """The verdict as the name of a class."""
        return judge(self.claim, self.checks).verdict.name.lower().replace("_", "-")

    @property
    def sign(self) -> str:
        """The sign of the verdict."""
        return SIGNS[judge(self.claim, self.checks).verdict]

    @property
    def causes(self) -> list[tuple[str, str]]:
        """Why checks fail or do not count."""
        return text.causes(self.checks)


class Report:
    """Collects claims and writes the page."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._entries: list[Entry] = []
        self._papers: dict[str, str] = {}
        self.chapters: list[tuple[str, str, str]] = []
        """Further chapters: their name, their title and their Markdown, with elements of HTML."""

    def add(self, system: str, claim: Claim, checks: list[Check], runs) -> None:
        """Adds a claim, with its picture of these runs."""
        drawing = Drawing(claim.id)
        if claim.draw:
            claim.draw(runs, drawing)
        scenarios = claim.scenarios_in(self._form)
        self._papers[system] = claim.paper
        self._entries.append(
            Entry(
                system,
                claim,
                checks,
                drawing.svg() if len(drawing) else "",
                _settings(scenarios, self._form),
            )
        )

    def write(self, path: Path, command: str, beyond: Path | None = None) -> None:
        """Writes the page. In the full form, a Markdown file is its last chapter."""
        environment = templates()
        results = [(entry.system, entry.claim, entry.checks) for entry in self._entries]
        page = environment.get_template("report.html").render(
            systems={
                system: [entry for entry in self._entries if entry.system == system]
                for system in self._papers
            },
            papers=self._papers,
            form=self._form.value,
            title=text.title(results, self._form),
            headline=text.headline(results, self._form),
            words=text.WORDS,
            text=text,
            command=command,
            chapters=[
                (name, title, html(markdown)) for name, title, markdown in self.chapters
            ],
            beyond=html(beyond.read_text(encoding="utf-8"), lower=1)
            if beyond and self._form is Form.FULL
            else None,
        )
        path.write_text(page, encoding="utf-8")


def templates(*folders: Path) -> jinja2.Environment:
    """The templates of pages, those of these folders and those that all pages share."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, Path(__file__).parent]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def html(markdown: str, lower: int = 0) -> str:
    """A page of Markdown as a chapter, with headings this many levels lower."""
    reader = MarkdownIt("commonmark").enable("table")
    tokens = reader.parse(markdown)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{int(token.tag[1]) + lower}"
    return reader.renderer.render(tokens, reader.options, {})


def _settings(
    scenarios: Mapping[str, Scenario], form: Form
) -> list[tuple[str, str, str, str]]:
    """The name of each scenario, its path, what is different here, and its text.

    The comments of a file quote results of the full form, so only that form has them.
    """
    settings = []
    for name, scenario in scenarios.items():
        toml = Path(scenario.path).read_text(encoding="utf-8")
        settings.append(
            (
                name,
                scenario.path,
                scenario.differences,
                toml if form is Form.FULL else _without_comments(toml),
            )
        )
    return settings


def _without_comments(toml: str) -> str:
    """A TOML file without its comment lines."""
    lines = [line for line in toml.splitlines() if not line.startswith("#")]
    return "\n".join(lines).strip() + "\n"
