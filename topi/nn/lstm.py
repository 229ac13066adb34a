"""Recurrent layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError, ArgumentTypeError, ShapeError
from topi.arguments import checked
from topi.extents import as_int, opening, require_one_dtype, shown
from topi.kinds import ExchangeOp
from topi.tag import INJECTIVE

_SHARED = 3  # rows of a batch from which on weights are copied


@checked
def lstm(Xs: te.Tensor, Wi: te.Tensor, Wh: te.Tensor, Bi: te.Tensor | None = None, Bh: te.Tensor | None = None,
         h_init: te.Tensor | None = None, c_init: te.Tensor | None = None, proj: te.Tensor | None = None,
         p_i: te.Tensor | None = None, p_f: te.Tensor | None = None, p_o: te.Tensor | None = None,
         f_act: Any = te.sigmoid, g_act: Any = te.tanh, h_act: Any = te.tanh, reverse: bool = False,
         weight_layout: str = "IFGO") -> tuple[te.Tensor, te.Tensor]:
    """The hidden states (steps, batch, hidden or projected) and the cells (steps, batch, hidden) of an LSTM over a sequence.

        i, f, g, o = Wi x + Bi + Wh h + Bh;   c = f_act(f) * c + f_act(i) * g_act(g);   h = f_act(o) * h_act(c)

    Xs: (steps, batch, in); Wi: (4 * hidden, in) and Wh: (4 * hidden, hidden), with the four parts in the order of
    `weight_layout`; Bi, Bh: (4 * hidden,). h_init, c_init: (batch, hidden), None is 0. proj: (projected, hidden) makes h
    smaller. p_i, p_f, p_o: (batch, hidden), factors of the cell that are added to gates. reverse: from the last step to the
    first; the result is in the order of computation. Hochreiter and Schmidhuber, 1997; Sak, Senior and Beaufays, 2014.
    """
    where = opening("lstm", Xs)
    if sorted(weight_layout) != sorted("IFGO"):
        raise ArgumentError(f"{where}: weight_layout is {weight_layout!r}",
                            hint='the letters of "IFGO" in the order of the weights')
    for act, name in ((f_act, "f_act"), (g_act, "g_act"), (h_act, "h_act")):
        if not callable(act):
            raise ArgumentTypeError(f"{where}: {name} is {act!r}, not a function", hint="te.sigmoid, te.tanh, or a lambda")
    _check(where, Xs, Wi, Wh, proj)
    steps, batch, width = Xs.shape
    hidden = Wi.shape[0] // 4
    out = hidden if proj is None else proj.shape[0]
    k, j = te.reduce_axis((0, width), name="ki2h"), te.reduce_axis((0, out), name="kh2h")
    from_x = te.compute((steps * batch, 4 * hidden), lambda tb, ij: te.sum(Xs[tb // batch, tb % batch, k] * Wi[ij, k], axis=k),
                        name="Xi2h")
    h, c = (te.placeholder((steps + 1, batch, n), Xs.dtype, name=f"{name}_state") for n, name in ((out, "h"), (hidden, "c")))
    begin = [te.compute((1, batch, n), lambda _, b, i, given=given: te.const(0, Xs.dtype) if given is None else given[b, i],
                        name=f"{name}_init") for n, given, name in ((out, h_init, "h"), (hidden, c_init, "c"))]
    weight = _by_columns(Wh, batch, out, hidden)
    from_h = te.compute((steps + 1, batch, 4, hidden), lambda t, b, g, i: te.sum(h[t - 1, b, j] * weight(g, j, i), axis=j),
                        name="s_h2h")

    def gate(letter: str, t: Any, b: Any, i: Any) -> Any:
        part = weight_layout.index(letter)
        step = steps - t if reverse else t - 1
        value = from_x[step * batch + b, part * hidden + i] + from_h[t, b, part, i]
        for bias in (Bi, Bh):
            value = value if bias is None else value + bias[part * hidden + i]
        return value

    def with_cell(value: Any, factors: te.Tensor | None, b: Any, i: Any, cell: Any) -> Any:
        return f_act(value if factors is None else value + factors[b, i] * cell)

    def next_cell(t: Any, b: Any, i: Any) -> Any:
        before = c[t - 1, b, i]
        peeks = p_i is not None and p_f is not None
        entering = with_cell(gate("I", t, b, i), p_i if peeks else None, b, i, before)
        staying = with_cell(gate("F", t, b, i), p_f if peeks else None, b, i, before)
        return staying * before + entering * g_act(gate("G", t, b, i))

    next_c = te.compute((steps + 1, batch, hidden), next_cell, name="next_c")
    next_h = te.compute((steps + 1, batch, hidden), lambda t, b, i: with_cell(gate("O", t, b, i), p_o, b, i, next_c[t, b, i])
                        * h_act(next_c[t, b, i]), name="next_h")
    if proj is not None:
        r, inner, factors = te.reduce_axis((0, hidden), name="kh2p"), next_h, proj
        next_h = te.compute((steps + 1, batch, out), lambda t, b, i: te.sum(inner[t, b, r] * factors[i, r], axis=r),
                            name="next_h_proj")
    states = te.scan(begin, [next_h, next_c], [h, c], name="lstm_scan")
    hs, cs = (te.compute((steps, batch, n), lambda t, b, i, state=state: state[t + 1, b, i], name=f"{name}_states",
                         tag=INJECTIVE) for n, state, name in ((out, states[0], "hidden"), (hidden, states[1], "cell")))
    return hs, cs


def _by_columns(Wh: te.Tensor, batch: Any, out: Any, hidden: Any) -> Callable[[Any, Any, Any], Any]:
    """What reads the weights of the state: where several rows of a batch use them, from a copy whose lines hold neighbouring
    results, which all steps share.
    """
    def formula(g: Any, j: Any, i: Any) -> Any:
        return Wh[g * hidden + i, j]

    if as_int(batch) is not None and (as_int(batch) or 0) < _SHARED:
        return formula
    record = ExchangeOp("recurrent_weights")
    copy: te.Tensor = te.compute((4, out, hidden), formula, name="Wh_columns", tag=INJECTIVE, info=record)
    return copy


def _check(where: str, Xs: te.Tensor, Wi: te.Tensor, Wh: te.Tensor, proj: te.Tensor | None) -> None:
    require_one_dtype([Xs, Wi, Wh], where)
    if [tensor.ndim for tensor in (Xs, Wi, Wh)] != [3, 2, 2] or (as_int(Wi.shape[0]) or 0) % 4:
        raise ShapeError(f"{where}: the shapes are {shown(Xs.shape)}, {shown(Wi.shape)} and {shown(Wh.shape)}",
                         hint="(steps, batch, in), (4 * hidden, in) and (4 * hidden, hidden)")
    if proj is not None and proj.ndim != 2:
        raise ShapeError(f"{where}: proj has the shape {shown(proj.shape)}", hint="(projected, hidden)")
