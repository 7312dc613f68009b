"""The Python code of the guide runs, in order, as one program."""

import os
import re

from conftest import ROOT


def test_the_guide_runs(tmp_path, capsys):
    page = (ROOT / "docs" / "guide" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 5
    here = os.getcwd()
    os.chdir(tmp_path)
    os.symlink(ROOT / "experiments", "experiments")
    try:
        exec(compile("\n".join(blocks), "python.md", "exec"), {"__name__": "guide"})
    finally:
        os.chdir(here)
    assert (tmp_path / "cwnd.svg").exists()
    assert capsys.readouterr().out.startswith('did you mean "rwnd"?')


def test_the_guide_to_controllers_runs():
    page = (ROOT / "docs" / "guide" / "python-controller.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 4
    exec(compile("\n".join(blocks), "python-controller.md", "exec"), {"__name__": "guide"})
