"""Operators as C: element-wise ones are written by a macro for arrays of a rank, products of matrices by a function, and so are
operators on two operands of which one is broadcast, or a number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from tedsl.graph.value import Node, Spec, Value

TYPES = {"float32": "float", "float64": "double", **{f"{sign}int{bits}": f"{sign}int{bits}_t"
                                                    for sign in ("", "u") for bits in (8, 16, 32, 64)}}
BINARY = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
# Of an element x; as expressions of C that are right for NaN, too.
UNARY = {"negative": "-x", "nn.relu": "x < 0 ? 0 : x"}
MATMUL = "matmul"


def c_type(spec: Spec) -> str:
    """The type of the elements."""
    return TYPES[str(spec.dtype)]


def computing_type(spec: Spec) -> str:
    """The type in which the operators of C compute: unsigned for integers, whose sums wrap."""
    dtype = str(spec.dtype)
    return TYPES[dtype] if dtype.startswith("float") else "uint64_t" if dtype.endswith("64") else "uint32_t"


def writes(node: Node) -> bool:
    """Whether there is C for a node that calls an operator."""
    specs = [value.spec for value in (*node.inputs, *node.outputs)]
    if not all(spec.is_static and str(spec.dtype) in TYPES for spec in specs):
        return False
    if node.attributes and not (node.operator in BINARY and all(map(_is_exact, node.attributes.values(), specs[-1:]))):
        return False
    if len({str(spec.dtype) for spec in specs}) > 1:
        return False
    is_float = str(specs[0].dtype).startswith("float")
    if node.operator == MATMUL:
        return is_float and [len(spec.shape) for spec in specs] == [2, 2, 2]
    return (node.operator in UNARY and is_float) or (node.operator in BINARY and (is_float or node.operator != "divide"))


def _is_exact(number: Any, spec: Spec) -> bool:
    """Whether an attribute is a number of the type of the elements."""
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return False
    if str(spec.dtype).startswith("float"):
        return True
    limits = numpy.iinfo(str(spec.dtype))
    return isinstance(number, int) and limits.min <= number <= limits.max


def is_plain(node: Node) -> bool:
    """Whether all operands have the shape of the result."""
    return not node.attributes and all(value.shape == node.outputs[0].shape for value in node.inputs)


def macro_name(kind: str, rank: int) -> str:
    return f"CSOURCE_{kind}_OP_{rank}D"


def binary_macro(rank: int) -> str:
    """The macro of an operator on two arrays of a rank."""
    body = "out[k] = (p_TYPE_)((p_WIDE_)a[k] p_OP_ (p_WIDE_)b[k]);"
    head = "static void p_ID_(const p_TYPE_ *a, const p_TYPE_ *b, p_TYPE_ *out)"
    return _macro("BINARY", rank, ["p_ID_", "p_OP_", "p_TYPE_", "p_WIDE_"], head, body)


def unary_macro(rank: int) -> str:
    """The macro of an expression of the elements x of an array of a rank."""
    body = "const p_TYPE_ x = a[k]; out[k] = (p_TYPE_)(p_EXPR_);"
    return _macro("UNARY", rank, ["p_ID_", "p_EXPR_", "p_TYPE_"], "static void p_ID_(const p_TYPE_ *a, p_TYPE_ *out)", body)


def _macro(kind: str, rank: int, parameters: Sequence[str], head: str, body: str) -> str:
    """A macro with a loop for each dimension; k is the number of the element."""
    extents = [f"p_DIM{at}_" for at in range(rank)]
    index = "0"
    lines = [head, "{"]
    for at, extent in enumerate(extents):
        lines.append(f"{'    ' * (at + 1)}for (int64_t i{at} = 0; i{at} < (p_DIM{at}_); ++i{at}) {{")
        index = f"i{at}" if at == 0 else f"({index}) * ({extent}) + i{at}"
    inside = "    " * (rank + 1)
    lines += [f"{inside}const int64_t k = {index};", f"{inside}{body}"]
    lines += ["    " * at + "}" for at in range(rank, -1, -1)]
    first = f"#define {macro_name(kind, rank)}({', '.join([*parameters, *extents])})"
    return " \\\n".join([first, *["    " + line for line in lines]]) + "\n"


def binary(name: str, node: Node) -> str:
    """The use of a macro that defines the kernel `name`."""
    spec = node.outputs[0].spec
    words = [name, BINARY[node.operator], c_type(spec), computing_type(spec), *map(str, spec.shape)]
    return f"{macro_name('BINARY', len(spec.shape))}({', '.join(words)})"


def broadcast(name: str, node: Node) -> str:
    """The function `name` of an operator on two operands of other shapes than the result, or one and a number."""
    spec = node.outputs[0].spec
    kind, wide = c_type(spec), computing_type(spec)
    operands, parameters = [], []
    for given, pointer in zip([node.arguments["lhs"], node.arguments["rhs"]], "ab"):
        if isinstance(given, Value):
            parameters.append(f"const {kind} *{pointer}, ")
            operands.append(f"({wide}){pointer}[{_index(given.spec, len(spec.shape))}]")
        else:
            number = numpy.asarray(given, str(spec.dtype)).item()
            operands.append(f"({wide})({number_text(number, kind)})")
    lines = [f"static void {name}({''.join(parameters)}{kind} *out)", "{"]
    for at, extent in enumerate(spec.shape):
        lines.append(f"{'    ' * (at + 1)}for (int64_t i{at} = 0; i{at} < {extent}; ++i{at}) {{")
    inside = "    " * (len(spec.shape) + 1)
    lines.append(f"{inside}out[{_index(spec, len(spec.shape))}] = ({kind})({f' {BINARY[node.operator]} '.join(operands)});")
    lines += ["    " * at + "}" for at in range(len(spec.shape), -1, -1)]
    return "\n".join(lines)


def _index(spec: Spec, rank: int) -> str:
    """The number of the element of an operand at the place i0, i1, ... of a result of `rank` dimensions."""
    terms, apart = [], 1
    for at, extent in reversed(list(enumerate(spec.shape, rank - len(spec.shape)))):
        assert isinstance(extent, int)
        if extent != 1:
            terms.append(f"i{at}" if apart == 1 else f"i{at} * {apart}")
        apart *= extent
    return " + ".join(reversed(terms)) or "0"


def number_text(number: Any, kind: str) -> str:
    """A number in C, exactly."""
    if kind in ("float", "double"):
        if not math.isfinite(number):
            return "NAN" if math.isnan(number) else "INFINITY" if number > 0 else "-INFINITY"
        return f"{number!r}{'f' * (kind == 'float')}"
    if number == -2**63:
        return "INT64_MIN"
    return f"{number}{'u' * kind.startswith('u')}{'ll' * kind.endswith('64_t')}"


def unary(name: str, node: Node) -> str:
    """The use of a macro that defines the kernel `name`."""
    spec = node.outputs[0].spec
    words = [name, UNARY[node.operator], c_type(spec), *map(str, spec.shape)]
    return f"{macro_name('UNARY', len(spec.shape))}({', '.join(words)})"


def matmul(name: str, node: Node) -> str:
    """The function `name`: a product of two matrices."""
    kind = c_type(node.outputs[0].spec)
    (rows, inner), (_, columns) = node.inputs[0].shape, node.inputs[1].shape
    return f"""static void {name}(const {kind} *a, const {kind} *b, {kind} *out)
{{
    for (int64_t i = 0; i < {rows}; ++i) {{
        for (int64_t j = 0; j < {columns}; ++j) {{
            {kind} sum = 0;
            for (int64_t k = 0; k < {inner}; ++k) {{
                sum += a[i * {inner} + k] * b[k * {columns} + j];
            }}
            out[i * {columns} + j] = sum;
        }}
    }}
}}"""
