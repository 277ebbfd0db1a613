"""Where `tune --patch` finds the arguments of a script: odd scripts, what may change in each, and what may not.

In a script, <0|4> stands where 0 has to become 4. Whatever else changes by a byte is a failure. The loader is made in
the line that has HERE in a comment, or else in the first one with "DataLoader(" in it.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "src" / "tune" / "answer" / "patch_script"
sys.path.insert(0, str(SOURCES))
from find_arguments import answer  # noqa: E402

PARSER = "import argparse\np = argparse.ArgumentParser()\n"
ARGS = "args = p.parse_args()\n"
TORCH = "from torch.utils.data import DataLoader\n"

CHANGED = {
    "a keyword": "dl = DataLoader(ds, batch_size=8, num_workers=<0|4>)\n",
    "a negative number": "dl = DataLoader(ds, num_workers=<-1|4>)\n",
    "a number with an underscore": "dl = DataLoader(ds, num_workers=<1_0|4>)\n",
    "a hexadecimal number": "dl = DataLoader(ds, num_workers=<0x2|4>)\n",
    "a value in parentheses": "dl = DataLoader(ds, num_workers=(\n    <0|4>  # none\n))\n",
    "a call over several lines": "dl = DataLoader(\n    ds,\n    num_workers = <0|4>,  # num_workers=0\n)\n",
    "a call continued by a backslash": "dl = DataLoader(ds, \\\n  num_workers=<0|4>)\n",
    "Windows' line ends": "x = 1\r\ndl = DataLoader(ds,\r\n    num_workers=<0|4>)\r\nprint(1)\r\n",
    "old Macintosh's line ends": "x = 1\rdl = DataLoader(ds,\r    num_workers=<0|4>)\rprint(1)\r",
    "line ends of several kinds": "x = 1\r\ny = 2\rz = 3\ndl = DataLoader(ds, num_workers=<0|4>)",
    "tabs": "if 1:\n\tdl = DataLoader(ds,\n\t\tnum_workers=<0|4>)\n",
    "a form feed": "\x0c\nx = 1\n\x0cdl = DataLoader(ds, num_workers=<0|4>)\n",
    "a vertical tab in a text": "x = '\x0b\x1c\x85\u2028'\ndl = DataLoader(ds, num_workers=<0|4>)\n",
    "letters of two bytes before it": "dl = DataLoader('äöü€𝄞', num_workers=<0|4>)\n",
    "names of two bytes": "größe = DataLoader(daten, name='ß', num_workers=<0|4>); é = 1\n",
    "no end of line": "dl = DataLoader(ds, num_workers=<0|4>)",
    "a text that looks like it": "dl = DataLoader(ds, name='x, num_workers=0, y', num_workers=<0|4>)\n",
    "a text of several lines that looks like it": 's = """\nDataLoader(ds, num_workers=0)\n"""\n'
    "dl = DataLoader(ds, num_workers=<0|4>)  # HERE\n",
    "a comment that looks like it": "dl = DataLoader(ds,  # was num_workers=0, slow\n    num_workers=<0|4>)\n",
    "a parenthesis in a text": "dl = DataLoader(ds, sep='(', num_workers=<0|4>)\nval = DataLoader(v, num_workers=0)\n",
    "another loader behind it": "dl = DataLoader(ds, num_workers=<0|4>); x = Cached(num_workers=0)\n",
    "a call within the call": "dl = DataLoader(Cached(ds, num_workers=0), num_workers=<0|4>)\n",
    "a call around the call": "dl = prepare(DataLoader(ds, num_workers=<0|4>), num_workers=0)\n",
    "a call around the call, some lines above": "dl = prepare(\n  DataLoader(ds, num_workers=<0|4>), num_workers=0)\n",
    "an f-string": "log(f'{dict(num_workers=0)}'); dl = DataLoader(ds, num_workers=<0|4>)\n",
    "a loader in an f-string": "log(f'{DataLoader(num_workers=0)}'); dl = DataLoader(ds, num_workers=<0|4>)\n",
    "a lambda's default": "dl = make(lambda num_workers=0: 1, num_workers=<0|4>)  # HERE\n",
    "a decorator": "@loader(num_workers=<0|4>)  # HERE\ndef f(): pass\n",
    "a longer name": "dl = DataLoader(ds, my_num_workers=0, num_workers=<0|4>)\n",
    "a comparison": "assert num_workers==0, DataLoader(ds, num_workers=<0|4>)\n",
    "a walrus around it": "if (dl := DataLoader(ds, num_workers=<0|4>)): pass\n",
    "a comprehension around it": "dls = {s: DataLoader(d[s], num_workers=<0|4>) for s in ('train', 'val')}\n",
    "a module's name in parts": "dl = (torch.utils\n      .data\n      .DataLoader(ds, num_workers=<0|4>))  # HERE\n",
    "arguments by their places": "dl = DataLoader(ds, 8, True, None, None, <0|4>)\n",
    "a list of arguments behind": "dl = DataLoader(ds, *rest, num_workers=<0|4>)\n",
    "a dictionary in the call": "dl = DataLoader(ds, **dict(num_workers=<0|4>))\n",
    "a dictionary of keywords": "kw = {'batch_size': 8, 'num_workers': <0|4>}\ndl = DataLoader(ds, **kw)\n",
    "a keyword beside a dictionary": "dl = DataLoader(ds, num_workers=<0|4>, **whatever())\n",
    "a key of a dictionary": "c = dict(nw=<0|4>, lr=1)\ndl = DataLoader(ds, num_workers=c['nw'])\n",
    "a dictionary's get": "c = {'nw': <0|4>}\ndl = DataLoader(ds, num_workers=c.get('nw', 1))\n",
    "a constant": "WORKERS = <0|4>\ndl = DataLoader(ds, num_workers=WORKERS)\n",
    "a constant with its type": "WORKERS: int = <0|4>\ndl = DataLoader(ds, num_workers=WORKERS)\n",
    "a constant by way of another": "N = <0|4>\nWORKERS = N\ndl = DataLoader(ds, num_workers=WORKERS)\n",
    "a constant among several": "BATCH, WORKERS = 64, <0|4>\ndl = DataLoader(ds, BATCH, num_workers=WORKERS)\n",
    "a constant of two loaders": "WORKERS = <0|4>\ndl = DataLoader(ds, num_workers=WORKERS)\n"
    "val = DataLoader(v, num_workers=WORKERS)\n",
    "a constant seen from a function": "WORKERS = <0|4>\ndef f():\n    return DataLoader(ds, num_workers=WORKERS)\n",
    "another function's variable of that name": "W = <0|4>\ndef g():\n    W = 1\ndl = DataLoader(ds, num_workers=W)\n",
    "a variable of the function": "workers = 9\ndef f():\n    workers = <0|4>\n"
    "    return DataLoader(ds, num_workers=workers)\n",
    "a name of a comprehension": "W = <0|4>\nx = [W for W in range(3)]\ndl = DataLoader(ds, num_workers=W)\n",
    "a default of a parameter": "def make(ds, workers=<0|4>):\n  return DataLoader(ds, num_workers=workers)\nmake(1)\n",
    "a default by name only": "def make(d, *, workers=<0|4>):\n  return DataLoader(d, num_workers=workers)\nmake(1)\n",
    "a default that all calls take": "def make(ds, workers=<0|4>):\n    return DataLoader(ds, num_workers=workers)\n"
    "make(1)\nmake(2)\n",
    "what the only call gives": "def make(ds, workers=0):\n    return DataLoader(ds, num_workers=workers)\n"
    "make(1, <2|4>)\n",
    "what the only call gives by name": "def make(ds, workers):\n    return DataLoader(ds, num_workers=workers)\n"
    "make(1, workers=<2|4>)\n",
    "a method's parameter": "class A:\n    def make(self, workers=<0|4>):\n"
    "        return DataLoader(ds, num_workers=workers)\nA().make()\n",
    "an attribute": "class A:\n    def __init__(self, workers):\n        self.workers = workers\n    def make(self):\n"
    "        return DataLoader(ds, num_workers=self.workers)\nA(<0|4>)\n",
    "a class's constant": "class Config:\n    workers = <0|4>\ndl = DataLoader(ds, num_workers=Config.workers)\n",
    "a dataclass": "@dataclass\nclass Config:\n    workers: int = <0|4>\nc = Config()\n"
    "dl = DataLoader(ds, num_workers=c.workers)\n",
    "a dataclass that is given it": "@dataclass\nclass Config:\n    workers: int = 0\nc = Config(workers=<2|4>)\n"
    "dl = DataLoader(ds, num_workers=c.workers)\n",
    "partial": "make = functools.partial(DataLoader, num_workers=<0|4>)\ndl = make(ds)  # HERE\n",
    "an option": PARSER + "p.add_argument('--workers', type=int, default=<0|4>)\n" + ARGS
    + "dl = DataLoader(ds, num_workers=args.workers)\n",
    "an option with a short name first": PARSER + "p.add_argument('-j', '--workers', default=<0|4>, type=int)\n" + ARGS
    + "dl = DataLoader(ds, num_workers=args.workers)\n",
    "an option with dashes": PARSER + "p.add_argument('--num-workers', type=int, default=<0|4>)\n" + ARGS
    + "dl = DataLoader(ds, num_workers=args.num_workers)\n",
    "an option with a dest": PARSER + "p.add_argument('--jobs', dest='workers', default=<0|4>)\n" + ARGS
    + "dl = DataLoader(ds, num_workers=args.workers)\n",
    "an option whose default is a text": PARSER + "p.add_argument('--workers', type=int, default=<'0'|'4'>)\n" + ARGS
    + "dl = DataLoader(ds, num_workers=args.workers)\n",
    "an option whose default is a constant": "WORKERS = <0|4>\n" + PARSER
    + "p.add_argument('--workers', type=int, default=WORKERS)\n" + ARGS
    + "dl = DataLoader(ds, num_workers=args.workers)\n",
    "an option of several lines": PARSER + "p.add_argument(\n    '--workers',\n    type=int,\n    default=<0|4>,\n"
    "    help='default=0',\n)\n" + ARGS + "dl = DataLoader(ds, num_workers=args.workers)\n",
    "an option of a group": PARSER + "g = p.add_argument_group('data')\ng.add_argument('--workers', default=<0|4>)\n"
    + ARGS + "dl = DataLoader(ds, num_workers=args.workers)\n",
    "an option handed to main": PARSER + "p.add_argument('--workers', type=int, default=<0|4>)\n"
    "def main(args):\n    return DataLoader(ds, num_workers=args.workers)\n"
    "if __name__ == '__main__':\n    args = p.parse_args()\n    main(args)\n",
    "an option of a function that parses": PARSER + "def parse():\n    p.add_argument('--workers', default=<0|4>)\n"
    "    return p.parse_args()\nopt = parse()\ndl = DataLoader(ds, num_workers=opt.workers)\n",
    "an option beside unknown ones": PARSER + "p.add_argument('--workers', default=<0|4>)\n"
    "args, rest = p.parse_known_args()\ndl = DataLoader(ds, num_workers=args.workers)\n",
    "an option in vars": PARSER + "p.add_argument('--workers', default=<0|4>)\n" + ARGS
    + "dl = DataLoader(ds, num_workers=vars(args)['workers'])\n",
    "an option of a dictionary made by vars": PARSER + "p.add_argument('--workers', default=<0|4>)\n"
    "opt = vars(p.parse_args())\ndl = DataLoader(ds, num_workers=opt['workers'])\n",
    "an option by getattr": PARSER + "p.add_argument('--workers', default=<0|4>)\n" + ARGS
    + "dl = DataLoader(ds, num_workers=getattr(args, 'workers', 1))\n",
    "an option by way of a variable": PARSER + "p.add_argument('--workers', default=<0|4>)\n" + ARGS
    + "workers = int(args.workers)\ndl = DataLoader(ds, num_workers=workers)\n",
    "an option that an object keeps": PARSER + "p.add_argument('--workers', default=<0|4>)\n" + ARGS
    + "class A:\n    def __init__(self):\n        self.args = args\n    def make(self):\n"
    "        return DataLoader(ds, num_workers=self.args.workers)\n",
    "an option of click": "@click.command()\n@click.option('--workers', default=<0|4>)\ndef main(workers):\n"
    "    return DataLoader(ds, num_workers=workers)\n",
    "an argument that is not there": TORCH + "dl = DataLoader(ds, batch_size=8<|, num_workers=4>)\n",
    "an argument that is not there, behind a comma": TORCH + "dl = DataLoader(\n    ds<|, num_workers=4>,  # no\n)\n",
}  # fmt: skip

BY_HAND = {
    "two loaders in a line": ("a, b = DataLoader(x, num_workers=0), DataLoader(y, num_workers=0)\n", "several calls"),
    "a choice of loaders": ("dl = DataLoader(x, num_workers=0) if z else DataLoader(y, num_workers=0)\n", "several"),
    "no call": ("dl = 1  # HERE\n", "no call"),
    "a choice": ("dl = DataLoader(ds, num_workers=0 if debug else 4)\n", "is computed"),
    "a sum": ("dl = DataLoader(ds, num_workers=0 + more)\n", "is computed"),
    "a call": ("dl = DataLoader(ds, num_workers=os.cpu_count())\n", "os.cpu_count()"),
    "the environment": ("dl = DataLoader(ds, num_workers=int(os.environ['N']))\n", "cannot be seen"),
    "a list with a star": ("dl = DataLoader(ds, *rest)\n", "with *"),
    "unknown keywords": ("def f(**kw):\n    return DataLoader(ds, **kw)\n", "in this file"),
    "a dictionary that is changed": (
        "kw = {'num_workers': 0}\nif cuda:\n    kw.update(num_workers=1)\ndl = DataLoader(ds, **kw)\n",
        "may be changed there",
    ),
    "a dictionary that is stored to": (
        "kw = {'num_workers': 0}\nkw['num_workers'] = 2\ndl = DataLoader(ds, **kw)\n",
        "may be changed there",
    ),
    "a dictionary made of others": ("dl = DataLoader(ds, **{**a, 'num_workers': 0})\n", "not plain"),
    "a constant that is assigned twice": (
        "W = 0\nif cuda:\n    W = 2\ndl = DataLoader(ds, num_workers=W)\n",
        "assigned 2 times",
    ),
    "a constant that is added to": ("W = 0\nW += 2\ndl = DataLoader(ds, num_workers=W)\n", "assigned 2 times"),
    "a constant that a function assigns": (
        "W = 0\ndef f():\n    global W\n    W = 2\ndl = DataLoader(ds, num_workers=W)\n",
        "assigned 2 times",
    ),
    "two constants that are one": ("SEED = W = 0\ndl = DataLoader(ds, num_workers=W)\n", "no"),
    "a constant that means other things": (
        "ZERO = 0\nseed(ZERO)\ndl = DataLoader(ds, num_workers=ZERO)\n",
        "used for other things",
    ),
    "a constant of another file": ("from config import W\ndl = DataLoader(ds, num_workers=W)\n", "in this file"),
    "a constant that nobody assigns": ("dl = DataLoader(ds, num_workers=W)\n", "not assigned in this file"),
    "a constant before an import of all": (
        "W = 0\nfrom config import *\ndl = DataLoader(ds, num_workers=W)\n",
        "import of *",
    ),
    "a loop's variable": ("for w in (0, 2):\n    dl = DataLoader(ds, num_workers=w)\n", "in this file"),
    "calls with several values": (
        "def make(d, workers):\n    return DataLoader(d, num_workers=workers)\nmake(1, 0)\nmake(2, 3)\n",
        "several values",
    ),
    "calls of which one takes the default": (
        "def make(d, workers=0):\n    return DataLoader(d, num_workers=workers)\nmake(1)\nmake(2, 3)\n",
        "others do not",
    ),
    "a function that is handed on": (
        "def make(d, workers=0):\n    return DataLoader(d, num_workers=workers)\nmake(1)\nrun(make)\n",
        "not only called",
    ),
    "a function that nobody calls": (
        "def make(d, workers=0):\n    return DataLoader(d, num_workers=workers)\n",
        "nothing calls",
    ),
    "a recursion without an end": ("def f(n):\n    DataLoader(d, num_workers=n)\n    f(n)\n", "too many names"),
    "an attribute that is assigned elsewhere": (
        PARSER + "p.add_argument('--workers', default=0)\n" + ARGS + "args.workers //= 2\n"
        "dl = DataLoader(ds, num_workers=args.workers)\n",
        "is assigned there",
    ),
    "an attribute set by name": (
        PARSER + "p.add_argument('--workers', default=0)\n" + ARGS + "setattr(args, 'workers', 2)\n"
        "dl = DataLoader(ds, num_workers=args.workers)\n",
        "is assigned there",
    ),
    "an option of two parsers": (
        PARSER + "p.add_argument('--workers', default=0)\nq.add_argument('--workers', default=1)\n" + ARGS
        + "dl = DataLoader(ds, num_workers=args.workers)\n",
        "2 options",
    ),
    "an option without a default": (
        PARSER + "p.add_argument('--workers', type=int)\n" + ARGS + "dl = DataLoader(ds, num_workers=args.workers)\n",
        "no default",
    ),
    "an option with other defaults": (
        PARSER + "p.add_argument('--workers', default=0)\np.set_defaults(workers=3)\n" + ARGS
        + "dl = DataLoader(ds, num_workers=args.workers)\n",
        "set_defaults",
    ),
    "an option of another file": (
        "args = options.parse()\ndl = DataLoader(ds, num_workers=args.workers)\n",
        "cannot be seen",
    ),
    "an argument that is not there": ("dl = DataLoader(ds)\n", "no num_workers in plain sight"),
    "another library's loader": ("from jax_dl import DataLoader\ndl = DataLoader(ds)\n", "no num_workers"),
    "a generator as the only argument": (TORCH + "dl = DataLoader(x for x in y)\n", "could not be made safely"),
}  # fmt: skip


def both(marked: str) -> tuple[str, str]:
    mark = r"<([^<>|]*)\|([^<>|]*)>"
    return re.sub(mark, r"\1", marked), re.sub(mark, r"\2", marked)


def line_of(script: str) -> int:
    lines = re.split("\r\n|\r|\n", script)
    marked = [i for i, line in enumerate(lines, 1) if "HERE" in line]
    return marked[0] if marked else next(i for i, line in enumerate(lines, 1) if "DataLoader(" in line)


def patched(data: bytes, said: dict) -> bytes:
    for begin, end, text in reversed(said["edits"]):
        data = data[:begin] + text.encode() + data[end:]
    return data


def found(script: str, encoding: str = "utf-8", command: tuple[str, ...] = ("python", "train.py"), **settings) -> dict:
    said = answer(script.encode(encoding), line_of(script), settings or {"num_workers": 4}, list(command))
    return {**said, "after": patched(script.encode(encoding), said).decode(encoding)}


@pytest.mark.parametrize("name", CHANGED)
def test_exactly_the_value_is_changed(name):
    before, after = both(CHANGED[name])
    said = found(before)
    assert (said["after"], said["by_hand"]) == (after, [])
    assert before != after


@pytest.mark.parametrize("name", BY_HAND)
def test_what_is_not_sure_is_left_to_a_person_with_the_line(name):
    script, why = BY_HAND[name]
    said = found(script)
    assert said["edits"] == []
    ((setting, line, reason),) = said["by_hand"]
    assert setting == "num_workers"
    assert why in reason
    assert 1 <= line <= script.count("\n")


@pytest.mark.parametrize(
    ("encoding", "first"),
    [
        ("utf-8-sig", ""),
        ("latin-1", "# -*- coding: latin-1 -*-\n"),
        ("cp1252", "# vim: set fileencoding=cp1252 :\n"),
        ("euc-jp", "#!/usr/bin/python\n# coding: euc-jp\n"),
        ("shift_jis", "# coding: shift_jis\n"),
    ],
)
def test_a_script_keeps_its_encoding(encoding, first):
    letters = "日本語表" if encoding in ("euc-jp", "shift_jis") else "äé"
    before, after = both(first + f"x = '{letters}'\ndl = DataLoader('{letters}', num_workers=<0|4>)  # {letters}\n")
    assert found(before, encoding)["after"] == after


def test_what_the_command_gives_is_not_changed_in_the_script():
    script, _ = both(CHANGED["an option with a short name first"])
    for word in ("--workers", "--workers=2", "--work", "-j2", "-j"):
        said = found(script, command=("python", "train.py", word))
        assert said["edits"] == []
        assert f"the command itself says {word}" in said["by_hand"][0][2]
    assert found(script, command=("python", "train.py", "--workers-per-node", "2"))["edits"]


def test_several_settings_change_in_one_patch_and_one_that_is_not_sure_holds_no_other_up():
    before, after = both(
        "B = <8|64>\ndl = DataLoader(ds, B, num_workers=<0|4>, pin_memory=<False|True>, prefetch_factor=p)\n"
    )
    said = found(before, num_workers=4, batch_size=64, pin_memory=True, prefetch_factor=3)
    assert said["after"] == after
    assert [setting for setting, _, _ in said["by_hand"]] == ["prefetch_factor"]


def test_one_constant_is_not_two_settings():
    said = found("W = 2\ndl = DataLoader(ds, num_workers=W, prefetch_factor=W)\n", num_workers=4, prefetch_factor=4)
    assert said["edits"] == []


def test_what_is_as_it_should_be_is_no_change():
    said = found("dl = DataLoader(ds, num_workers=4)\n")
    assert (said["edits"], said["by_hand"]) == ([], [])


# Answers for a list of scripts at once, in a Python of any version.
ANSWERS = """
import json, sys
sys.path.insert(0, sys.argv[1])
from find_arguments import answer
print(json.dumps([answer(text.encode(), line, {"num_workers": 4}, []) for text, line in json.load(sys.stdin)]))
"""


def pythons() -> list[str]:
    versions = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    found = sorted(versions.glob("3.*/bin/python"))
    named = filter(None, os.environ.get("FULLBORE_TEST_PYTHONS", "").split(":"))
    return [sys.executable, *(str(p) for p in found if int(p.parts[-3].split(".")[1]) >= 9), *named]


@pytest.mark.parametrize("python", pythons())
def test_every_python_says_the_same_and_runs_nothing_of_the_script(python, tmp_path):
    texts = [both("open('ran', 'w').close()\n" + marked) for marked in CHANGED.values()]
    texts += [("open('ran', 'w').close()\n" + script,) * 2 for script, _ in BY_HAND.values()]
    done = subprocess.run(
        [python, "-c", ANSWERS, SOURCES],
        input=json.dumps([(before, line_of(before)) for before, _ in texts]),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    for (before, after), said in zip(texts, json.loads(done.stdout)):
        assert patched(before.encode(), said).decode() == after
        assert bool(said["by_hand"]) == (before == after)
    assert list(tmp_path.iterdir()) == []
