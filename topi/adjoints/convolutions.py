"""Adjoints of convolutions, which are convolutions.

    of the kernel:  a convolution of the data with the head whose sums run over the batch and the image; strides and dilation
                    change places. Of a window of one pixel: a product of matrices
    of the data:    for each phase, (i + before) % stride, a convolution of the head with the taps that meet that phase,
                    flipped, with stride 1; with stride 1 there is one phase

so that no product with a zero of a dilation is computed. Dumoulin and Visin, A guide to convolution arithmetic for deep
learning (2016), chapter 4.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tedsl import te
from tedsl.record import record
from topi.adjoints.interleave import interleaved
from topi.adjoints.parts import Parts, in_dtype
from topi.elementwise import full
from topi.extents import as_int
from topi.injective import injective
from topi.kinds import ConvOp, DepthwiseConvOp, ExchangeOp
from topi.nn.convolution.depthwise import convolve_channels
from topi.nn.convolution.formula import SPACE, convolve
from topi.nn.dense import matmul
from topi.tag import INJECTIVE


@record
class Along:
    """A convolution along one spatial dimension: the extents of data, kernel and result, and where its windows are."""

    data: int
    kernel: int
    result: int
    stride: int
    dilation: int
    before: int


@record
class Phase:
    """The elements j of the data with (i + before) % stride = phase, counted from `first`, and their convolution.

    first_tap, step: the taps that meet the phase. dilation, before, after: of the convolution of the head with them; a
    negative border cuts the head off.
    """

    number: int
    count: int
    first: int
    first_tap: int
    step: int
    taps: int
    dilation: int
    before: int
    after: int


def of_convolution(info: ConvOp, op: te.Operation, head: te.Tensor) -> Parts:
    """The adjoints of data and kernel; None where spatial extents are symbolic."""
    along = extents_along(info, head)
    if along is None:
        return None
    return [(info.data, lambda: of_data(info, head, along)), (info.kernel, lambda: of_kernel(info, head, along))]


def extents_along(info: ConvOp, head: te.Tensor) -> dict[str, Along] | None:
    """The convolution along each letter of space; None where an extent is symbolic or 0."""
    space = [letter for letter in info.layout if letter in SPACE]
    found = {}
    for d, letter in enumerate(space):
        at, by = info.layout.index(letter), info.kernel_layout.index(letter)
        extents = [as_int(extent) for extent in (info.data.shape[at], info.kernel.shape[by], head.shape[at])]
        if any(extent is None or extent < 1 for extent in extents):
            return None
        n, k, y = (extent or 1 for extent in extents)
        found[letter] = Along(n, k, y, info.strides[d], info.dilation[d], info.before[d])
    return found


@record
class Weights:
    """The kernel of any convolution as that of one with groups: element(result, channel of the group, taps)."""

    groups: Any
    inputs: Any  # channels of a group
    results: Any  # of all groups
    element: Callable[[Any, Any, Sequence[Any]], Any]


def weights_of(info: ConvOp, dtype: Any) -> Weights:
    """The kernel of `info`, its elements converted to `dtype`."""
    kernel, layout = in_dtype(info.kernel, dtype), info.kernel_layout
    size, space = dict(zip(layout, kernel.shape)), [letter for letter in info.layout if letter in SPACE]
    depthwise = isinstance(info, DepthwiseConvOp)

    def element(result: Any, channel: Any, taps: Sequence[Any]) -> Any:
        own = {"C": result // size["M"], "M": result % size["M"]} if depthwise else {"O": result, "I": channel}
        return kernel(*[{**own, **dict(zip(space, taps))}[letter] for letter in layout])

    if depthwise:
        return Weights(as_int(size["C"]), 1, size["C"] * size["M"], element)
    return Weights(info.groups, size["I"], size["O"], element)


# --- data -------------------------------------------------------------------------------------------------------------

def phases(a: Along) -> list[Phase]:
    """The phases along a dimension that have elements; of those without taps (0) the adjoint is zero."""
    shared = math.gcd(a.stride, a.dilation)
    step, dilation = a.stride // shared, a.dilation // shared
    found = []
    for number in range(a.stride):
        first = max(0, -((number - a.before) // a.stride))
        count = (a.before + a.data - 1 - number) // a.stride - first + 1
        if count < 1:
            continue
        tap = next((k for k in range(min(step, a.kernel)) if (k * a.dilation - number) % a.stride == 0), a.kernel)
        taps = len(range(tap, a.kernel, step))
        span = (taps - 1) * dilation
        before = (tap * a.dilation - number) // a.stride + span - first
        after = count + span - a.result - before
        reached = a.result + min(before, 0) + min(after, 0)
        found.append(Phase(number, count, first, tap, step, taps if reached > 0 else 0, dilation, before, after))
    return found


def of_data(info: ConvOp, head: te.Tensor, along: dict[str, Along]) -> te.Tensor:
    """The adjoint of the data of the convolution `info`."""
    choices = [phases(a) for a in along.values()]
    with_taps = [chosen for chosen in itertools.product(*choices) if all(phase.taps for phase in chosen)]
    weights = weights_of(info, head.dtype)
    if len(with_taps) > 1 and type(info) is ConvOp and info.groups == 1:
        weights = _exchanged(info, weights)
    parts = {chosen: _of_phase(info, head, dict(zip(along, chosen)), weights) for chosen in with_taps}
    whole = tuple([options[0] for options in choices])
    if all(a.stride == 1 for a in along.values()) and whole in parts:
        return parts[whole]
    return _put_together(info, head, along, parts) if parts else full(info.data.shape, head.dtype, 0)


def _exchanged(info: ConvOp, w: Weights) -> Weights:
    """The kernel as (result, taps, channel), stored: all phases read it, each a part."""
    size = dict(zip(info.kernel_layout, info.kernel.shape))
    space = [size[letter] for letter in info.layout if letter in SPACE]
    turned: te.Tensor = te.compute((w.results, *space, w.inputs), lambda o, *at: w.element(o, at[-1], at[:-1]),
                                   name="kernel_exchanged", tag=INJECTIVE, info=ExchangeOp("kernel_exchanged"), axes="ax")
    return replace(w, element=lambda result, channel, taps: turned(result, *taps, channel))


def _of_phase(info: ConvOp, head: te.Tensor, chosen: dict[str, Phase], w: Weights) -> te.Tensor:
    """The convolution of the head with the taps of one phase in each dimension."""
    cut = _cut(info, head, chosen)
    borders = [max(phase.before, 0) for phase in chosen.values()] + [max(phase.after, 0) for phase in chosen.values()]
    dilation = [phase.dilation for phase in chosen.values()]
    per_group = w.results // w.groups
    alone = isinstance(info, DepthwiseConvOp) and as_int(per_group) == 1
    layout = info.kernel_layout if alone or not isinstance(info, DepthwiseConvOp) else _with_channels(info.layout)

    def turned(*i: Any) -> Any:
        at = dict(zip(layout, i))
        taps = [phase.first_tap + phase.step * (phase.taps - 1 - at[letter]) for letter, phase in chosen.items()]
        if alone:
            return w.element(at["C"], 0, taps)
        first = 0 if w.groups == 1 else at["O"] // w.inputs * per_group
        return w.element(first + at["I"], at["O"] if w.groups == 1 else at["O"] % w.inputs, taps)

    extents = {"O": w.inputs * w.groups, "I": per_group, "C": w.results, "M": 1,
               **{letter: phase.taps for letter, phase in chosen.items()}}
    kernel = injective("turned", [extents[letter] for letter in layout], turned)
    if alone:
        return convolve_channels("depthwise_adjoint", cut, kernel, 1, borders, dilation, None, info.layout, layout)
    return convolve("conv_adjoint", cut, kernel, 1, borders, dilation, None, layout=info.layout, kernel_layout=layout,
                    groups=w.groups)


def _with_channels(layout: str) -> str:
    """The layout of weights for data of `layout`."""
    space = "".join(letter for letter in layout if letter in SPACE)
    return f"OI{space}" if layout.endswith("W") else f"{space}IO"


def _cut(info: ConvOp, head: te.Tensor, chosen: dict[str, Phase]) -> te.Tensor:
    """The head without the elements beyond negative borders."""
    if all(phase.before >= 0 and phase.after >= 0 for phase in chosen.values()):
        return head
    low = [max(0, -chosen[letter].before) if letter in chosen else 0 for letter in info.layout]
    high = [max(0, -chosen[letter].after) if letter in chosen else 0 for letter in info.layout]
    shape = [n - (a + b) for n, a, b in zip(head.shape, low, high)]
    return injective("strided_slice", shape, lambda *i: head(*[at + a for at, a in zip(i, low)]))


def _put_together(info: ConvOp, head: te.Tensor, along: dict[str, Along], parts: dict[Any, te.Tensor]) -> te.Tensor:
    """The elements of all phases, each in its place."""
    steps = [along[letter].stride if letter in along else 1 for letter in info.layout]
    placed = {}
    for chosen, part in parts.items():
        starts = {letter: phase.first * a.stride + phase.number - a.before
                  for (letter, a), phase in zip(along.items(), chosen)}
        placed[tuple([starts.get(letter, 0) for letter in info.layout])] = part
    return interleaved(placed, steps, info.data.shape, head.dtype)


# --- kernel -----------------------------------------------------------------------------------------------------------

def of_kernel(info: ConvOp, head: te.Tensor, along: dict[str, Along]) -> te.Tensor:
    """The adjoint of the kernel of the convolution `info`."""
    data = in_dtype(info.data, head.dtype)
    if info.groups == 1 and type(info) is ConvOp and all(a.kernel == 1 and a.before == 0 for a in along.values()):
        return _as_product(info, data, head, along)
    return _as_convolution(info, data, head, along)


def _as_product(info: ConvOp, data: te.Tensor, head: te.Tensor, along: dict[str, Along]) -> te.Tensor:
    """Of a window of one pixel: the head as (result, pixel) times the data as (channel, pixel)."""
    extents, shape = [a.result for a in along.values()], dict(zip(info.layout, data.shape))
    steps = [a.stride for a in along.values()]
    pixels = shape["N"] * math.prod(extents)

    def by_pixels(tensor: te.Tensor, strides: Sequence[int], name: str) -> te.Tensor:
        def formula(c: Any, p: Any) -> Any:
            at = {"C": c}
            for letter, extent, step in reversed(list(zip(along, extents, strides))):
                at[letter], p = p % extent * step, p // extent
            return tensor(*[{**at, "N": p}[letter] for letter in info.layout])

        return injective(name, (tensor.shape[info.layout.index("C")], pixels), formula)

    product = matmul(by_pixels(head, [1] * len(steps), "head_by_pixels"), by_pixels(data, steps, "data_by_pixels"),
                     transpose_b=True)
    layout = info.kernel_layout
    return injective("kernel_adjoint", info.kernel.shape,
                     lambda *i: product(i[layout.index("O")], i[layout.index("I")]))


def _as_convolution(info: ConvOp, data: te.Tensor, head: te.Tensor, along: dict[str, Along]) -> te.Tensor:
    """The data with its channels as batch, convolved with the head; the images of the batch, of each group, are channels."""
    layout, w, space = info.layout, weights_of(info, head.dtype), "".join(along)
    batch = data.shape[layout.index("N")]
    behind = [(a.kernel - 1) * a.dilation + (a.result - 1) * a.stride + 1 - a.data - a.before for a in along.values()]
    kept = [a.data + min(rest, 0) for a, rest in zip(along.values(), behind)]

    def read(tensor: te.Tensor, n: Any, c: Any, at: Sequence[Any]) -> Any:
        own = {"N": n, "C": c, **dict(zip(along, at))}
        return tensor(*[own[letter] for letter in layout])

    def exchanged(c: Any, n: Any, *at: Any) -> Any:
        return read(data, n, c, at) if w.groups == 1 else read(data, n % batch, n // batch * w.inputs + c, at)

    moved = injective("data_exchanged", (w.inputs, batch * w.groups, *kept), exchanged)
    turned = injective("head_exchanged", (w.results, batch, *[a.result for a in along.values()]),
                       lambda o, n, *at: read(head, n, o, at))
    borders = [a.before for a in along.values()] + [max(0, rest) for rest in behind]
    sums = convolve("kernel_adjoint", moved, turned, [a.dilation for a in along.values()], borders,
                    [a.stride for a in along.values()], None, layout=f"NC{space}", kernel_layout=f"OI{space}", groups=w.groups)

    def formula(*i: Any) -> Any:
        at = dict(zip(info.kernel_layout, i))
        channel, result = (0, at["C"] * info.kernel.shape[info.kernel_layout.index("M")] + at["M"]) if "M" in at else (
            at["I"], at["O"])
        return sums(channel, result, *[at[letter] for letter in along])

    return injective("kernel_in_place", info.kernel.shape, formula)
