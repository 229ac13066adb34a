"""The kinds of formulas. Each function adds one stage to a program, or returns False where nothing fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tedsl.fuzz.terms import Term, cast, known
from tedsl.fuzz.values import is_float, promoted

if TYPE_CHECKING:
    from tedsl.fuzz.programs import Dim, Known, Program

AXES = ("i", "j", "l", "m")


def axes_of(t: Known) -> tuple[str, ...]:
    return AXES[:len(t.dims)]


def replaced(items: Sequence[Any], at: int, item: Any) -> list[Any]:
    return [item if position == at else one for position, one in enumerate(items)]


def elementwise(p: Program) -> bool:
    """Formulas of tensors that broadcast, of indices and scalars."""
    t = p.recent()
    axes = axes_of(t)
    others = [u for u in p.tensors if len(u.dims) <= len(t.dims)
              and all(a == b or a.text == "1" for a, b in zip(u.dims[::-1], t.dims[::-1]))]

    def other() -> Term:
        u = p.draw.choice(others)
        return u.at(["0" if d.text == "1" else a for d, a in zip(u.dims, axes[len(axes) - len(u.dims):])])

    leaves: list[Callable[[], Term]] = [lambda: t.at(axes), lambda: t.at(axes), other]
    if p.draw.chance(10):
        value = p.scalar()
        leaves.append(lambda: value)
    term = p.formula(leaves, axes, p.draw.weighted({2: 4, 1: 2, 3: 4}))
    return p.define(t.dims, axes, [term.text], terms=[term])


def tuple_(p: Program) -> bool:
    """Two outputs of one compute."""
    t = p.recent()
    axes = axes_of(t)
    terms = [p.formula([lambda: t.at(axes)], axes, 1) for _ in "ab"]
    return p.define(t.dims, axes, [term.text for term in terms], terms=terms)


def stencil(p: Program) -> bool:
    """Neighbours along a dimension: the result is shorter."""
    t = p.recent(lambda t: t.dims)
    if t is None:
        return False
    axes, at, width = axes_of(t), p.draw.which(len(t.dims)), p.draw.between(1, 3)
    if t.dims[at].size < width:
        return False

    def shifted(k: int) -> Term:
        read: Term = t.at(replaced(axes, at, f"{axes[at]} + {k}" if k else axes[at]))
        return read

    leaves = [lambda: shifted(0), lambda: shifted(width), lambda: shifted(p.draw.between(0, width))]
    term = p.formula(leaves, axes, 2)
    return p.define(replaced(t.dims, at, t.dims[at].plus(-width)), axes, [term.text], terms=[term])


def padded(p: Program) -> bool:
    """A border of constants around a tensor, or its edge repeated."""
    t = p.recent(lambda t: t.dims)
    if t is None or t.dtype == "bool":
        return False
    axes, at, width = axes_of(t), p.draw.which(len(t.dims)), p.draw.between(1, 2)
    d, i = t.dims[at], axes[at]
    dims = replaced(t.dims, at, d.plus(2 * width))
    if p.draw.chance(30) and d.size > 0:
        term = t.at(replaced(axes, at, f"te.max(te.min({i} - {width}, {d.text} - 1), 0)"))
        return p.define(dims, axes, [term.text], terms=[term])
    inside = f"te.all({i} >= {width}, {i} - {width} < {d.text})"
    inner = t.at(replaced(axes, at, f"{i} - {width}"))
    name = "if_then_else" if p.draw.chance(70) else "select"
    term = known(f"te.{name}({inside}, {inner.text}, {p.draw.between(0, 3)})", t.dtype, max(t.mag, 3), t.frac)
    return p.define(dims, axes, [term.text], terms=[term])


def transposed(p: Program) -> bool:
    t = p.recent(lambda t: len(t.dims) > 1)
    if t is None:
        return False
    axes = axes_of(t)
    order = p.draw.sample(range(len(axes)), len(axes))
    term = t.at([axes[order.index(d)] for d in range(len(axes))])
    return p.define([t.dims[d] for d in order], axes, [term.text], terms=[term])


def outer(p: Program) -> bool:
    """Each element of a tensor with each of another."""
    t = p.recent(lambda t: t.dims and t.dtype != "bool")
    u = p.recent(lambda u: len(u.dims) == 1 and u.dtype != "bool")
    if t is None or u is None or len(t.dims) == len(AXES) or {t.dtype, u.dtype} == {"float16", "bfloat16"}:
        return False
    axes = AXES[:len(t.dims) + 1]
    left, right, dtype = t.at(axes[:-1]), u.at(axes[-1:]), promoted(t.dtype, u.dtype)
    if is_float(dtype) and left.mag * right.mag > (8000 if dtype in ("float16", "bfloat16") else 1e30):
        return False
    frac = None if None in (left.frac, right.frac) else left.frac + right.frac
    term = known(f"{left.text} * {right.text}", dtype, left.mag * right.mag, frac)
    return p.define([*t.dims, *u.dims], axes, [term.text], terms=[term])


def flat(p: Program) -> bool:
    """Two dimensions as one, one as two, or two of another length each."""
    t = p.recent(lambda t: len(t.dims) == 2 and t.dims[1].size > 0)
    if t is not None and p.draw.chance(60):
        d0, d1 = t.dims
        text = str(d0.size * d1.size) if d0.constant and d1.constant else f"({d0.text})*({d1.text})"
        if p.draw.chance(30):
            place = f"i + j * ({d1.text})"
            term = t.at([f"({place}) // ({d1.text})", f"({place}) % ({d1.text})"])
            return p.define([d1, d0], ["i", "j"], [term.text], terms=[term])
        term = t.at([f"i // ({d1.text})", f"i % ({d1.text})"])
        return p.define([type(d0)(text, d0.size * d1.size)], ["i"], [term.text], terms=[term])
    t = p.recent(lambda t: len(t.dims) == 1 and t.dims[0].constant and t.dims[0].size > 1)
    if t is None:
        return False
    inner = p.draw.choice([f for f in (2, 3, 4, 8) if t.dims[0].size >= f] or [1])
    dim = type(t.dims[0])
    term = t.at([f"i * {inner} + j"])
    return p.define([dim(str(t.dims[0].size // inner), t.dims[0].size // inner), dim(str(inner), inner)], ["i", "j"],
                    [term.text], terms=[term])


def strided(p: Program) -> bool:
    """Every second element, each element twice, or backwards."""
    t = p.recent(lambda t: t.dims)
    if t is None:
        return False
    axes, at = axes_of(t), p.draw.which(len(t.dims))
    d, i, kind = t.dims[at], axes[at], p.draw.which(3)
    if kind == 0:
        text = str((d.size + 1) // 2) if d.constant else f"({d.text} + 1) // 2"
        index, dim = f"{i} * 2", type(d)(text, (d.size + 1) // 2)
    elif kind == 1:
        index, dim = f"{i} // 2", type(d)(str(d.size * 2) if d.constant else f"({d.text}) * 2", d.size * 2)
    else:
        index, dim = f"{d.text} - 1 - {i}", d
    term = t.at(replaced(axes, at, index))
    return p.define(replaced(t.dims, at, dim), axes, [term.text], terms=[term])


def joined(p: Program) -> bool:
    """Two tensors end to end."""
    t = p.recent(lambda t: t.dims)
    if t is None:
        return False
    at = p.draw.which(len(t.dims))
    u = p.recent(lambda u: u.dtype == t.dtype != "bool" and len(u.dims) == len(t.dims)
                 and all(a == b or position == at for position, (a, b) in enumerate(zip(u.dims, t.dims))))
    if u is None:
        return False
    axes, d, e = axes_of(t), t.dims[at], u.dims[at]
    text = str(d.size + e.size) if d.constant and e.constant else f"({d.text}) + ({e.text})"
    second = u.at(replaced(axes, at, f"{axes[at]} - ({d.text})"))
    frac = None if None in (t.frac, u.frac) else max(t.frac, u.frac)
    term = known(f"te.if_then_else({axes[at]} < {d.text}, {t.at(axes).text}, {second.text})", t.dtype, max(t.mag, u.mag), frac)
    return p.define(replaced(t.dims, at, type(d)(text, d.size + e.size)), axes, [term.text], terms=[term])


def gather(p: Program) -> bool:
    """Indices from a tensor; out of range they are clamped."""
    t = p.recent(lambda t: t.dims and all(d.size for d in t.dims))
    index = p.recent(lambda u: len(u.dims) == 1 and u.dtype in ("int32", "int64", "int8", "uint8", "int16"))
    if index is None and t is not None and len(p.case.data) < 6:
        index = p.input([p.dim()], p.draw.choice(["int32", "int64", "uint8"]))
    if t is None or index is None:
        return False
    axes, at = axes_of(t), p.draw.which(len(t.dims))
    read = index.at([axes[at]]).text
    if p.draw.chance(40):
        read = f"{read}.astype('int32') % ({t.dims[at].text})"
    term = t.at(replaced(axes, at, read))
    return p.define(replaced(t.dims, at, index.dims[0]), axes, [term.text], terms=[term])


# --- reductions -----------------------------------------------------------------------------------------------------

def reduce_text(p: Program, term: Term, ks: Sequence[str], extent: int, allow_init: bool = True,
                start: Term | None = None) -> Term:
    """A reduction of `term` over the axes `ks`, with its bounds. start: the value that a sum begins with, if its dtype fits."""
    draw = p.draw
    if term.dtype == "bool":
        term = cast(term, "int32")
    if start is not None and (cast(start, term.dtype).dtype != term.dtype or start.mag + term.mag * extent > 8000):
        start = None
    op = draw.weighted({"sum": 10, "max": 4, "min": 3, "prod": 1}) if start is None else "sum"
    if is_float(term.dtype) and op == "prod" and not (term.exact and term.mag <= 2 and extent <= 8):
        op = "sum"
    if op == "sum" and term.dtype in ("float16", "bfloat16") and term.mag * extent > 8000:
        op = "max"
    inner, mag, frac = term, term.mag, term.frac
    if op == "sum":
        inner, mag = known(term.text, term.dtype, term.mag * max(extent, 1), term.frac), term.mag * max(extent, 1)
    if op == "prod":
        mag = max(term.mag, 1.0)**extent if is_float(term.dtype) else 2.0**64
        frac = None if term.frac is None else term.frac * extent
    if op in ("max", "min") and extent == 0:
        mag = term.mag
    more = ""
    if draw.chance(20):
        more += f", where={draw.choice(ks)}.var {f'< {draw.between(1, 6)}' if draw.chance(50) else '% 2 < 1'}"
    if start is not None:
        begin = cast(start, term.dtype)
        more += f", init={begin.text}"
        mag, frac = mag + begin.mag, None if None in (frac, begin.frac) else max(frac, begin.frac)
    elif allow_init and draw.chance(12):
        number = draw.between(0, 3)
        more += f", init={number}"
        mag = mag + number if op != "prod" else mag * max(number, 1)
    axis = ks[0] if len(ks) == 1 else f"[{', '.join(ks)}]"
    dtype = inner.dtype
    return known(f"te.{op}({term.text}, axis={axis}{more})", dtype, mag, frac)


def axis_line(k: str, dim: Dim, begin: int = 0, left: int = 0) -> str:
    """A reduce axis over a dimension, from `begin`, without the last `left` elements."""
    return f"{k} = te.reduce_axis(({begin}, {dim.plus(-left).text if left else dim.text}), name='{k}')"


def reduction(p: Program) -> bool:
    """Over some dimensions of one tensor."""
    t = p.recent(lambda t: t.dims)
    if t is None:
        return False
    count = p.draw.between(1, len(t.dims))
    chosen = sorted(p.draw.sample(range(len(t.dims)), count))
    ks = {d: p.fresh("k") for d in chosen}
    kept = [d for d in range(len(t.dims)) if d not in ks]
    axes = AXES[:len(kept)]
    index = [ks[d] if d in ks else axes[kept.index(d)] for d in range(len(t.dims))]
    extent, begin, left, start = 1, 0, 0, None
    for d in chosen:
        extent *= t.dims[d].size
    if t.dims[chosen[0]].size > 2 and p.draw.chance(15):
        begin, left = 1, p.draw.between(0, 1)
    if kept and p.draw.chance(12):
        other = p.recent(lambda u: u.dims == tuple(t.dims[d] for d in kept) and u.dtype != "bool")
        start = other and other.at(axes)
    term = t.at(index)
    if p.draw.chance(40):
        term = p.formula([lambda: t.at(index)], [*axes, *(f"{k}.var" for k in ks.values())], 1)
        if is_float(term.dtype) and term.mag * extent > 1e30:
            return False
    total = reduce_text(p, term, list(ks.values()), extent, start=start)
    prefix = [axis_line(k, t.dims[d], *((begin, left) if d == chosen[0] else ())) for d, k in ks.items()]
    dims = [t.dims[d] for d in kept]
    if not kept and p.draw.chance(30):  # the same sum for two elements
        dims, axes = [type(t.dims[0])("2", 2)], AXES[:1]
    return p.define(dims, axes, [total.text], prefix, [total])


def windowed(p: Program) -> bool:
    """A sum over a window, as of a convolution."""
    t = p.recent(lambda t: t.dims)
    if t is None:
        return False
    at, width = p.draw.which(len(t.dims)), p.draw.between(1, 4)
    if t.dims[at].size < width:
        return False
    axes, k = axes_of(t), p.fresh("k")
    term = reduce_text(p, t.at(replaced(axes, at, f"{axes[at]} + {k}")), [k], width)
    prefix = [f"{k} = te.reduce_axis((0, {width}), name='{k}')"]
    return p.define(replaced(t.dims, at, t.dims[at].plus(1 - width)), axes, [term.text], prefix, [term])


def bordered(p: Program) -> bool:
    """A sum over a window of a tensor with a border of zeros, mostly times a number."""
    t = p.recent(lambda t: t.dims)
    if t is None or t.dtype == "bool":
        return False
    at, border, width, step = p.draw.which(len(t.dims)), p.draw.between(1, 3), p.draw.between(2, 4), p.draw.between(1, 2)
    axes, k, d = axes_of(t), p.fresh("k"), t.dims[at]
    i = f"{axes[at]} * {step} + {k}" if step > 1 else f"{axes[at]} + {k}"
    size = (d.size + 2 * border - width) // step + 1
    if size < 1 or (step > 1 and not d.constant):
        return False
    inner = t.at(replaced(axes, at, f"{i} - {border}"))
    name = "if_then_else" if p.draw.chance(70) else "select"
    inside = f"te.all({i} >= {border}, {i} < {d.text} + {border})"
    term = known(f"te.{name}({inside}, {inner.text}, 0)", t.dtype, t.mag, t.frac)
    if p.draw.chance(70):
        weight = cast(Term(f"({k} + 1)", "int32", float(width + 1), 0), t.dtype)
        term = known(f"{term.text} * {weight.text}", t.dtype, term.mag * weight.mag, term.frac)
    term = reduce_text(p, term, [k], width)
    prefix = [f"{k} = te.reduce_axis((0, {width}), name='{k}')"]
    return p.define(replaced(t.dims, at, d.plus(size - d.size)), axes, [term.text], prefix, [term])


def matmul(p: Program) -> bool:
    """A product of two tensors, summed over a dimension that both have."""
    t = p.recent(lambda t: len(t.dims) in (1, 2))
    if t is None:
        return False
    d = p.draw.which(len(t.dims))
    u = p.recent(lambda u: len(u.dims) in (1, 2) and t.dims[d] in u.dims)
    if u is None or (u.name == t.name and len(p.case.data) < 6 and p.draw.chance(60)):
        u = p.input([t.dims[d], p.dim()], t.dtype)
    if {t.dtype, u.dtype} == {"float16", "bfloat16"} or "bool" in (t.dtype, u.dtype) or t.dims[d] not in u.dims:
        return False
    e, k = u.dims.index(t.dims[d]), p.fresh("k")
    kept_t, kept_u = [x for x in range(len(t.dims)) if x != d], [x for x in range(len(u.dims)) if x != e]
    axes = AXES[:len(kept_t) + len(kept_u)]
    left = t.at([k if x == d else axes[kept_t.index(x)] for x in range(len(t.dims))])
    right = u.at([k if x == e else axes[len(kept_t) + kept_u.index(x)] for x in range(len(u.dims))])
    dtype = promoted(t.dtype, u.dtype)
    if is_float(dtype) and left.mag * right.mag * t.dims[d].size > (8000 if dtype in ("float16", "bfloat16") else 1e30):
        return False
    frac = None if None in (left.frac, right.frac) else left.frac + right.frac
    inner = known(f"{left.text} * {right.text}", dtype, left.mag * right.mag, frac)
    term = reduce_text(p, inner, [k], t.dims[d].size, allow_init=False)
    return p.define([*(t.dims[x] for x in kept_t), *(u.dims[x] for x in kept_u)], axes, [term.text],
                    [axis_line(k, t.dims[d])], [term])


def _argmax_by(choose: str) -> str:
    """The line that defines argmax, with `choose` between the places and values of two terms."""
    return (f"argmax = te.comm_reducer(lambda x, y: ({choose}(te.any(x[1] > y[1], te.all(x[1].equal(y[1]), x[0] < y[0])), "
            f"x[0], y[0]), {choose}(x[1] > y[1], x[1], y[1])), "
            "lambda i, v: (te.const(2**30, i), te.min_value(v)), name='argmax')")


ARGMAX = (_argmax_by("te.if_then_else"), _argmax_by("te.select"))


def argmax(p: Program) -> bool:
    """A reduction of a tuple: the first place of the largest value."""
    t = p.recent(lambda t: t.dims and t.frac is not None and not t.special and t.dtype not in ("bool", "bfloat16"))
    if t is None:
        return False
    d, k = p.draw.which(len(t.dims)), p.fresh("k")
    kept = [x for x in range(len(t.dims)) if x != d]
    axes = AXES[:len(kept)]
    value = t.at([k if x == d else axes[kept.index(x)] for x in range(len(t.dims))])
    prefix = [axis_line(k, t.dims[d]), *([] if {*ARGMAX} & {*p.case.lines} else [p.draw.choice(ARGMAX)])]
    terms = [Term("", "int32", 2.0**30), Term("", t.dtype, t.mag, t.frac)]
    body = f"argmax(({k}.var, {value.text}), axis={k})"
    return p.define([t.dims[x] for x in kept], axes, [body], prefix, terms)


STAGES: dict[Callable[[Program], bool], int] = {
    elementwise: 24, stencil: 8, padded: 7, reduction: 10, windowed: 6, bordered: 10, matmul: 8, outer: 4, transposed: 4,
    flat: 4, strided: 4, joined: 3, gather: 4, argmax: 3, tuple_: 3}
