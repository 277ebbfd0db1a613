"""What a script's names stand for: each with its bindings, each node of the tree with its parent and its scope."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class ByHand(Exception):
    """Why a person has to decide, and where that shows."""

    def __init__(self, node: ast.AST, why: str) -> None:
        super().__init__(why)
        self.line = getattr(node, "lineno", 0)
        self.why = why


class Binding(NamedTuple):
    """`value` is the expression of an assignment, the function of a parameter, or the class; None for all others."""

    kind: str  # "value", "item", "parameter", "def", "class", "other"
    node: ast.AST
    value: Any = None
    index: int = 0  # of an item of a tuple


class Scope:
    def __init__(self, node: ast.AST, parent: Scope | None) -> None:
        self.node, self.parent = node, parent
        self.bindings: dict[str, list[Binding]] = {}
        self.elsewhere: dict[str, Scope] = {}  # names that `global` and `nonlocal` declare

    def bind(self, name: str, binding: Binding) -> None:
        self.elsewhere.get(name, self).bindings.setdefault(name, []).append(binding)

    def has(self, name: str) -> Scope | None:
        """The scope that the name belongs to, as seen from here."""
        scope: Scope | None = self.elsewhere.get(name, self)
        while scope is not None:
            is_visible = scope is self or not isinstance(scope.node, ast.ClassDef)
            if is_visible and name in scope.bindings:
                return scope
            scope = scope.parent
        return None


class Names(ast.NodeVisitor):
    """Which name is bound where, and each node's parent and scope."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.parent: dict[ast.AST, ast.AST] = {}
        self.scope_of: dict[ast.AST, Scope] = {}
        self.module = self.scope = Scope(tree, None)
        self.scopes: dict[ast.AST, Scope] = {tree: self.module}
        self.visit(tree)
        self.all = list(self.scope_of)

    def visit(self, node: ast.AST) -> None:
        self.scope_of[node] = self.scope
        for child in ast.iter_child_nodes(node):
            self.parent[child] = node
        super().visit(node)

    def inside(self, node: ast.AST, parts: list[Any]) -> None:
        outer, self.scope = self.scope, Scope(node, self.scope)
        self.scopes[node] = self.scope
        if isinstance(node, FUNCTIONS):
            for arg in parameters(node):
                self.scope.bind(arg.arg, Binding("parameter", arg, node))
        for part in parts:
            self.visit(part)
        self.scope = outer

    def function(self, node: Any) -> None:
        arguments = node.args
        outside = [*arguments.defaults, *(each for each in arguments.kw_defaults if each is not None)]
        if not isinstance(node, ast.Lambda):
            self.scope.bind(node.name, Binding("def", node, node))
            outside += node.decorator_list
        for each in outside:
            self.visit(each)
        for child in ast.walk(arguments):
            for each in ast.iter_child_nodes(child):
                self.parent.setdefault(each, child)
        self.inside(node, [node.body] if isinstance(node, ast.Lambda) else node.body)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = function

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scope.bind(node.name, Binding("class", node, node))
        for each in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(each)
        self.inside(node, node.body)

    def comprehension(self, node: Any) -> None:
        elements = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self.inside(node, [*node.generators, *elements])

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension

    def visit_Global(self, node: Any) -> None:
        for name in node.names:
            parent = self.scope.parent or self.module
            place = self.module if isinstance(node, ast.Global) else parent.has(name)
            self.scope.elsewhere[name] = place or self.module

    visit_Nonlocal = visit_Global

    def visit_Assign(self, node: ast.Assign) -> None:
        self.assigned(node.targets[0] if len(node.targets) == 1 else None, node.value)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assigned(node.target, node.value)
        self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        scope = self.scope
        while isinstance(scope.node, COMPREHENSIONS) and scope.parent is not None:
            scope = scope.parent
        scope.bind(node.target.id, Binding("value", node.target, node.value))
        self.visit(node.value)

    def assigned(self, target: Any, value: ast.expr) -> None:
        """Names get their values here; whatever else is stored to is seen at the name itself."""
        if isinstance(target, ast.Name):
            self.scope.bind(target.id, Binding("value", target, value))
        elif isinstance(target, ast.Tuple) and all(isinstance(each, ast.Name) for each in target.elts):
            values = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else None
            for i, each in enumerate(target.elts):
                kind = "item" if values is None or isinstance(values[i], ast.Starred) else "value"
                self.scope.bind(each.id, Binding(kind, each, value if kind == "item" else values[i], i))

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            return
        place = self.scope.elsewhere.get(node.id, self.scope)
        if all(each.node is not node for each in place.bindings.get(node.id, [])):
            self.scope.bind(node.id, Binding("other", node))

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.alias) and node.name != "*":
            imports = self.parent[node]
            self.scope.bind((node.asname or node.name).split(".")[0], Binding("other", imports))
        elif isinstance(node, ast.ExceptHandler) and node.name:
            self.scope.bind(node.name, Binding("other", node))
        elif type(node).__name__ in ("MatchAs", "MatchStar", "MatchMapping"):
            name = getattr(node, "name", None) or getattr(node, "rest", None)
            if name:
                self.scope.bind(name, Binding("other", node))
        super().generic_visit(node)


def parameters(function: Any) -> list[ast.arg]:
    arguments = function.args
    several = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return [*getattr(arguments, "posonlyargs", []), *arguments.args, *arguments.kwonlyargs, *several]


def last_name(node: ast.AST) -> str:
    """Of "torch.utils.data.DataLoader", the last part."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def text_of(node: Any) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def keyword_of(call: ast.Call, name: str) -> ast.expr | None:
    return next((each.value for each in call.keywords if each.arg == name), None)


def is_literal(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str, type(None)))


def shown(node: ast.AST) -> str:
    """As a person wrote it, or nearly."""
    text = ast.unparse(node) if hasattr(ast, "unparse") else type(node).__name__
    return text if len(text) <= 60 else text[:57] + "..."


def default_of(function: Any, parameter: ast.AST) -> ast.expr | None:
    arguments = function.args
    ordered = [*getattr(arguments, "posonlyargs", []), *arguments.args]
    if parameter in ordered:
        place = ordered.index(parameter) - len(ordered) + len(arguments.defaults)
        return arguments.defaults[place] if place >= 0 else None
    return arguments.kw_defaults[arguments.kwonlyargs.index(parameter)]


def plain(call: ast.Call) -> bool:
    return all(each.arg is not None for each in call.keywords)


def is_read(node: Any) -> bool:
    return isinstance(node.ctx, ast.Load)
