"""What a setting may be is judged twice: by the program, for --set, and by the hook, for whoever sets the variable."""

from __future__ import annotations

import pathlib
import re
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "hook"))
from hook_package import load  # noqa: E402

TEXTS = [
    *("0", "1", "2", "-1", "1024", "1025", "8191", "8192", "1000000", "1000001", "100000000", "100000001", "1" * 30),
    *("1.5", "0.0", "1e3", "inf", "nan", "true", "false", "True", "many", "fp32", "bf16", "fused", "foreach", "None"),
    *("0-3", "0-3,8", "3-1", "0-", "-", ",", "0,,1", "0-9999999999", "+1", "1_0", "\N{ARABIC-INDIC DIGIT ONE}", "0x1"),
]


def value_of(text: str):
    """As the program reads it: a number, true or false, else a text."""
    if text in ("true", "True", "false", "False"):
        return text in ("true", "True")
    if re.fullmatch("-?[0-9]{1,18}", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?([0-9.]+(e[0-9]+)?|inf|nan)", text) else text


@pytest.mark.parametrize("name", sorted(load("core.settings").KNOWN))
def test_both_tables_agree_on_every_value(fullbore, name):
    misfit = load("core.settings").KNOWN[name]
    for text in TEXTS:
        # What comes after it is wrong in any case, and only said where this one is legal.
        done = fullbore.call("measure", "--set", f"{name}={text}", "--set", "sentinel=1", "--", "true")
        assert done.code == 2
        is_legal = "'sentinel' is not a setting" in done.stderr
        assert is_legal == (misfit(value_of(text)) == ""), (text, done.stderr, misfit(value_of(text)))
