"""Writes docs/operators.md: a table of every operator of topi, from the code.

    python docs/operators.py            writes the page
    python docs/operators.py --check    fails if the page is not what the code says

Properties that a signature does not show are tried: each operator is called as in docs/operator_examples.py, for each dtype and
layout.
"""

from __future__ import annotations

import functools
import inspect
import pathlib
import re
import sys
import warnings
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from operator_examples import EXAMPLES, LAYOUTS, plain

import topi
from tedsl import te
from tedsl.errors import TedslError
from tedsl.target import Target
from topi.schedules.schedule import schedule_with
from topi.schedules.table import CPU, GPU, Rule

warnings.filterwarnings("ignore", message=".* takes floats")  # what is cast is supported

PAGE = pathlib.Path(__file__).with_suffix(".md")
FLOATS, INTEGERS = ("float16", "bfloat16", "float32", "float64"), ("int8", "int32", "int64", "uint8")
ROOMS = ((topi, ""), (topi.nn, "nn."), (topi.image, "image."), (topi.vision, "vision."), (topi.random, "random."),
         (topi.sparse, "sparse."))
DTYPES, WORDS = (*FLOATS, *INTEGERS, "bool"), ("uint32", "uint64")
TARGETS: dict[str, tuple[dict[type, Rule], str]] = {"generic": ({}, "llvm"), "x86": (CPU, "llvm -mcpu=haswell"),
                                                    "cuda": (GPU, "cuda")}
HEAD = """\
# The operators

Every operator of `topi` and of its `nn`, `image`, `vision`, `random` and `sparse`. Made by `python docs/operators.py` from
their code: what a signature does not say was tried with a small call of each, for each dtype and layout.

- record: the types of what the operator leaves in `op.info` of its stages, which schedules read (`topi/kinds.py`); tag: TVM's.
- dtypes: those that it takes for its data. "floats" are {floats},
  "integers" {integers}, "numbers" both, "any" those and bool.
- layouts: those that its parameter `layout` takes, or the one in its name.
- generic, x86, cuda: the schedules of `topi/schedules/table.py` that the stages of its call got, by module; "plain" are plain
  loops. All three scheduled each of the {count}.
"""
COLUMNS = ("operator", "", "record", "tag", "dtypes", "layouts", *TARGETS)


def page() -> str:
    """The whole page."""
    parts, count = [], 0
    for room, prefix in ROOMS:
        parts.append(f"\n## {room.__name__}\n\n{line(COLUMNS)}{line(['---'] * len(COLUMNS))}")
        for name, operator in operators(room):
            parts.append(line(Trial(name, operator, prefix).row(aliases(room, name, operator))))
            count += 1
    return HEAD.format(floats=", ".join(FLOATS), integers=", ".join(INTEGERS), count=count) + "".join(parts)


def line(cells: Iterable[str]) -> str:
    """A row of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def operators(room: ModuleType) -> list[tuple[str, Callable[..., Any]]]:
    """The operators that a module exports, by the names that they were defined with, without the helpers of topi.nn.utils."""
    found = [(name, getattr(room, name)) for name in sorted(room.__all__)]
    return [(name, one) for name, one in found
            if inspect.isfunction(one) and one.__name__ == name and not one.__module__.endswith(".utils")]


def aliases(room: ModuleType, name: str, operator: Callable[..., Any]) -> list[str]:
    """The other names of an operator."""
    return sorted(other for other in room.__all__ if other != name and getattr(room, other) is operator)


class Trial:
    """An operator, and its properties as found by calling it."""

    def __init__(self, name: str, operator: Callable[..., Any], prefix: str) -> None:
        self.name, self.operator = name, operator
        self.example = EXAMPLES.get(prefix + name) or plain(operator, matrices(operator))
        made = {dtype: self.made(dtype) for dtype in DTYPES}
        if not any(made.values()):
            made = {dtype: self.made(dtype) for dtype in WORDS}
        self.dtypes = [dtype for dtype in made if made[dtype]]
        if not self.dtypes:
            raise SystemExit(f"docs/operator_examples.py needs a call of {prefix}{name}")
        self.chosen = "float32" if "float32" in self.dtypes else self.dtypes[0]
        self.outs = made[self.chosen]

    def made(self, dtype: str, *layout: str) -> list[te.Tensor]:
        """The results of the example, none where the operator refuses it."""
        def new(*shape: int) -> te.Tensor:
            return te.placeholder(shape, dtype, name="data")

        try:
            found = self.example(new, *layout)
        except TedslError:
            return []
        return list(found) if isinstance(found, (list, tuple)) else [found]

    def row(self, others: list[str]) -> list[str]:
        """The cells of its line."""
        given = inspect.signature(self.operator)
        shown = [one.replace(annotation=inspect.Parameter.empty) for one in given.parameters.values()]
        signature = re.sub(r"<function (\w+) at \w+>", r"\1", f"`{self.name}{inspect.Signature(shown)}`")
        also = f" Also {', '.join(f'`{other}`' for other in others)}." if others else ""
        ops = [stage.op for stage in te.create_schedule([out.op for out in self.outs]).stages]
        records = dict.fromkeys(type(op.info).__name__ for op in reversed(ops) if getattr(op, "info", None) is not None)
        tags = dict.fromkeys(op.tag for op in reversed(ops) if getattr(op, "tag", ""))
        return [signature, first_sentence(self.operator) + also, ", ".join(records), ", ".join(tags), grouped(self.dtypes),
                ", ".join(self.layouts()), *[self.rules(target) for target in TARGETS]]

    def layouts(self) -> list[str]:
        """The accepted values of `layout`, or the layout in the operator's name."""
        given = inspect.signature(self.example).parameters
        if "layout" in given:
            candidates = LAYOUTS[given["layout"].default]
            return [layout for layout in candidates if self.made(self.chosen, layout)]
        suffix = self.name.rpartition("_")[2].lower()
        return [layout for family in LAYOUTS.values() for layout in family if layout.lower() == suffix and self.name != layout]

    def rules(self, target: str) -> str:
        """The schedules that its stages get on `target`."""
        used: list[str] = []

        def watched(rule: Rule) -> Rule:
            @functools.wraps(rule)
            def call(kernel: Any) -> None:
                used.append(rule.__module__.rpartition(".")[2])
                rule(kernel)

            return call

        rules, words = TARGETS[target]
        schedule_with(self.outs, {kind: watched(rule) for kind, rule in rules.items()}, Target(words))
        return ", ".join(dict.fromkeys(used)) or "plain"


def matrices(operator: Callable[..., Any]) -> int:
    """The number of required parameters of an operator."""
    return sum(one.default is inspect.Parameter.empty for one in inspect.signature(operator).parameters.values())


def first_sentence(operator: Callable[..., Any]) -> str:
    """The first sentence of an operator's docstring."""
    opening = " ".join((inspect.getdoc(operator) or "").split("\n\n")[0].split())
    return re.split(r"(?<=[^.]\.)\s", opening)[0]


def grouped(dtypes: list[str]) -> str:
    """A list of dtypes in words."""
    left, words = list(dtypes), []
    for group, word in ((DTYPES, "any"), ((*FLOATS, *INTEGERS), "numbers"), (FLOATS, "floats"), (INTEGERS, "integers")):
        if set(group) <= set(left):
            words.append(word)
            left = [dtype for dtype in left if dtype not in group]
    return ", ".join([*words, *left])


def main() -> int:
    made = page()
    if "--check" in sys.argv:
        if PAGE.read_text() != made:
            print(f"{PAGE.name} is not what the code says: run python docs/operators.py")
            return 1
        return 0
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
