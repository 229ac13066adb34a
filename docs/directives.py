"""Writes docs/directives.md: every directive with its description and its loops before and after, from the docstrings.

    python docs/directives.py            writes the page
    python docs/directives.py --check    fails if the page is not what the code says

A docstring shows its directive in a block `Example (PROGRAM):`. PROGRAM is one of the functions below; the lines before the
first statement that uses the directive are preparation.
"""

from __future__ import annotations

import ast
import inspect
import pathlib
import re
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import tedsl
from tedsl import te, tir
from tedsl.schedule.handles import Schedule
from tedsl.schedule.stage import Stage

PAGE = pathlib.Path(__file__).with_suffix(".md")
EXAMPLE = re.compile(r"^ *Example \((?P<program>\w+)\):\n(?P<code>(?: {4,}.*\n?|\n)+)", re.MULTILINE)
HEAD = """\
# The directives

What a schedule `s` can say, each with the loops that `tedsl.lower(s, args, simple_mode=True)` prints before and after it.
Made by `python docs/directives.py` from the docstrings of the code; the examples are run when it is made.

The programs of the examples:

```python
"""

Names = dict[str, Any]


def add() -> tuple[list[te.Tensor], Names]:
    """One stage: C[i] = A[i] + B[i]."""
    A, B = te.placeholder((16,), name="A"), te.placeholder((16,), name="B")
    C = te.compute((16,), lambda i: A[i] + B[i], name="C")
    return [A, B, C], {"i": C.op.axis[0]}


def add_n() -> tuple[list[te.Tensor], Names]:
    """The same for any size n."""
    n = te.size_var("n")
    A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    C = te.compute((n,), lambda i: A[i] + B[i], name="C")
    return [A, B, C], {"i": C.op.axis[0], "n": n}


def table() -> tuple[list[te.Tensor], Names]:
    """One stage with two loops: C[y, x] = A[y, x] * 2."""
    A = te.placeholder((8, 12), name="A")
    C = te.compute((8, 12), lambda y, x: A[y, x] * 2.0, name="C")
    return [A, C], {"y": C.op.axis[0], "x": C.op.axis[1]}


def chain() -> tuple[list[te.Tensor], Names]:
    """Two stages: B[y, x] = A[y, x] + 1, C[y, x] = B[y, x] * 2."""
    A = te.placeholder((8, 12), name="A")
    B = te.compute((8, 12), lambda y, x: A[y, x] + 1.0, name="B")
    C = te.compute((8, 12), lambda y, x: B[y, x] * 2.0, name="C")
    return [A, C], {"y": C.op.axis[0], "x": C.op.axis[1]}


def blur() -> tuple[list[te.Tensor], Names]:
    """A producer and a stencil over it: B[x] = A[x] * 2, C[x] = B[x] + B[x + 1] + B[x + 2]."""
    A = te.placeholder((18,), name="A")
    B = te.compute((18,), lambda x: A[x] * 2.0, name="B")
    C = te.compute((16,), lambda x: B[x] + B[x + 1] + B[x + 2], name="C")
    return [A, C], {"x": C.op.axis[0]}


def rowsum() -> tuple[list[te.Tensor], Names]:
    """A reduction: B[i] = sum of A[i, k] over k."""
    A = te.placeholder((8, 64), name="A")
    k = te.reduce_axis((0, 64), "k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    return [A, B], {"i": B.op.axis[0], "k": k}


def matmul() -> tuple[list[te.Tensor], Names]:
    """C[y, x] = sum of A[y, k] * B[k, x] over k."""
    A, B = te.placeholder((32, 32), name="A"), te.placeholder((32, 32), name="B")
    k = te.reduce_axis((0, 32), "k")
    C = te.compute((32, 32), lambda y, x: te.sum(A[y, k] * B[k, x], axis=k), name="C")
    return [A, B, C], {"y": C.op.axis[0], "x": C.op.axis[1], "k": k}


def window() -> tuple[list[te.Tensor], Names]:
    """Sums in windows, of every second one: C[x] = sum of A[x * 2 + k] * W[k] over k."""
    A, W = te.placeholder((17,), name="A"), te.placeholder((3,), name="W")
    k = te.reduce_axis((0, 3), "k")
    C = te.compute((8,), lambda x: te.sum(A[x * 2 + k] * W[k], axis=k), name="C")
    return [A, W, C], {"x": C.op.axis[0], "k": k}


def padded() -> tuple[list[te.Tensor], Names]:
    """Sums in windows over data with a border of zeros: C[x] = sum of P[x + k] * W[k] over k."""
    A, W = te.placeholder((16,), name="A"), te.placeholder((3,), name="W")
    k = te.reduce_axis((0, 3), "k")
    P = te.compute((18,), lambda x: te.if_then_else(te.all(x >= 1, x < 17), A[x - 1], 0.0), name="P")
    C = te.compute((16,), lambda x: te.sum(P[x + k] * W[k], axis=k), name="C")
    return [A, W, C], {"x": C.op.axis[0], "k": k}


def pool() -> tuple[list[te.Tensor], Names]:
    """Maxima in windows: P[y, x] = max of A[y + ky, x + kx] over ky and kx."""
    A = te.placeholder((6, 6), name="A")
    ky, kx = te.reduce_axis((0, 3), "ky"), te.reduce_axis((0, 3), "kx")
    P = te.compute((4, 4), lambda y, x: te.max(A[y + ky, x + kx], axis=[ky, kx]), name="P")
    return [A, P], {"y": P.op.axis[0], "ky": ky}


def launched() -> tuple[list[te.Tensor], Names]:
    """A stage of statements, and others for threads: C[x] = A[x] * 2."""
    def loops(ins: Any, outs: Any) -> Any:
        ib = tir.ir_builder.create()
        a, c = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 16, name="x") as x:
            c[x] = a[x] * 2.0
        return ib.get()

    def kernel(ins: Any, outs: Any, threads: int, shared: int) -> Any:
        ib = tir.ir_builder.create()
        a, c = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        block, thread = te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.x")
        ib.scope_attr(block, "thread_extent", 16 // threads)
        ib.scope_attr(thread, "thread_extent", threads)
        c[block * threads + thread] = a[block * threads + thread] * 2.0
        return ib.get()

    A = te.placeholder((16,), name="A")
    C = te.extern((16,), [A], loops, name="C", by_threads=kernel)
    return [A, C], {}


PROGRAMS: tuple[Callable[[], tuple[list[te.Tensor], Names]], ...] = (add, add_n, table, chain, blur, rowsum, matmul, window,
                                                                             padded, pool, launched)


def page() -> str:
    """The whole page."""
    by_name = {made.__name__: made for made in PROGRAMS}
    parts = [HEAD, "\n\n".join(program_source(made) for made in PROGRAMS), "\n```\n"]
    several = {name: made for name, made in vars(te.schedule).items() if name.startswith("AutoInline")}
    for title, held in (("Directives of a stage, `s[C]`", vars(Stage)), ("Directives of a schedule, `s`", vars(Schedule)),
                        ("Several directives at once, `te.schedule`", several)):
        parts.append(f"\n## {title}\n")
        for name, method in held.items():
            doc = inspect.getdoc(method) if inspect.isfunction(method) and not name.startswith("_") else None
            examples = list(EXAMPLE.finditer((doc or "") + "\n"))
            if doc and examples:
                parts.append(section(name, method, doc, examples, by_name))
    return "".join(parts)


def program_source(made: Callable[..., Any]) -> str:
    """A program as the page shows it."""
    lines = textwrap.dedent(inspect.getsource(made)).splitlines()
    title = ast.literal_eval(lines[1].strip())
    body = [line[4:] for line in lines[2:] if not line.startswith("    return")]
    return "\n".join([f"# {made.__name__}: {title}", *body])


def section(name: str, method: Callable[..., Any], doc: str, examples: list[re.Match[str]], programs: Names) -> str:
    """One directive: its signature, the text of its docstring, its examples."""
    given = [p for p in inspect.signature(method).parameters.values() if p.name != "self"]
    signature = inspect.Signature([p.replace(annotation=inspect.Parameter.empty) for p in given])
    said = textwrap.dedent(EXAMPLE.sub("", doc + "\n")).strip()
    shown = "".join(example_text(name, match["code"], programs[match["program"]]) for match in examples)
    return f"\n### `{name}{signature}`\n\n{said}\n{shown}"


def example_text(name: str, code: str, program: Callable[[], tuple[list[te.Tensor], Names]]) -> str:
    """The code of an example, and the loops before its first use of the directive `name` and after all of it."""
    code = textwrap.dedent(code).strip()
    first = next(part for part in ast.parse(code).body if f".{name}(" in ast.unparse(part))
    before = loops("\n".join(code.splitlines()[:first.lineno - 1]), program)
    after = loops(code, program)
    if before == after:
        raise ValueError(f"the example of {name} shows nothing: the loops are the same before and after it")
    return (f"\nOf the program `{program.__name__}`:\n\n```python\n{code}\n```\n"
            f"\nbefore\n\n```\n{before}\n```\n"
            f"\nafter\n\n```\n{after}\n```\n")


def loops(code: str, program: Callable[[], tuple[list[te.Tensor], Names]]) -> str:
    """The body of the function that `code` makes of `program`."""
    args, names = program()
    s = te.create_schedule(args[-1].op)
    graph = {tensor.name: tensor for tensor in (stage.op.output(0) for stage in s.stages)}
    exec(code, {"s": s, "te": te, "tedsl": tedsl, **graph, **names})  # our own docstrings
    text = str(tedsl.lower(s, args, simple_mode=True))
    body = text[text.index("buffer_map"):].split("\n", 1)[1].rsplit("\n}", 1)[0]
    return textwrap.dedent(body)


def main() -> int:
    made = page()
    if "--check" in sys.argv:
        if PAGE.read_text() != made:
            print(f"{PAGE.name} is not what the docstrings say: run python docs/directives.py")
            return 1
        return 0
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
