"""A notebook, executed by nbclient in a real kernel: `%load_ext fullbore`, `%%fullbore`."""

from __future__ import annotations

import html
import re

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

DATASET = """import time
import torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 400
    def __getitem__(self, number):
        return self.decode(number)
    def decode(self, number):
        time.sleep(0.003)
        return torch.randn(16)"""
TRAINING = """%%fullbore fine-tuning
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(Slow(), batch_size=4)
for batch in loader:
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
    time.sleep(0.005)"""
READS = """import fullbore
run = fullbore.read()
print([finding.id for finding in run.findings])
print([f"{place}: {place.text}" for finding in run.findings for place in finding.where])"""


@pytest.fixture
def executed(package_environment, monkeypatch, fullbore, tmp_path):
    """Executes cells, and gives each cell's outputs as one text, by MIME type."""
    for name, value in fullbore.environment(package_environment).items():
        monkeypatch.setenv(name, value)

    def execute(*cells: str, allow_errors: bool = False) -> list[dict[str, str]]:
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        client = nbclient.NotebookClient(
            notebook,
            kernel_name="python3",
            timeout=180,
            resources={"metadata": {"path": str(tmp_path)}},
            allow_errors=allow_errors,
        )
        client.execute()
        return [outputs_of(cell) for cell in notebook.cells]

    return execute


def outputs_of(cell) -> dict[str, str]:
    said: dict[str, str] = {}
    for output in cell.outputs:
        data = output.get("data", {output.get("name", "error"): output.get("text") or output.get("evalue", "")})
        for kind, text in data.items():
            said[kind] = said.get(kind, "") + text
    return said


@pytest.mark.long
def test_the_report_of_a_cell_names_cells_and_lines(executed, torch_python):
    *_, trained, read = executed("%load_ext fullbore", DATASET, "1 + 1", TRAINING, READS)
    text = trained["text/plain"]
    assert "waits for data" in text and re.search(r"cell 4, line 4\b", text), text
    assert re.search(r"cell 4, line 9\b", text), "where it sleeps in the loop"
    assert "ipykernel" not in text and "stderr" not in trained
    frame, _, inside = trained["text/html"].partition(">")
    assert "srcdoc=" in frame and "sandbox=" in frame
    assert inside == f"<pre>{html.escape(text)}</pre></iframe>", "what JupyterLab leaves of it where it is not trusted"
    assert "input-bound" in read["stdout"]
    assert "cell 4, line 9: time.sleep(0.005)" in read["stdout"]


@pytest.mark.long
def test_a_cell_that_fails_fails_once_and_has_its_report(executed):
    cell = "%%fullbore\nimport fullbore, time\nfor _ in range(40):\n    time.sleep(0.01); fullbore.step()\n1 / 0"
    (_, failed) = executed("%load_ext fullbore", cell, allow_errors=True)
    assert failed["error"] == "division by zero"
    assert "text/html" in failed and "text/plain" in failed


@pytest.mark.long
def test_what_a_cell_shows_is_shown_and_its_names_stay(executed):
    *_, ran, after = executed("%load_ext fullbore", "%%fullbore\nkept = 41\nkept + 1", "print(kept)")
    assert ran["text/plain"].startswith("42")
    assert "No training seen" in ran["text/plain"]
    assert "PYTHONPATH" not in ran["text/plain"], "the hook was there, however the kernel was started"
    assert after["stdout"] == "41\n"
