"""The built fullbore.data, small pictures to load, and other Pythons to load them with."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(os.environ.get("FULLBORE_TEST_PACKAGE", ROOT / "build" / "release" / "python"))
FAKE_CUDA = PACKAGE.parent / "tests" / "fakes" / "libfake_cuda.so"
TIMEOUT_S = 180  # a hang, on any machine
CLASSES = ("ant", "bee", "cat")


def require() -> None:
    """Skips if the extension is not built; else makes fullbore.data importable here."""
    if not list((PACKAGE / "fullbore" / "data").glob("_core*.so")):
        pytest.skip("fullbore.data is not built: scripts/setup.sh test, then scripts/build.sh release")
    if str(PACKAGE) not in sys.path:
        sys.path.insert(0, str(PACKAGE))


def make_photos(root: pathlib.Path, per_class: int = 8, size: tuple[int, int] = (64, 48)) -> pathlib.Path:
    """JPEGs of three classes, each with its own colour and smooth noise."""
    import numpy
    from PIL import Image

    random = numpy.random.default_rng(0)
    for name, colour in zip(CLASSES, ((200, 60, 60), (60, 200, 60), (60, 60, 200))):
        (root / name).mkdir(parents=True)
        for index in range(per_class):
            coarse = numpy.array(colour) + random.integers(-40, 40, (6, 6, 3))
            image = Image.fromarray(coarse.clip(0, 255).astype("uint8")).resize(size, Image.BICUBIC)
            image.save(root / name / f"{index:03}.jpg", quality=92)
    return root


def run_script(
    text: str, *arguments: object, python: str = sys.executable, env: dict[str, str] | None = None, **how: object
) -> subprocess.CompletedProcess:
    """Runs a script from a file, which a script that spawns processes needs."""
    directory = pathlib.Path(how.pop("directory"))  # type: ignore[arg-type]
    path = directory / "script.py"
    path.write_text(textwrap.dedent(text))
    return subprocess.run(
        [python, str(path), *map(str, arguments)],
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        stdin=subprocess.DEVNULL,
        **how,  # type: ignore[call-overload]
    )


def environment(extra: dict[str, str] | None = None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FULLBORE_")}
    return {**kept, "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1", **(extra or {})}


def torchvision_python() -> str:
    """An interpreter with torch and torchvision that can load the built extension."""
    for candidate in (sys.executable, "/usr/bin/python3"):
        probe = "import torchvision, fullbore.data._core"
        if subprocess.run([candidate, "-c", probe], env=environment(), capture_output=True).returncode == 0:
            return candidate
    pytest.skip("no Python here has torchvision and the extension's version")
