"""The command: runs figures, prints and reports, and says what is wrong with them."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from comity.reproduction.command import _Log, main
from comity.reproduction.figures import found_in
from comity.reproduction.page import BEGIN, END

ROOT = Path(__file__).resolve().parents[3]

SCENARIO = """\
# measured: 0.987
[scenario]
name = "narrow"
duration = "10s"
warmup = "2s"
bins = "1s"
seeds = { first = 1, count = 3 }

[topology]
kind = "dumbbell"
bottleneck = { rate = "2Mbps", delay = "20ms", queue = 10 }
access = { rate = "10Mbps", delay = "2ms" }

[[flow]]
group = "reno"
controller = "reno"
count = 2
start = { spread = "100ms" }

[[sweep]]
name = "queue"
parameter = "topology.bottleneck.queue"
values = [20, 40]
"""

FIGURE = '''
"""Figure 1: the link is full.

The paper gives no queue.
"""

from comity.reproduction import claim


@claim(
    "narrow-fig1",
    says="two flows fill the link",
    source="figure 1",
    scenario="narrow.toml",
    quick={"seeds": 2, "set": SET},
)
def figure_1(runs, check):
    used = runs.measure(lambda run: run.links("bottleneck").utilisation.mean())
    check("utilisation", used, at_least=0.9, paper=0.95)
    bins = runs.measure(lambda run: run.bins("reno", column="delivered_bytes", start_s=2).sum())
    total = runs.measure(lambda run: run.flows("reno").delivered_bytes.sum())
    check.show("seeds", len(runs.seeds))
    check("bins have what is delivered", bins / total, within=(0.02, 1))


@figure_1.picture
def picture(runs, draw):
    used = runs.measure(lambda run: run.links("bottleneck").utilisation.mean())
    draw.lines("link", {"Reno": (used, 0.95)}, over="queue", x="queue, packets", y="utilisation")
    draw.bars("link", {"Reno": used}, over="queue", x="queue", y="utilisation", wanted=(0.9, 1))
'''


#: A check that is known to fail beside the others.
KNOWN = FIGURE.replace("import claim", "import Cause, claim").replace(
    'check("bins have',
    'check("b", 1, above=2, fails=Cause("one is less", "It measures 0.987"))\n    check("bins have',
)


@pytest.fixture
def experiments(tmp_path):
    def made(changes="{}", figure=FIGURE):
        folder = tmp_path / "experiments" / "narrow"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text('"""Narrow: A. Author, "A paper".\n"""\n')
        (folder / "narrow.toml").write_text(SCENARIO)
        (folder / "fig1.py").write_text(figure.replace("SET", changes))
        return ["--experiments", str(folder.parent)]

    return made


def test_a_log_hears_how_far_the_claims_are(capsys):
    now = [100.0]
    log = _Log(8, lambda: now[0])
    log.judged = 3
    for done in range(30):
        # Whether runs end or not.
        log.runs = f"{min(done, 5)} of 30 runs of fig08.toml, "
        log.tick()
        now[0] += 1.0
    log.begin("quick form: ")
    now[0] += 10.0
    log.tick()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "3 of 8 claims, 2 of 30 runs of fig08.toml, 2 s",
        "3 of 8 claims, 5 of 30 runs of fig08.toml, 12 s",
        "3 of 8 claims, 5 of 30 runs of fig08.toml, 22 s",
        "quick form: 0 of 8 claims, 40 s",
    ]


def test_a_claim_that_holds_is_printed(experiments, capsys):
    assert main(experiments()) == 0
    text = capsys.readouterr().out
    begin = "narrow-fig1: holds\n  two flows fill the link (figure 1)"
    assert text.startswith(begin)
    assert "queue=40" in text
    assert text.endswith("In the quick form, of 1 claim of one paper, 1 holds.\n")
    assert max(map(len, text.splitlines())) <= 80


def test_a_claim_whose_feature_is_broken_fails(experiments, capsys):
    assert main(experiments('{"flow.reno.rwnd": 1}')) == 1
    text = capsys.readouterr().out
    assert "narrow-fig1: holds in 1 of 2 parts" in text
    assert "surprise: narrow-fig1: utilisation: fails, known to be: holds" in text


def test_forms_differ_in_their_seeds(experiments, capsys):
    arguments = [*experiments(), "--json"]
    assert main(arguments) == 0
    quick = json.loads(capsys.readouterr().out)
    assert main([*arguments, "--full"]) == 0
    full = json.loads(capsys.readouterr().out)
    assert (quick["form"], full["form"]) == ("quick", "full")
    used, seeds, _ = quick["claims"][0]["checks"]
    assert [row["at"] for row in used["rows"]] == [{"queue": 20}, {"queue": 40}]
    assert seeds["rows"][0]["value"] == 2
    assert full["claims"][0]["checks"][1]["rows"][0]["value"] == 3


def test_the_page_has_the_verdicts(experiments, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    assert main([*experiments(), "--page", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    begin = "# 1 of 1 claim of one paper holds here, in the quick form\n\nIn the quick form, of 1 claim"
    assert text.startswith(begin)
    assert f"```sh\nmake claims CLAIMS='--page {page}'\n```\n" in text
    assert "## Narrow" in text
    row = "| [`narrow-fig1`](#narrow-fig1) | two flows fill the link (figure 1) | holds |"
    assert row in text.splitlines()


def test_the_page_says_what_was_claimed_run_and_found_and_why(experiments, tmp_path):
    figure = KNOWN.replace(
        'check("bins have', 'check("of ours", 1, above=0, cannot_fail="one is above 0")\n    '
        'check("later", 1, above=0, form="full")\n    check("bins have'
    )
    pages = tmp_path / "pages"
    pages.mkdir()
    changes = '{"flow.reno.count": 3}'
    assert main([*experiments(changes, figure), "--page", str(pages / "page.md")]) == 0
    text = (pages / "page.md").read_text(encoding="utf-8")
    assert "1 check cannot fail and is not counted." in " ".join(text.split())
    section = text.partition("### narrow-fig1\n")[2]
    said = " ".join(section.split())
    assert said.startswith("Claimed: two flows fill the link (figure 1). The paper gives no queue.")
    run = "- Run: [`narrow.toml`](../experiments/narrow/narrow.toml): In the file: 10s, 3 seeds. "
    assert f"{run}Changed here: `flow.reno.count = 3; the first 2 seeds`" in said
    assert "**holds in 2 of 4 parts (1 check cannot fail; 1 check of the other form left out)**" in said
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    assert rows[0] == "| Check | Reading | Wanted | Paper | Here | |"
    assert re.fullmatch(r"\| utilisation \|  \| >= 0.9 \| 0.95 \| [\d.]+( to [\d.]+)? \| holds \|", rows[1])
    assert "| b |  | > 2 |  | 1 | fails |" in rows
    assert "| of ours |  | > 0 |  | 1 | holds, cannot fail |" in rows
    assert "| later |  |  |  |  | not judged in this form |" in rows
    why = said.partition("Why checks fail or do not count:")[2]
    assert why.strip() == "- one is less. - cannot fail: one is above 0."
    # A link leads to the scenario.
    link = re.search(r"\]\(([^)]+\.toml)\)", section)[1]
    assert (pages / link).resolve() == tmp_path / "experiments" / "narrow" / "narrow.toml"


def test_the_readme_says_how_many_claims_hold(experiments, tmp_path, capsys):
    page, readme = tmp_path / "pages" / "page.md", tmp_path / "README.md"
    page.parent.mkdir()
    readme.write_text(f"# A\n\n{BEGIN}\nold\n{END}\n\nb\n", encoding="utf-8")
    arguments = [*experiments('{"flow.reno.rwnd": 1}'), "--page", str(page)]
    assert main([*arguments, "--readme", str(readme)]) == 1
    sentence = (
        "In the quick form, of 1 claim of one paper, 1 holds in parts ([verdicts](pages/page.md))."
    )
    assert readme.read_text() == f"# A\n\n{BEGIN}\n{sentence}\n{END}\n\nb\n"
    assert f"--page {page} --readme {readme}'" in page.read_text(encoding="utf-8")
    readme.write_text("# A\n", encoding="utf-8")
    assert main([*arguments, "--readme", str(readme)]) == 2
    assert "expected the lines <!-- claims: begin" in capsys.readouterr().err


def test_the_page_of_the_full_form_has_the_quick_form_beside_it(experiments, tmp_path):
    """With a third seed alone, one check is judged in the full form only."""
    page, readme = tmp_path / "page.md", tmp_path / "README.md"
    readme.write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")
    judged = 'check("bins have'
    figure = FIGURE.replace(judged, f'check("a", 1, at_least=1, form="full")\n    {judged}')
    arguments = [*experiments(figure=figure), "--page", str(page), "--readme", str(readme)]
    assert main([*arguments, "--full"]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# 1 of 1 claim of one paper holds here, in the full form\n")
    quick = "holds in 2 of 3 parts (1 check of the other form left out)"
    claim = "| [`narrow-fig1`](#narrow-fig1) | two flows fill the link (figure 1)"
    row = f"{claim} | holds | {quick} |"
    assert row in text.splitlines()
    said = " ".join(text.split())
    assert "In the full form, of 1 claim of one paper, 1 holds." in said
    assert "with fewer seeds and points and shorter runs, of 1 claim of one paper, 1 holds in parts." in said
    sentence = " ".join(readme.read_text(encoding="utf-8").split())
    quick = "in the quick form, 1 holds in parts ([verdicts](page.md))."
    assert f"In the full form, of 1 claim of one paper, 1 holds; {quick}" in sentence


#: How a cell with each verdict begins, and the verdict of one claim and of several.
WORDS = [
    (r"holds( in all \d+ readings|, by tests)?", "holds", "hold"),
    (r"holds in \d+ of \d+ parts?( with the best of .+)?", "holds in parts", "hold in parts"),
    (
        r"holds for these readings, \d+ of \d+: .+",
        "holds for some readings",
        "hold for some readings",
    ),
    (r"does not hold( in any of \d+ readings)?", "does not hold", "do not hold"),
    (r"cannot fail", "cannot fail", "cannot fail"),
    (r"not judged", "is not judged", "are not judged"),
]


def counted(cells):
    """How many claims have each verdict, by the cells of a table."""
    begins = [re.sub(r" \([^()]*\)$", "", cell) for cell in cells]
    numbers = [
        (sum(re.fullmatch(words, begin) is not None for begin in begins), one, several)
        for words, one, several in WORDS
    ]
    assert sum(number for number, *_ in numbers) == len(cells)
    said = [f"{n} {one if n == 1 else several}" for n, one, several in numbers if n]
    return f"{', '.join(said[:-1])} and {said[-1]}" if len(said) > 1 else said[0]


def test_the_stored_pages_count_the_stored_verdicts():
    """The oracle are the rows of the tables, one for each claim."""
    text = (ROOT / "docs" / "results" / "reproduction.md").read_text(encoding="utf-8")
    claims = {claim.id: claim for _, claim in found_in(ROOT / "experiments")}
    rows = re.findall(r"^\| \[`([^`]+)`\]\(\S+\) \| (.+) \|$", text, re.MULTILINE)
    cells = {name: rest.split(" | ")[1:] for name, rest in rows}
    assert set(cells) == set(claims) and len(rows) == len(claims)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    sentence = " ".join(readme.partition(BEGIN)[2].partition(END)[0].split())
    form = "full" if len(rows[0][1].split(" | ")) == 3 else "quick"

    def tallies(column):
        """How many claims of the papers, and of our own, have each verdict in a column."""
        said = {
            name: cell[0] if cell[column] == "the same" else cell[column]
            for name, cell in cells.items()
        }
        return [
            counted([said[name] for name, claim in claims.items() if claim.ours is ours])
            for ours in (False, True)
        ]

    of_papers, ours = tallies(0)
    assert sum(claim.ours for claim in claims.values()) == 6
    hold = re.match(r"(\d+) holds?(?!\w| in| for)", of_papers)
    assert text.startswith(
        f"# {hold[1] if hold else 0} of 31 claims of five papers hold here, in the {form} form\n"
    )
    said = " ".join(text.split())
    assert f"In the {form} form, of 31 claims of five papers, {of_papers}." in said
    assert f" Of 6 claims of our own, {ours}." in said
    certain = re.findall(r"\| (?:holds|fails)[^|]*, cannot fail \|$", text, re.MULTILINE)
    assert f" {len(certain)} checks cannot fail and are not counted." in said
    in_quick_form = ""
    if form == "full":
        quick, quick_ours = tallies(1)
        begin = "In the quick form, that of `make report`, with fewer seeds and points and"
        assert f"{begin} shorter runs, of 31 claims of five papers, {quick}." in said
        assert f" Of 6 claims of our own, {quick_ours}." in said
        in_quick_form = f"; in the quick form, {quick}"
    link = "([verdicts](docs/results/reproduction.md))"
    found = f"In the {form} form, of 31 claims of five papers, {of_papers}{in_quick_form} {link}."
    assert sentence == found


def test_the_report_needs_nothing_but_itself(experiments, tmp_path):
    page = tmp_path / "report.html"
    arguments = experiments(figure=KNOWN)
    results = Path(arguments[-1]).parent / "docs" / "results"
    results.mkdir(parents=True)
    table = "# Which controller?\n\n| controller | s |\n| --- | ---: |\n| Reno | <1 |\n"
    (results / "controllers.md").write_text(table, encoding="utf-8")
    assert main([*arguments, "--report", str(page), "--full"]) == 0
    text = page.read_text(encoding="utf-8")
    assert "<title>Comity: 0 of 1 claim of one paper hold here, in the full form</title>" in text
    assert "<h2>Which controller?</h2>" in text and "<td>Reno</td>" in text and "&lt;1" in text
    assert "# measured: 0.987" in text and "one is less. It measures 0.987." in text
    assert "The paper gives no queue." in text
    assert "name = &#34;narrow&#34;" in text
    assert text.count("<svg") == 1
    for outside in ('src="', 'href="http', "url(http", "@import", "<script"):
        assert outside not in text


def test_the_report_of_the_quick_form_quotes_no_other_numbers(experiments, tmp_path):
    page = tmp_path / "report.html"
    arguments = experiments(figure=KNOWN)
    results = Path(arguments[-1]).parent / "docs" / "results"
    results.mkdir(parents=True)
    (results / "controllers.md").write_text("# Which controller?\n", encoding="utf-8")
    assert main([*arguments, "--report", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "0 of 1 claim of one paper hold here, in the quick form</title>" in text
    assert "name = &#34;narrow&#34;" in text and "one is less." in text
    assert "0.987" not in text and "Which controller" not in text


@pytest.mark.parametrize("option", ["--report", "--page"])
def test_a_folder_for_a_page_has_to_be_there(experiments, tmp_path, capsys, option):
    with pytest.raises(SystemExit) as end:
        main([*experiments(), option, str(tmp_path / "none" / "page")])
    assert end.value.code == 2
    assert f"make it first: mkdir -p {tmp_path / 'none'}" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


@pytest.mark.skipif(not shutil.which("chromium"), reason="no chromium to open the page in")
def test_a_browser_shows_the_report(experiments, tmp_path):
    page = tmp_path / "report.html"
    assert main([*experiments(), "--report", str(page)]) == 0
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,2000"]
    options += [f"--user-data-dir={tmp_path / 'profile'}", "--host-resolver-rules=MAP * ~NOTFOUND"]
    shown = subprocess.run(
        ["chromium", *options, "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    assert 'id="narrow-fig1"' in shown
    assert "utilisation" in shown


def test_a_name_that_nothing_has_is_answered_with_those_there_are(experiments, capsys):
    assert main([*experiments(), "nearrow"]) == 2
    said = capsys.readouterr().err
    assert "error: no claim and no system is called 'nearrow': expected one of narrow," in said
    assert "narrow-fig1; did you mean 'narrow'?" in said


def test_a_folder_that_is_not_there_is_named(capsys):
    with pytest.raises(SystemExit):
        main(["--experiments", "nowhere"])
    assert "--experiments nowhere: expected a folder of figures" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('flows("reno")', 'flows("rino")', "nothing is called 'rino': expected one of bottleneck"),
        ("narrow.toml", "wide.toml", "wide.toml"),
    ],
)
def test_mistakes_of_a_figure_end_with_2_and_are_named(experiments, capsys, old, new, message):
    assert main(experiments(figure=FIGURE.replace(old, new))) == 2
    assert message in capsys.readouterr().err
