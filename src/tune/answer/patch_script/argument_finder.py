"""Follows an argument of a call to the literal that says what it is: through constants, parameters and options."""

from __future__ import annotations

import ast
import re
from typing import Any

from script_names import (
    Binding,
    ByHand,
    Names,
    default_of,
    is_literal,
    is_read,
    keyword_of,
    last_name,
    parameters,
    plain,
    shown,
    text_of,
)

POSITIONS = {"batch_size": 1, "num_workers": 5, "pin_memory": 7}  # among DataLoader's arguments
# What names of variables and options have in them that stand for the setting, and for nothing else.
WORDS = {
    "num_workers": r"worker|n_?cpu|(^|_)(nw|jobs?|nproc)(_|$)",
    "batch_size": r"batch|(^|_)(bs|bsz)(_|$)",
    "pin_memory": r"pin",
    "persistent_workers": r"persist",
    "prefetch_factor": r"prefetch",
}
PARSES = ("parse_args", "parse_known_args", "parse_intermixed_args", "parse_known_intermixed_args")
MOST_STEPS = 30  # from name to name


class Finder:
    """Follows the arguments of one call. One for each setting."""

    def __init__(self, names: Names, setting: str, command: list[str]) -> None:
        self.names, self.setting, self.command = names, setting, command
        self.steps = 0

    def argument(self, call: ast.Call) -> ast.expr | None:
        """The literal that says what this argument is; None where the call does not have it."""
        given = self.given(call)
        return None if given is None else self.value(given)

    def given(self, call: ast.Call) -> ast.expr | None:
        own = keyword_of(call, self.setting)
        if own is not None:
            return own
        for each in call.keywords:
            found = self.entry(each.value, self.setting) if each.arg is None else None
            if found is not None:
                return found
        place = POSITIONS.get(self.setting)
        if last_name(call.func) != "DataLoader" or place is None:
            return self.partial(call)
        if any(isinstance(each, ast.Starred) for each in call.args[: place + 1]):
            raise ByHand(call, "the call gets a list of arguments with *")
        return call.args[place] if len(call.args) > place else None

    def partial(self, call: ast.Call) -> ast.expr | None:
        """Of `make = functools.partial(DataLoader, num_workers=0)`, called as `make(data)`."""
        scope = self.names.scope_of[call].has(last_name(call.func)) if isinstance(call.func, ast.Name) else None
        bindings = scope.bindings[last_name(call.func)] if scope is not None else []
        made = bindings[0].value if len(bindings) == 1 and bindings[0].kind == "value" else None
        is_partial = isinstance(made, ast.Call) and last_name(made.func) == "partial" and made.args
        if not is_partial or not last_name(made.args[0]).endswith("DataLoader"):
            return None
        return keyword_of(made, self.setting)

    # ---- values ----

    def value(self, node: ast.expr) -> ast.expr:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise ByHand(node, "it goes through too many names")
        if is_literal(node):
            return node
        if isinstance(node, ast.Name):
            return self.of_name(node)
        if isinstance(node, ast.Attribute):
            return self.of_attribute(node, node.value, node.attr)
        if isinstance(node, ast.Subscript):
            key = node.slice.value if type(node.slice).__name__ == "Index" else node.slice  # Index: up to Python 3.8
            if text_of(key) is not None:
                return self.of_key(node, node.value, text_of(key) or "")
        if isinstance(node, ast.Call):
            return self.of_call(node)
        raise ByHand(node, f"`{shown(node)}` is computed")

    def of_call(self, node: ast.Call) -> ast.expr:
        name, own = last_name(node.func), isinstance(node.func, ast.Name)
        is_ours = own and self.names.scope_of[node].has(name) is not None
        if own and not is_ours and not node.keywords:
            if name in ("int", "bool") and len(node.args) == 1:
                return self.value(node.args[0])
            if name == "getattr" and len(node.args) in (2, 3) and text_of(node.args[1]) is not None:
                return self.of_attribute(node, node.args[0], text_of(node.args[1]) or "")
        if isinstance(node.func, ast.Attribute) and name == "get" and node.args and text_of(node.args[0]) is not None:
            return self.of_key(node, node.func.value, text_of(node.args[0]) or "")
        raise ByHand(node, f"`{shown(node)}` is computed")

    def the_binding(self, node: ast.Name) -> Binding:
        scope = self.names.scope_of[node].has(node.id)
        if scope is None:
            raise ByHand(node, f"`{node.id}` is not assigned in this file")
        bindings = scope.bindings[node.id]
        if len(bindings) > 1:
            raise ByHand(bindings[-1].node, f"`{node.id}` is assigned {len(bindings)} times")
        stars = [each for each in self.of_type(ast.ImportFrom) if each.names[0].name == "*"]
        if scope is self.names.module and any(each.lineno > bindings[0].node.lineno for each in stars):
            raise ByHand(bindings[0].node, f"an import of * may replace `{node.id}`")
        return bindings[0]

    def of_name(self, node: ast.Name) -> ast.expr:
        binding = self.the_binding(node)
        if binding.kind == "parameter":
            return self.of_parameter(node, binding.value, binding.node)
        if binding.kind != "value":
            raise ByHand(binding.node, f"`{node.id}` has no single value in this file")
        self.expect_meant(node.id, self.uses_of(node), binding.node)
        return self.value(binding.value)

    def uses_of(self, node: ast.Name) -> list[ast.Name]:
        """Wherever what this name stands for is read."""
        scope_of = self.names.scope_of
        scope = scope_of[node].has(node.id)
        named = [each for each in self.of_type(ast.Name) if each.id == node.id and is_read(each)]
        return [each for each in named if scope_of[each].has(each.id) is scope]

    def expect_meant(self, name: str, uses: list[Any], node: ast.AST) -> None:
        """A name that does not speak of the setting, and is used for other things, may mean something else, too."""
        if len(uses) > 1 and not re.search(WORDS.get(self.setting, "$^"), name.lower().replace("-", "_")):
            raise ByHand(node, f"`{name}` is used for other things, too")

    def of_type(self, kind: Any) -> list[Any]:
        return [each for each in self.names.all if isinstance(each, kind)]

    # ---- parameters ----

    def of_parameter(self, node: ast.Name, function: Any, parameter: ast.AST) -> ast.expr:
        if not isinstance(function, ast.Lambda):
            for each in function.decorator_list:
                if isinstance(each, ast.Call) and last_name(each.func) == "option" and node.id in self.dests(each):
                    return self.of_option(node, node.id)
        given = self.given_to(node, function, parameter)
        if all(each is None for each in given):
            default = default_of(function, parameter)
            if default is None:
                raise ByHand(node, f"nothing gives `{node.id}` a value in this file")
            return self.value(default)
        if any(each is None for each in given):
            raise ByHand(function, f"some calls of `{function.name}` give `{node.id}`, others do not")
        found = {id(value): value for value in (self.value(each) for each in given if each is not None)}
        if len(found) > 1:
            raise ByHand(function, f"`{function.name}` is called with several values of `{node.id}`")
        return next(iter(found.values()))

    def given_to(self, node: ast.Name, function: Any, parameter: ast.AST) -> list[ast.expr | None]:
        """What each call gives for this parameter, None for its default."""
        arguments = function.args
        if isinstance(function, ast.Lambda) or parameter in (arguments.vararg, arguments.kwarg):
            raise ByHand(node, f"where `{node.id}` comes from is not clear")
        known = ("staticmethod", "classmethod", "main", "record", "no_grad", "inference_mode")
        if any(last_name(getattr(each, "func", each)) not in known for each in function.decorator_list):
            raise ByHand(function, f"what `{function.name}` gets is up to its decorator")
        calls = self.calls_of(node, function)
        ordered = [*getattr(arguments, "posonlyargs", []), *arguments.args]
        place = ordered.index(parameter) if parameter in ordered else None
        is_static = any(last_name(each) == "staticmethod" for each in function.decorator_list)
        if place is not None and isinstance(self.names.scope_of[function].node, ast.ClassDef) and not is_static:
            place -= 1
        given: list[ast.expr | None] = []
        for call in calls:
            has_more = any(isinstance(each, ast.Starred) for each in call.args)
            if has_more or any(each.arg is None for each in call.keywords):
                raise ByHand(call, f"`{function.name}` gets arguments with *")
            by_place = call.args[place] if place is not None and 0 <= place < len(call.args) else None
            given.append(by_place if by_place is not None else keyword_of(call, node.id))
        return given

    def calls_of(self, node: ast.Name, function: Any) -> list[ast.Call]:
        home = self.names.scope_of[function]
        if len(home.bindings.get(function.name, [])) != 1:
            raise ByHand(function, f"`{function.name}` is defined several times")
        uses: list[Any]
        if isinstance(home.node, ast.ClassDef) and function.name != "__init__":
            uses = [each for each in self.of_type(ast.Attribute) if each.attr == function.name]
        else:
            name = home.node.name if isinstance(home.node, ast.ClassDef) else function.name
            uses = [each for each in self.of_type(ast.Name) if each.id == name and is_read(each)]
        calls = [self.names.parent[each] for each in uses]
        for use, call in zip(uses, calls):
            if not isinstance(call, ast.Call) or call.func is not use:
                raise ByHand(use, f"`{function.name}` is not only called, so what it gets is not known")
        if not calls:
            raise ByHand(function, f"nothing calls `{function.name}` in this file")
        return calls  # type: ignore[return-value]

    # ---- attributes ----

    def stores_of(self, name: str) -> list[ast.AST]:
        written = [each for each in self.of_type(ast.Attribute) if each.attr == name and not is_read(each)]
        for call in self.of_type(ast.Call):
            if last_name(call.func) in ("setattr", "delattr") and len(call.args) > 1 and text_of(call.args[1]) == name:
                written.append(call)
        return written

    def of_attribute(self, node: ast.expr, owner: ast.expr, name: str) -> ast.expr:
        stores = self.stores_of(name)
        if len(stores) > 1:
            raise ByHand(stores[-1], f"`.{name}` is assigned {len(stores)} times")
        if stores:
            return self.of_store(node, owner, stores[0], name)
        if self.is_namespace(owner):
            return self.of_option(node, name)
        binding = self.the_binding(owner) if isinstance(owner, ast.Name) else None
        made = binding.value if binding is not None and binding.kind == "value" else None
        of_class = self.class_of(owner if binding is not None and binding.kind == "class" else made)
        if of_class is None and binding is not None and binding.kind == "parameter":
            of_class = self.own_class(owner, binding)
        if of_class is None:
            raise ByHand(node, f"where `{shown(node)}` comes from cannot be seen in this file")
        if isinstance(made, ast.Call):
            given = keyword_of(made, name)
            if given is not None:
                return self.value(given)
            if made.args or made.keywords:
                raise ByHand(made, f"`{of_class.name}` is made with arguments")
        bindings = self.names.scopes[of_class].bindings.get(name, [])
        if len(bindings) != 1 or bindings[0].kind != "value":
            raise ByHand(of_class, f"`{of_class.name}.{name}` is not a single value")
        self.expect_meant(name, [each for each in self.of_type(ast.Attribute) if each.attr == name], bindings[0].node)
        return self.value(bindings[0].value)

    def of_store(self, node: ast.expr, owner: ast.expr, store: ast.AST, name: str) -> ast.expr:
        """`self.workers`, where the one assignment to it is `self.workers = workers`."""
        statement = self.names.parent[store]
        is_same = isinstance(store, ast.Attribute) and ast.dump(store.value) == ast.dump(owner)
        is_own = is_same and isinstance(owner, ast.Name) and self.is_own(owner) and self.is_own(store.value)
        if not is_own or not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
            raise ByHand(store, f"`.{name}` is assigned there")
        if isinstance(statement, ast.Assign) and (len(statement.targets) > 1 or statement.targets[0] is not store):
            raise ByHand(store, f"`.{name}` is assigned together with others")
        return self.value(statement.value)

    def is_own(self, owner: Any) -> bool:
        """Whether this is the `self` of a method."""
        scope = self.names.scope_of[owner].has(owner.id)
        bindings = scope.bindings[owner.id] if scope is not None else []
        return len(bindings) == 1 and self.own_class(owner, bindings[0]) is not None

    def own_class(self, owner: Any, binding: Binding) -> ast.ClassDef | None:
        if binding.kind != "parameter" or isinstance(binding.value, ast.Lambda):
            return None
        home, known = self.names.scope_of[binding.value].node, parameters(binding.value)
        return home if isinstance(home, ast.ClassDef) and known and known[0] is binding.node else None

    def class_of(self, node: Any) -> ast.ClassDef | None:
        """The class of this file that a name stands for, or that a call makes one of."""
        name = node.func if isinstance(node, ast.Call) else node
        scope = self.names.scope_of[name].has(name.id) if isinstance(name, ast.Name) else None
        bindings = scope.bindings[name.id] if scope is not None else []
        return bindings[0].value if len(bindings) == 1 and bindings[0].kind == "class" else None

    # ---- options of a command line ----

    def is_namespace(self, node: Any, depth: int = 0) -> bool:
        """Whether this is what argparse made of the command line."""
        if depth > MOST_STEPS:
            return False
        if isinstance(node, ast.Call):
            if last_name(node.func) in PARSES:
                return "known" not in last_name(node.func)
            scope = self.names.scope_of[node].has(node.func.id) if isinstance(node.func, ast.Name) else None
            bindings = scope.bindings[last_name(node.func)] if scope is not None else []
            if len(bindings) != 1 or bindings[0].kind != "def":
                return False
            returns = [each for each in ast.walk(bindings[0].value) if isinstance(each, ast.Return)]
            return bool(returns) and all(self.is_namespace(each.value, depth + 1) for each in returns)
        if isinstance(node, ast.Attribute):
            stores = self.stores_of(node.attr)
            statement = self.names.parent[stores[0]] if len(stores) == 1 else None
            return isinstance(statement, ast.Assign) and self.is_namespace(statement.value, depth + 1)
        if not isinstance(node, ast.Name):
            return False
        scope = self.names.scope_of[node].has(node.id)
        bindings = scope.bindings[node.id] if scope is not None else []
        return len(bindings) == 1 and self.binds_namespace(node.id, bindings[0], depth + 1)

    def binds_namespace(self, name: str, binding: Binding, depth: int) -> bool:
        if binding.kind == "value":
            return self.is_namespace(binding.value, depth)
        if binding.kind == "item":
            is_known = isinstance(binding.value, ast.Call) and last_name(binding.value.func) in PARSES
            return is_known and binding.index == 0 and "known" in last_name(binding.value.func)
        if binding.kind != "parameter":
            return False
        # Handed from function to function under one name, which is never anything else in this file.
        others = [
            each for scope in self.names.scopes.values() for each in scope.bindings.get(name, []) if each is not binding
        ]
        made = [each for each in others if each.kind != "parameter"]
        return bool(made) and all(self.binds_namespace(name, each, depth + 1) for each in made)

    def dests(self, call: ast.Call) -> list[str]:
        """What `add_argument` calls its value: the word of dest=, or of the first long option, or of the first."""
        words = [text_of(each) or "" for each in call.args]
        own = text_of(keyword_of(call, "dest"))
        if last_name(call.func) == "option":  # click: a bare word is the name
            own = next((word for word in words if word and not word.startswith("-")), own)
        if own is not None:
            return [own]
        named = next((word for word in words if word.startswith("--")), words[0] if words else "")
        return [named.lstrip("-").replace("-", "_")]

    def of_option(self, node: ast.expr, dest: str) -> ast.expr:
        calls = self.of_type(ast.Call)
        options = [each for each in calls if last_name(each.func) in ("add_argument", "option")]
        options = [each for each in options if dest in self.dests(each)]
        if len(options) != 1:
            count = f"{len(options)} options" if options else "no option"
            raise ByHand(options[-1] if options else node, f"{count} of this file's command line gives `{dest}`")
        option = options[0]
        for each in calls:
            if last_name(each.func) == "set_defaults" and (keyword_of(each, dest) is not None or not plain(each)):
                raise ByHand(each, f"set_defaults may give `{dest}` another value")
        words = [text_of(each) or "" for each in option.args]
        said = next((word for word in self.command if any(gives(word, flag) for flag in words)), None)
        if said is not None:
            raise ByHand(option, f"the command itself says {said}: change it there")
        default = keyword_of(option, "default")
        is_required = keyword_of(option, "required")
        if default is None or is_required is not None or not plain(option):
            raise ByHand(option, f"the option of `{dest}` has no default that could be changed")
        uses = [each for each in self.of_type(ast.Attribute) if each.attr == dest]
        self.expect_meant(dest, uses, option)
        return self.value(default)

    # ---- dictionaries ----

    def of_key(self, node: ast.expr, owner: ast.expr, key: str) -> ast.expr:
        inside = self.dictionary(owner)
        if isinstance(inside, ast.Call) and last_name(inside.func) == "vars" and len(inside.args) == 1:
            return self.of_attribute(node, inside.args[0], key)
        if isinstance(inside, ast.Attribute) and inside.attr == "__dict__":
            return self.of_attribute(node, inside.value, key)
        found = self.entry(owner, key)
        if found is None:
            raise ByHand(node, f"the value of `{shown(node)}` cannot be seen in this file")
        return self.value(found)

    def dictionary(self, node: ast.expr) -> ast.expr:
        """The expression that makes it, where a name stands for one that nobody changes."""
        self.steps += 1
        if not isinstance(node, ast.Name) or self.steps > MOST_STEPS:
            return node
        binding = self.the_binding(node)
        if binding.kind != "value":
            raise ByHand(binding.node, f"what `{node.id}` holds cannot be seen in this file")
        for use in self.uses_of(node):
            if not self.only_reads(use):
                raise ByHand(use, f"`{node.id}` may be changed there")
        return self.dictionary(binding.value)

    def only_reads(self, use: ast.Name) -> bool:
        parent = self.names.parent[use]
        if isinstance(parent, ast.Subscript):
            return parent.value is use and is_read(parent)
        if isinstance(parent, ast.Attribute):
            return parent.attr in ("get", "items", "keys", "values", "copy")
        if isinstance(parent, ast.Call):
            return last_name(parent.func) in ("print", "len", "str", "repr", "dict", "pprint", "dumps")
        return isinstance(parent, (ast.keyword, ast.FormattedValue)) and getattr(parent, "arg", None) is None

    def entry(self, node: ast.expr, key: str) -> ast.expr | None:
        """What a dictionary has for this key; None where it is seen to have nothing."""
        made = self.dictionary(node)
        if isinstance(made, ast.Dict):
            found = [value for each, value in zip(made.keys, made.values) if text_of(each) == key]
            is_plain = all(text_of(each) is not None for each in made.keys)
        elif isinstance(made, ast.Call) and last_name(made.func) == "dict" and not made.args:
            found = [each.value for each in made.keywords if each.arg == key]
            is_plain = plain(made)
        else:
            raise ByHand(made, f"what `{shown(node)}` holds cannot be seen in this file")
        if len(found) > 1 or not is_plain:
            raise ByHand(made, f"what `{shown(node)}` holds for {key} is not plain")
        return found[0] if found else None


def gives(word: str, flag: str) -> bool:
    """Whether a word of a command line gives this option: abbreviated, or with its value in it, too."""
    if flag.startswith("--"):
        return word.startswith("--") and len(word) > 2 and flag.startswith(word.split("=")[0])
    return flag.startswith("-") and word.startswith(flag) and not word.startswith("--")
