"""`progress=True`: one line that changes on a terminal, a line now and then elsewhere."""

import io

import comity
import pytest
from comity._progress import reporting
from conftest import TEXT


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_has_one_line_that_changes():
    terminal = Terminal()
    with reporting(True, terminal) as report:
        report(1, 20)
        report(20, 20)
    assert terminal.getvalue() == "\r1 of 20 runs\r20 of 20 runs\n"


def test_an_error_does_not_share_the_line():
    terminal = Terminal()
    with pytest.raises(KeyboardInterrupt), reporting(True, terminal) as report:
        report(1, 20)
        raise KeyboardInterrupt
    assert terminal.getvalue().endswith(" runs\n")


def test_a_log_gets_a_line_after_two_seconds_and_then_every_ten():
    log, now = io.StringIO(), [100.0]
    with reporting(True, log, lambda: now[0]) as report:
        for done in range(351):
            report(done, 350)
            now[0] += 0.1
    lines = log.getvalue().splitlines()
    assert len(lines) == 4 and "\r" not in log.getvalue()
    counts = [int(line.removesuffix(" of 350 runs")) for line in lines]
    assert counts == pytest.approx([20, 120, 220, 320], abs=4)


def test_no_progress_is_none_and_a_function_is_itself():
    with reporting(False) as report:
        assert report is None
    with reporting(print) as report:
        assert report is print


def test_a_run_prints_nothing_to_standard_output(monkeypatch, capsys):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    comity.run(TEXT, seeds=range(1, 4), progress=True)
    assert capsys.readouterr().out == ""
    assert terminal.getvalue().endswith("\r6 of 6 runs\n")
