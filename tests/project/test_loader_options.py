"""Each option and transform of the loader has the same name in C++, as JSON, in Python and on its page."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "include" / "fullbore" / "loader"
DATA = ROOT / "python" / "fullbore" / "data"
PAGE = (ROOT / "docs" / "loader.md").read_text()

CLASS_OF_A_KIND = {"kind"}  # in Python the class says it: ImageFolder, WebDataset, ...
PYTHONS_ALONE = {"map", "map_processes", "device", "as_numpy", "progress"}


def members(struct: str, header: str = "options.h") -> list[str]:
    """The names of a struct's data members."""
    text = re.sub(r"//.*", "", (HEADERS / header).read_text())
    (body,) = re.findall(rf"struct {struct} {{(.*?)\n}};", text, re.DOTALL)
    lines = [line.strip() for line in body.split(";")]
    return [name for line in lines if not line.startswith("static ") for name in declared(line)]


def declared(declaration: str) -> list[str]:
    """For "int rank = 0, world_size = 1": both names."""
    without_values = re.sub(r"=\s*(\{[^}]*\}|[^,]*)", "", declaration)
    names = re.sub(r"<[^>]*>", "", without_values).split(",")
    return [name.split()[-1] for name in names if name.split()]


def json_members(struct: str, source: str = "options/options_json.cc") -> list[str]:
    text = (ROOT / "src" / "loader" / "core" / source).read_text()
    (body,) = re.findall(rf"void \w+\(MemberReader& \w+, {struct}& \w+\) {{(.*?)}}", text, re.DOTALL)
    return re.findall(r'\w+\.\w+\("(\w+)", \w+\.\1', body)  # each under its own name


def python(module: str) -> ast.Module:
    return ast.parse((DATA / f"{module}.py").read_text())


def arguments(module: str, name: str) -> list[str]:
    """The names of a constructor's arguments."""
    (made,) = [node for node in python(module).body if isinstance(node, ast.ClassDef) and node.name == name]
    init = next(node for node in made.body if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    return [argument.arg for argument in (*init.args.args[1:], *init.args.kwonlyargs)]


def transforms() -> list[str]:
    text = (HEADERS / "transforms.h").read_text()
    (variant,) = re.findall(r"using Transform = std::variant<(.*?)>;", text, re.DOTALL)
    return re.findall(r"\w+", variant)


def test_the_json_of_the_options_has_the_names_of_the_header():
    assert json_members("SourceOptions") == members("SourceOptions")
    assert json_members("LoaderOptions") == [
        name for name in members("LoaderOptions") if name not in ("source", "transforms")
    ]


@pytest.mark.parametrize("transform", transforms())
def test_the_json_of_a_transform_has_the_names_of_the_header(transform):
    source = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", transform).lower()
    assert json_members(transform, f"transform/{source}.cc") == members(transform, "transforms.h") != []


def test_python_has_the_names_of_the_header():
    in_cpp = set(members("SourceOptions") + members("LoaderOptions")) - {"source"}
    assert set(arguments("loader", "Loader")) - PYTHONS_ALONE == in_cpp - CLASS_OF_A_KIND


def test_python_passes_every_option_on():
    """The lists SOURCE and ENGINE, in the order of the header."""
    lists: dict[str, list[str]] = {"SOURCE": [], "ENGINE": []}
    for node in python("loader").body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id in lists:
            lists[target.id] += ast.literal_eval(node.value)
    assert lists["SOURCE"] == members("SourceOptions")
    assert lists["ENGINE"] == [name for name in members("LoaderOptions") if name != "source"]


def test_the_page_lists_every_option_once():
    section = PAGE.partition("\n## Options\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    everything = set(members("SourceOptions") + members("LoaderOptions")) - {"source"} | PYTHONS_ALONE
    assert sorted(listed) == sorted(everything)


def test_python_has_a_class_for_every_transform():
    classes = {node.name for node in python("transforms").body if isinstance(node, ast.ClassDef)}
    assert classes - {"Transform", "Compose"} == set(transforms())


def test_every_transform_can_come_from_torchvision():
    (known,) = [
        node.value for node in python("translate").body if isinstance(node, ast.AnnAssign) and node.target.id == "KNOWN"
    ]
    assert set(transforms()) <= {ast.literal_eval(key) for key in known.keys}


def test_the_page_describes_every_transform():
    section = PAGE.partition("\n## Transforms\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)", section, re.MULTILINE)) == set(transforms())
