"""What the findings' pages say is true of the versions pinned in scripts/requirements-test.txt."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from finding_claims import CLAIMS, FACTS, GIVEN, INSTEAD, NO_ARGUMENTS, ON_CPU
from finding_pages import (
    BLOCKS,
    PAGES,
    ROOT,
    Block,
    blocks_of,
    calls,
    dotted_names,
    names_in,
    own_commands,
    spans,
    trainer_arguments,
)

BINARY = Path(os.environ.get("FULLBORE_TEST_BINARY", ROOT / "build" / "release" / "fullbore"))
RUNNING = [block for block in BLOCKS if block.runs]
TIMEOUT_S = 300  # a hang, on any machine
# Packages whose files the pages name as sources; those in c10/ come with torch.
SOURCES = ("torch", "transformers", "accelerate", "lightning", "c10")


def given(code: str, instead: dict[str, str]) -> list[str]:
    """The definitions of what the code assumes, each after those it needs itself."""
    definitions: list[str] = []
    done: set[str] = set()

    def add(names: list[str]) -> None:
        for name in names:
            definition = instead.get(name, GIVEN.get(name))
            if definition is None or name in done:
                continue
            done.add(name)
            add(names_in(definition))
            definitions.append(definition)

    add(names_in(code))
    return definitions


def on_cpu(block: Block) -> str:
    code = block.code
    if block.info == "python cuda":
        replaced = [word for word in ON_CPU if word in code]
        assert replaced, f"{block.name} is marked cuda but needs no GPU"
        for word in replaced:
            code = code.replace(word, ON_CPU[word])
    return code


def piece(code: str, claim: str = "", instead: dict[str, str] | None = None) -> str:
    code = textwrap.dedent(code)
    try:
        compile(code, "block", "exec")
    except SyntaxError:
        return code  # running it will show what is wrong
    return "\n".join([*given(f"{code}\n{claim}", instead or {}), code, claim])


def run_pieces(pieces: dict[str, str], python: str = sys.executable, **environment: str) -> dict[str, str | None]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FULLBORE_")}
    one_rank = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    done = subprocess.run(
        [python, Path(__file__).with_name("run_blocks.py")],
        input=json.dumps(pieces),
        env={**kept, **one_rank, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def block_piece(block: Block) -> str:
    return piece(on_cpu(block), CLAIMS.get(block.name, ""), INSTEAD.get(block.name))


def lookups() -> dict[str, str]:
    """Code that fails if a name in the text or a keyword of a call does not exist."""
    code: dict[str, str] = {}
    for page in PAGES:
        skipped = [block.code for block in blocks_of(page) if "not-run" in block.info]
        for text in [*spans(page), *skipped]:
            for name in sorted(dotted_names(text)):
                code[f"{page}: {name}"] = f"import pkgutil\npkgutil.resolve_name({name!r})"
            for name, keywords in sorted(calls(text).items()):
                code[f"{page}: {name}({', '.join(sorted(keywords))})"] = (
                    f"import inspect, pkgutil\ncalled = pkgutil.resolve_name({name!r})\n"
                    "try:\n    taken = inspect.signature(called).parameters\n"
                    "except ValueError:\n    taken = {}  # a torch function in C++, which has no signature\n"
                    "if taken and not any(one.kind == one.VAR_KEYWORD for one in taken.values()):\n"
                    f"    assert {keywords!r} <= set(taken), set(taken)"
                )
        for argument in sorted(trainer_arguments(page)):
            code[f"{page}: TrainingArguments {argument}"] = (
                "import inspect, transformers\n"
                "taken = inspect.signature(transformers.TrainingArguments).parameters\n"
                f"assert ({argument!r} in taken) == {argument not in NO_ARGUMENTS}"
            )
    return code


@pytest.fixture(scope="module")
def faults():
    pieces = {block.name: block_piece(block) for block in RUNNING if not block.needs_fullbore}
    pieces |= {f"fact: {name}": piece(code) for name, code in FACTS.items()}
    pieces |= {f"name: {name}": code for name, code in lookups().items()}
    return run_pieces(pieces)


@pytest.mark.long
@pytest.mark.parametrize("block", [b for b in RUNNING if not b.needs_fullbore], ids=lambda block: block.name)
def test_a_block_of_python_runs_and_does_what_the_page_says(faults, block):
    assert faults[block.name] is None, faults[block.name]


@pytest.mark.long
@pytest.mark.parametrize("fact", FACTS)
def test_what_the_pages_say_about_other_libraries_is_true_of_the_pinned_version(faults, fact):
    assert faults[f"fact: {fact}"] is None, faults[f"fact: {fact}"]


@pytest.mark.long
def test_only_known_blocks_need_a_gpu_and_their_names_exist_in_torch(faults):
    skipped = [block for block in BLOCKS if block.language == "python" and not block.runs]
    assert all(re.fullmatch(r"python not-run: \w.{15,}", block.info) for block in skipped)
    assert [block.name for block in skipped] == ["memory-pressure 1", "memory-pressure 2", "sync-bound 1"]
    for block in skipped:
        assert dotted_names(block.code), f"{block.name} names nothing that could be looked up"


def test_blocks_are_closed_and_in_a_language_that_is_checked():
    for page, text in PAGES.items():
        assert text.count("```") == 2 * len(blocks_of(page)), page
    assert {block.language for block in BLOCKS} == {"python", "sh"}


def test_every_name_given_to_blocks_is_used():
    used: set[str] = set()
    for definition in [*GIVEN.values(), *FACTS.values(), *CLAIMS.values(), *map(on_cpu, RUNNING)]:
        used |= set(names_in(textwrap.dedent(definition)))
    assert set(GIVEN) - used == set()
    names = {block.name for block in RUNNING}
    assert set(CLAIMS) | set(INSTEAD) <= names


# fullbore.data


@pytest.mark.long
@pytest.mark.parametrize("block", [b for b in RUNNING if b.needs_fullbore], ids=lambda block: block.name)
def test_a_block_for_the_loader_runs_on_photos(tmp_path, block):
    sys.path.insert(0, str(ROOT / "tests" / "loader"))
    from python_data import environment, make_photos, require, torchvision_python

    require()
    piece_of_it = block_piece(block)
    python = torchvision_python() if "torchvision" in piece_of_it else sys.executable
    photos = make_photos(tmp_path / "train", per_class=8)
    place = f"import os\nos.mkdir('photos')\nos.symlink({str(photos)!r}, 'photos/train')\n"
    faults = run_pieces({block.name: place + piece_of_it}, python, PYTHONPATH=environment()["PYTHONPATH"])
    assert faults == {block.name: None}, faults[block.name]


# Shell


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language == "sh"], ids=lambda block: block.name)
def test_a_block_of_shell_parses(block):
    done = subprocess.run(["bash", "-n"], input=block.code, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not re.search(r"<\w+[ >]", block.code), "a placeholder in angle brackets is a redirection"


@pytest.mark.parametrize("command", own_commands())
def test_our_own_commands_and_their_options_exist(command):
    words = shlex.split(command.split(" -- ")[0])
    called = [words[0]]
    help_text = subprocess.run([BINARY, *called, "--help"], capture_output=True, text=True)
    assert help_text.returncode == 0, help_text.stderr
    for option in (word.split("=")[0] for word in words if word.startswith("-")):
        assert re.search(rf"(^|[ ,]){option}\b", help_text.stdout), f"fullbore {called[0]} has no {option}"


# Text


@pytest.mark.long
@pytest.mark.parametrize("name", lookups())
def test_a_name_in_the_text_exists_in_the_pinned_version(faults, name):
    assert faults[f"name: {name}"] is None, faults[f"name: {name}"]


def test_names_and_arguments_in_the_text_are_looked_up():
    names = set(lookups())
    for expected in (
        "no-tensor-cores: torch.backends.cudnn.allow_tf32",
        "memory-pressure: torch.cuda.memory._dump_snapshot",
        "straggler: TrainingArguments train_sampling_strategy",
        "straggler: TrainingArguments group_by_length",
        "copy-bound: TrainingArguments accelerator_config",
        "comm-bound: lightning.pytorch.strategies.DDPStrategy(bucket_cap_mb, gradient_as_bucket_view)",
    ):
        assert expected in names, sorted(names)
    mentioned = set().union(*map(trainer_arguments, PAGES))
    assert set(NO_ARGUMENTS) <= mentioned, "an exception that no page needs"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_ends_with_its_sources(page):
    assert PAGES[page].count("\n## Sources\n") == 1
    sources = PAGES[page].split("\n## Sources\n")[1]
    assert "\n## " not in sources
    assert re.search(r"https://\S+", sources)


def test_files_that_are_named_as_sources_exist():
    named = {path for text in PAGES.values() for path in re.findall(rf"\b((?:{'|'.join(SOURCES)})/[\w/]+\.\w+)", text)}
    assert "torch/nn/parallel/distributed.py" in named and "c10/cuda/CUDAFunctions.h" in named
    missing = set()
    for path in named:
        package = "torch" if path.startswith("c10/") else path.split("/")[0]
        spec = importlib.util.find_spec(package)
        assert spec and spec.origin, package
        base = Path(spec.origin).parent
        candidates = (base.parent / path, base / "include" / path)
        if not any(candidate.exists() for candidate in candidates):
            missing.add(path)
    assert missing == set()
