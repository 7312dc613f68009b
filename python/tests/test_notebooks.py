"""The notebooks run, each in less than a minute, are stored without outputs, and leave no files."""

import shutil
import subprocess
import time

import nbclient
import nbformat
import pytest
from conftest import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def status():
    """What git says of the repository; nothing in an archive without git."""
    if not shutil.which("git"):
        return ""
    command = ["git", "status", "--porcelain", "--untracked-files=all"]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True).stdout


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_draws(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code)
    before = status()
    began = time.monotonic()
    client = nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3")
    client.execute(cwd=str(path.parent))
    assert time.monotonic() - began < 60
    assert status() == before
    pictures = [
        output
        for cell in code
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]
    assert len(pictures) >= 5
