"""One formula for all convolutions, the dimensions named by letters: N batch, C channel, D H W space; O I of the kernel.

    out[n, o, y, x] = sum over c, ky, kx of  data[n, c, y * stride + ky * dilation - before, ...] * kernel[o, c, ky, kx]

which is a cross-correlation, as everywhere in this field (see torch.nn.functional.conv2d). Outside of `data` there are zeros.
With groups the results o of a group read the channels of that group alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tedsl import te
from tedsl.errors import DTypeError, ShapeError
from tedsl.record import record
from topi.extents import as_int, differ, opening, require_room, shown
from topi.kinds import ConvOp
from topi.nn.pad import pad
from topi.nn.utils import pad_widths, spatial

SPACE = "DHW"
_LOOPS = {"N": "nn", "C": "ff", "D": "zz", "H": "yy", "W": "xx"}
_REDUCED = {"I": "rc", "D": "rz", "H": "ry", "W": "rx"}
_NARROW = ("float16", "bfloat16")


@record
class Windows:
    """The placement of windows on the data: extents of the kernel, strides, dilation and padding, each with an entry for each
    spatial dimension in the order of the layout.
    """

    extents: tuple[Any, ...]  # of the kernel
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    def results(self, data: Sequence[Any], where: str) -> list[Any]:
        """The spatial extents of the result; ShapeError where a window is larger than the padded data."""
        extents = []
        for d, extent in enumerate(data):
            room = extent + (self.before[d] + self.after[d])
            size = (self.extents[d] - 1) * self.dilation[d] + 1
            there, needed = as_int(room), as_int(size)
            if there is not None and needed is not None and there < needed:
                raise ShapeError(f"{where}: the kernel spans {shown(self.spans())} and the data with its padding "
                                 f"{shown(self.padded(data))}", hint="more padding, or a smaller kernel or dilation")
            extents.append((room - size) // self.strides[d] + 1 if self.strides[d] != 1 else room - (size - 1))
        return extents

    def spans(self) -> list[Any]:
        """The spatial extents of the kernel including the gaps of its dilation."""
        return [(k - 1) * d + 1 for k, d in zip(self.extents, self.dilation)]

    def padded(self, data: Sequence[Any]) -> list[Any]:
        """The spatial extents of the data including its padding."""
        return [extent + (b + a) for extent, b, a in zip(data, self.before, self.after)]


def windows(extents: Sequence[Any], stride: Any, padding: Any, dilation: Any, where: str) -> Windows:
    """Strides, padding and dilation as users give them, for a kernel of `extents`."""
    rank = len(extents)
    steps, holes = spatial(stride, rank, where, "stride"), spatial(dilation, rank, where, "dilation")
    before, after = pad_widths(padding, [(k - 1) * d + 1 for k, d in zip(extents, holes)], where)
    return Windows(tuple(extents), steps, holes, before, after)


def convolve(operator: str, data: te.Tensor, kernel: te.Tensor, stride: Any, padding: Any, dilation: Any, out_dtype: Any, *,
             layout: str, kernel_layout: str, groups: int = 1, name: str = "") -> te.Tensor:
    """The convolution of `data` with `kernel`; the result has the layout of the data.

    float16 and bfloat16 are summed in float32; processors that multiply pairs of bfloat16 (AVX-512 BF16, AMX) take denormal
    numbers as zero.
    """
    where = opening(operator, data, kernel)
    require_rank(data, layout, where)
    require_rank(kernel, kernel_layout, where)
    size, weight = dict(zip(layout, data.shape)), dict(zip(kernel_layout, kernel.shape))
    require_channels(size["C"], weight["I"], weight["O"], groups, (data, kernel), where)
    space = [letter for letter in layout if letter in SPACE]
    w = windows([weight[letter] for letter in space], stride, padding, dilation, where)
    padded = pad_space(data, layout, w)
    reduced = {letter: te.reduce_axis((0, weight[letter]), name=_REDUCED[letter]) for letter in kernel_layout if letter != "O"}
    results, per_group = dict(zip(space, w.results([size[letter] for letter in space], where))), weight["O"] // groups

    def formula(total: Any, *indices: Any) -> Any:
        i = dict(zip(layout, indices))
        channel = reduced["I"] if groups == 1 else i["C"] // per_group * weight["I"] + reduced["I"]
        at = {"N": i["N"], "C": channel, **w_indices(space, i, reduced, w)}
        by = {**reduced, "O": i["C"]}
        element, factor = padded(*[at[letter] for letter in layout]), kernel(*[by[letter] for letter in kernel_layout])
        return te.sum(total(element) * total(factor), axis=list(reduced.values()))

    shape = [{"N": size["N"], "C": weight["O"], **results}[letter] for letter in layout]
    record = ConvOp(operator, data, padded, kernel, layout, kernel_layout, w.strides, w.dilation, w.before, w.after, groups)
    dtype = result_dtype(data, kernel, out_dtype, where)
    return accumulated(shape, formula, record, dtype, name=name or operator, tag=operator, axes=[_LOOPS[d] for d in layout])


def w_indices(space: Sequence[str], i: Mapping[str, Any], reduced: Mapping[str, Any], w: Windows) -> dict[str, Any]:
    """The index, in each spatial dimension of the padded data, of element `reduced` of the window for the result at `i`."""
    return {letter: i[letter] * w.strides[d] + reduced[letter] * w.dilation[d] for d, letter in enumerate(space)}


def pad_space(data: te.Tensor, layout: str, w: Windows) -> te.Tensor:
    """The data with zeros around its spatial dimensions, always as a stage of its own."""
    space = [letter for letter in layout if letter in SPACE]
    before, after = dict(zip(space, w.before)), dict(zip(space, w.after))
    return pad(data, [before.get(letter, 0) for letter in layout], [after.get(letter, 0) for letter in layout], name="pad_temp")


def result_dtype(data: te.Tensor, kernel: te.Tensor, out_dtype: Any, where: str) -> str:
    """`out_dtype`, or, if it is None, the dtype of the data, which that of the kernel must equal."""
    if out_dtype is None and data.dtype != kernel.dtype:
        raise DTypeError(f"{where}: {data.name} holds {data.dtype} and {kernel.name} {kernel.dtype}",
                         hint=f"say what to add up in: out_dtype={str(data.dtype)!r}")
    require_room((data, kernel), out_dtype, where)
    return str(out_dtype or data.dtype)


def accumulated(shape: Sequence[Any], formula: Any, record: Any, dtype: str, *, name: str, tag: str,
                axes: Sequence[str]) -> te.Tensor:
    """The compute of `formula(convert, *indices)`; 16-bit floats are summed in float32 and rounded once."""
    wide = "float32" if dtype in _NARROW else dtype
    output: te.Tensor = te.compute(shape, lambda *i: formula(lambda e: e.astype(wide), *i), name=name, tag=tag, info=record,
                                 axes=axes)
    if wide == dtype:
        return output
    narrow: te.Tensor = te.compute(shape, lambda *i: output(*i).astype(dtype), name=f"{name}_{dtype}", tag="elemwise",
                                   info=te.ElementwiseOp("cast"), axes=axes)
    return narrow


def require_rank(tensor: te.Tensor, layout: str, where: str) -> None:
    """Raise ShapeError unless `tensor` has a dimension for each letter of `layout`."""
    if tensor.ndim != len(layout):
        raise ShapeError(f"{where}: {tensor.name} has the shape {shown(tensor.shape)}, {tensor.ndim} dimensions, and the "
                         f"layout {layout} has {len(layout)}")


def require_channels(channels: Any, inputs: Any, outputs: Any, groups: int, tensors: tuple[te.Tensor, te.Tensor],
                     where: str) -> None:
    """Raise ShapeError unless channels and groups fit."""
    data, kernel = tensors
    both = f"{data.name} {shown(data.shape)}, {kernel.name} {shown(kernel.shape)}"
    for count, what in ((channels, "channels of the data"), (outputs, "results of the kernel")):
        number = as_int(count)
        if (as_int(groups) or 0) < 1 or (number is not None and number % groups):
            raise ShapeError(f"{where}: {count!r} {what} are not divisible into {groups!r} groups: {both}")
    if differ(channels, inputs * groups):
        expected = f"{inputs!r}" if groups == 1 else f"{groups} groups of {inputs!r}"
        raise ShapeError(f"{where}: the data has {channels!r} channels and the kernel takes {expected}: {both}",
                         hint="check the layouts of both")
