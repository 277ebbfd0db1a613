"""Notebooks: `%load_ext fullbore`, then `%%fullbore` on top of a cell that trains. The report is the cell's output."""

from __future__ import annotations

import contextlib
import html
import os
import tempfile
from collections.abc import Iterator
from typing import Any, Callable

from .runs.program import FullboreError, call
from .runs.reading import USUAL_DIRECTORY
from .runs.recording import Recording, record

MOST_BYTES = 4 << 20  # of a page in a notebook, which is saved with it
HEIGHT_PX = 640
# A page of ours runs its own scripts; what it shows comes from the training, and has no business with the notebook.
SANDBOX = "allow-scripts allow-popups allow-downloads"


def page_of(path: str, report: str) -> str:
    """The HTML report of a run, as a frame; empty where it does not fit or cannot be made. Of a notebook that is not
    trusted (somebody else's), JupyterLab leaves out frames and shows what is inside, as no browser does: the text."""
    with tempfile.TemporaryDirectory() as place:
        file = os.path.join(place, "report.html")
        try:
            call("explain", path, "-q", "--html", file)
            with open(file, encoding="utf-8") as page:
                text = page.read()
        except (FullboreError, OSError):
            return ""
    if len(text) > MOST_BYTES:
        return ""
    style = f"width: 100%; height: {HEIGHT_PX}px; border: 0"
    instead = f"<pre>{html.escape(report)}</pre>"
    return f'<iframe sandbox="{SANDBOX}" style="{style}" srcdoc="{html.escape(text)}">{instead}</iframe>'


def show(recording: Recording) -> None:
    from IPython.display import display

    if recording.path is None:
        return
    report = recording.text()
    said = {"text/plain": report}
    page = page_of(recording.path, report)
    display({**said, "text/html": page} if page else said, raw=True)


@contextlib.contextmanager
def replaced(owner: Any, method: str, stand_in: Callable[..., Any]) -> Iterator[None]:
    setattr(owner, method, stand_in)
    try:
        yield
    finally:
        delattr(owner, method)


def run_cell(shell: Any, cell: str) -> None:
    """As the notebook would run it, under the number of its cell and with those of its lines: the first is the magic's
    own. What it raises is shown once, by whoever called the magic."""
    number = len(shell.history_manager.input_hist_parsed) - 1
    cache = shell.compile.cache

    def cached(code: str, _: int = 0, **how: Any) -> str:
        return cache(code, number, **how)

    first_line = "" if cell.startswith("%%") else "# %%fullbore\n"  # another magic has to be the first
    with replaced(shell, "showtraceback", lambda *_, **__: None), replaced(shell.compile, "cache", cached):
        result = shell.run_cell(first_line + cell)
    result.raise_error()


def load(shell: Any) -> None:
    from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

    @magic_arguments()
    @argument("name", nargs="?", default="notebook", help="Part of the run's id")
    @argument("-o", "--output", default=USUAL_DIRECTORY, help="Where runs are kept")
    def fullbore(line: str, cell: str) -> None:
        """Records the cell as a run, and shows its report."""
        arguments = parse_argstring(fullbore, line)
        recording = record(arguments.name, arguments.output, quiet=True)
        try:
            with recording:
                run_cell(shell, cell)
        finally:
            show(recording)

    shell.register_magic_function(fullbore, magic_kind="cell", magic_name="fullbore")
