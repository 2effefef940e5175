"""The notebook and the code of docs/python.md run, as a reader would run them."""

import json
import re
from pathlib import Path

import matplotlib
import nbformat
import pytest
from conftest import REPOSITORY
from nbclient import NotebookClient

import sigmund

NOTEBOOK = REPOSITORY / "examples/python/supertrace.ipynb"
DOCUMENT = REPOSITORY / "docs/python.md"


def test_the_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPERTRACE", str(path.absolute()))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY / "python/src"))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(
        notebook,
        timeout=120,
        startup_timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": tmp_path}},
    ).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert (
        len(pictures) == sum(";" in cell.source for cell in notebook.cells if cell.cell_type == "code") == 4
    )


def test_the_notebook_is_stored_without_outputs() -> None:
    for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"]:
        assert cell.get("outputs", []) == [] and cell.get("execution_count") is None


def test_the_code_of_the_document_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").symlink_to(path.parent.absolute())
    blocks = re.findall(r"^```python\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 5
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(DOCUMENT), "exec"), names)
    assert (tmp_path / "gantt.png").stat().st_size > 1000


def test_the_document_names_every_public_function() -> None:
    text = DOCUMENT.read_text("utf-8")
    functions = [name for name in sigmund.__all__ if name.islower()]
    assert [name for name in functions if f"sigmund.{name}" not in text] == []
