"""How a program takes its settings. People do it in several ways, and so do the exam's programs:

constants    NUM_WORKERS = 0 at the top of the script; a change edits that line
arguments    argparse: --num-workers 2
overrides    CONFIG = {"num_workers": 0}, and `script.py num_workers=2`
environment  a dataclass whose fields the environment overrides: NUM_WORKERS=2
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

STYLES = ("constants", "arguments", "overrides", "environment")


@dataclass(frozen=True)
class Invocation:
    script: str
    arguments: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    style: str
    values: dict[str, int | float | str | bool]

    def reference(self, name: str) -> str:
        """The expression by which the script reads the setting."""
        return {
            "constants": name.upper(),
            "arguments": f"args.{name}",
            "overrides": f'CONFIG["{name}"]',
            "environment": f"cfg.{name}",
        }[self.style]

    @property
    def imports(self) -> tuple[str, ...]:
        return {
            "constants": (),
            "arguments": ("import argparse",),
            "overrides": ("import sys",),
            "environment": ("import os", "from dataclasses import dataclass, fields"),
        }[self.style]

    def definition(self) -> str:
        """The lines at the top of the script that define the settings."""
        return getattr(self, f"_define_{self.style}")()

    def apply(self, script: str, changed: dict[str, int | float | str | bool]) -> Invocation:
        if unknown := set(changed) - set(self.values):
            raise KeyError(f"the program has no setting {', '.join(sorted(unknown))}; it has {', '.join(self.values)}")
        if self.style == "constants":
            for name, value in changed.items():
                line = f"{name.upper()} = {value!r}"
                script = re.sub(rf"^{name.upper()} = .*$", lambda _, line=line: line, script, flags=re.MULTILINE)
            return Invocation(script)
        if self.style == "arguments":
            return Invocation(script, [word for name, value in changed.items() for word in self._flag(name, value)])
        if self.style == "overrides":
            return Invocation(script, [f"{name}={plain(value)}" for name, value in changed.items()])
        return Invocation(script, environment={name.upper(): plain(value) for name, value in changed.items()})

    def _flag(self, name: str, value: int | float | str | bool) -> list[str]:
        flag = "--" + name.replace("_", "-")
        default = self.values[name]
        if isinstance(default, bool):
            if bool(value) == default:
                return []
            return ["--no-" + flag[2:]] if default else [flag]
        return [flag, plain(value)]

    def _define_constants(self) -> str:
        return "\n".join(f"{name.upper()} = {value!r}" for name, value in self.values.items())

    def _define_arguments(self) -> str:
        lines = ["parser = argparse.ArgumentParser()"]
        for name, value in self.values.items():
            flag = "--" + name.replace("_", "-")
            if value is True:
                lines.append(f'parser.add_argument("--no-{flag[2:]}", dest="{name}", action="store_false")')
            elif value is False:
                lines.append(f'parser.add_argument("{flag}", action="store_true")')
            else:
                lines.append(f'parser.add_argument("{flag}", type={type(value).__name__}, default={value!r})')
        return "\n".join([*lines, "args = parser.parse_args()"])

    def _define_overrides(self) -> str:
        rows = "\n".join(f'    "{name}": {spelled(value)},' for name, value in self.values.items())
        return f"""CONFIG = {{
{rows}
}}
for override in sys.argv[1:]:
    key, value = override.split("=", 1)
    CONFIG[key] = type(CONFIG[key])(value)"""

    def _define_environment(self) -> str:
        def hint(value: int | float | str | bool) -> str:
            return "int" if isinstance(value, bool) else type(value).__name__

        rows = "\n".join(f"    {name}: {hint(value)} = {spelled(value)}" for name, value in self.values.items())
        return f"""@dataclass
class Config:
{rows}


cfg = Config()
for field in fields(cfg):
    if field.name.upper() in os.environ:
        setattr(cfg, field.name, type(getattr(cfg, field.name))(os.environ[field.name.upper()]))"""


def plain(value: int | float | str | bool) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def spelled(value: int | float | str | bool) -> str:
    """As source; switches are 0 and 1 where they may come as text, because bool("0") is True."""
    return repr(int(value)) if isinstance(value, bool) else repr(value)
