"""The notebooks run, each in less than a minute of processor, are stored without outputs, and leave no files."""

import resource
import shutil
import subprocess

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


def processor_s():
    """The processor time of the programs that have ended: other programs do not add to it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_draws(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code)
    before = status()
    began = processor_s()
    client = nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3")
    client.execute(cwd=str(path.parent))
    assert 0 < processor_s() - began < 60
    assert status() == before
    pictures = [
        output
        for cell in code
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]
    assert len(pictures) >= 5
