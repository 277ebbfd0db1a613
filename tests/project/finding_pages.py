"""Parses the pages of docs/findings: blocks of code, names and commands in the text.

The info string of a block says how the tests use it:

    python            executed as it is
    python cuda       needs a GPU: executed with the CPU in its place (finding_claims.ON_CPU)
    python not-run: WHY   cannot be executed without a GPU: compiled, and each dotted name in it looked up in torch
    sh                parsed by bash; the options of our own commands are looked up in their --help
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = {path.stem: path.read_text() for path in sorted((ROOT / "docs" / "findings").glob("*.md"))}

# What the prose calls by a bare name. Calls are checked against the signature.
CALLED = {
    "torch": "torch",
    "nn": "torch.nn",
    "DDP": "torch.nn.parallel.DistributedDataParallel",
    "DataLoader": "torch.utils.data.DataLoader",
    "DistributedSampler": "torch.utils.data.DistributedSampler",
    "GradScaler": "torch.amp.GradScaler",
    "AsyncCheckpointIO": "lightning.pytorch.plugins.io.AsyncCheckpointIO",
    "DDPStrategy": "lightning.pytorch.strategies.DDPStrategy",
    "Trainer": "lightning.pytorch.Trainer",
    "Tuner": "lightning.pytorch.tuner.Tuner",
    "DataLoaderConfiguration": "accelerate.utils.DataLoaderConfiguration",
    "TrainingArguments": "transformers.TrainingArguments",
}


class Block(NamedTuple):
    name: str  # "comm-bound 2": the second block of the page
    page: str
    info: str  # the words after the fence
    code: str

    @property
    def language(self) -> str:
        return self.info.split()[0]

    @property
    def runs(self) -> bool:
        return self.info in ("python", "python cuda")

    @property
    def needs_fullbore(self) -> bool:
        return "fullbore." in self.code


def blocks_of(page: str) -> list[Block]:
    found = re.findall(r"^```([^\n]+)\n(.*?)^```$", PAGES[page], re.MULTILINE | re.DOTALL)
    return [Block(f"{page} {number}", page, *block) for number, block in enumerate(found, 1)]


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


class FreeNames(ast.NodeVisitor):
    """Names that are used before they are defined, in the order in which Python meets them."""

    EVALUATED_FIRST = ("value", "iter", "generators", "args", "items")

    def __init__(self) -> None:
        self.free: list[str] = []
        self.made: set[str] = set()

    def generic_visit(self, node: ast.AST) -> None:
        fields = sorted(ast.iter_fields(node), key=lambda field: field[0] not in self.EVALUATED_FIRST)
        for _, value in fields:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    self.visit(child)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and node.id not in {*self.free, *self.made}:
            self.free.append(node.id)
        elif isinstance(node.ctx, ast.Store):
            self.made.add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(ast.Name(getattr(node.target, "id", ""), ast.Load()))
        self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> None:
        self.made.add(node.arg)

    def visit_alias(self, node: ast.alias) -> None:
        self.made.add(node.asname or node.name.partition(".")[0])

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.made.add(node.name)
        self.generic_visit(node)


def names_in(code: str) -> list[str]:
    """The names that the code uses without defining them."""
    visitor = FreeNames()
    visitor.visit(ast.parse(code))
    return visitor.free


def prose(page: str) -> str:
    return re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.MULTILINE | re.DOTALL)


def spans(page: str) -> list[str]:
    """The texts in backquotes, without line breaks."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose(page))]


def tree_of(code: str) -> ast.AST | None:
    code = re.sub(r"^with (.*):$", r"\1", code)
    try:
        return ast.parse(code)
    except SyntaxError:
        return None


def dotted(node: ast.AST) -> str | None:
    """The dotted name of a node, such as "torch.cuda.synchronize"."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return before and f"{before}.{node.attr}"
    return None


def resolved(name: str) -> str | None:
    root, _, rest = name.partition(".")
    return ".".join(filter(None, (CALLED[root], rest))) if root in CALLED else None


def dotted_names(code: str) -> set[str]:
    """The longest dotted names in the code whose root is known, in full."""
    tree = tree_of(code)
    found = {resolved(dotted(node) or "") for node in ast.walk(tree) if isinstance(node, ast.expr)} if tree else set()
    names = {name for name in found if name}
    return {name for name in names if not any(other.startswith(f"{name}.") for other in names)}


def calls(code: str) -> dict[str, set[str]]:
    """The functions that the code passes keywords to, with the keywords."""
    found: dict[str, set[str]] = {}
    tree = tree_of(code)
    for node in ast.walk(tree) if tree else ():
        name = resolved(dotted(node.func) or "") if isinstance(node, ast.Call) else None
        if name:
            found.setdefault(name, set()).update(keyword.arg for keyword in node.keywords if keyword.arg)
    return {name: keywords for name, keywords in found.items() if keywords}


def trainer_arguments(page: str) -> set[str]:
    """Bare names after "Hugging Face", up to where another framework is named."""
    others = r"Lightning|JAX|Keras|TensorFlow|accelerate|\n\n|\n- "
    names: set[str] = set()
    for text in re.findall(rf"Hugging\s+Face(.*?)(?={others}|\Z)", prose(page), re.DOTALL):
        for span in re.findall(r"`([^`]+)`", text):
            bare = re.fullmatch(r"([a-z]\w+)(=.*)?", " ".join(span.split()))
            names |= {bare[1]} if bare else set()
    return names


def own_commands() -> list[str]:
    """Every call of our program, in shell blocks and in the text."""
    texts = [block.code for block in BLOCKS if block.language == "sh"]
    texts += [span for page in PAGES for span in spans(page)]
    return sorted({call.strip() for text in texts for call in re.findall(r"\bfullbore ([a-z][^;|#&\n]*)", text)})
