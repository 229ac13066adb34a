"""Products of matrices: dense, matmul, batch_matmul."""

from __future__ import annotations

from typing import Any

from tedsl import te
from tedsl.errors import DTypeError, ShapeError
from topi.arguments import Extents, checked
from topi.extents import as_int, differ, opening, require_room, shown
from topi.kinds import InjectiveOp, MatmulOp, PanelsOp
from topi.tag import BATCH_MATMUL, BROADCAST, DENSE, ELEMWISE, MATMUL


@checked
def dense(data: te.Tensor, weight: te.Tensor, bias: te.Tensor | None = None, out_dtype: Any = None,
          auto_scheduler_rewritten_layout: str = "") -> te.Tensor:
    """data[i, k] * weight[j, k] summed over k, plus bias[j]: a fully connected layer.

    data: (batch, in_dim). weight: (out_dim, in_dim). bias: (out_dim,) or None. Returns: (batch, out_dim) of out_dtype, by
    default that of `data`. float16 and bfloat16 are summed in float32; where the processor multiplies pairs of bfloat16
    (AVX-512 BF16), denormal numbers count as zero. Same as torch.nn.functional.linear.

    Raises ShapeError if the inner dimensions differ.
    """
    return _matmul("dense", data, weight, bias, out_dtype, False, True, "T_dense", DENSE)


@checked
def matmul(tensor_a: te.Tensor, tensor_b: te.Tensor, bias: te.Tensor | None = None, out_dtype: Any = None,
           transpose_a: bool = False, transpose_b: bool = False, auto_scheduler_rewritten_layout: str = "") -> te.Tensor:
    """tensor_a[i, k] * tensor_b[k, j] summed over k, plus bias[j].

    tensor_a: (M, K), or (K, M) with transpose_a. tensor_b: (K, N), or (N, K) with transpose_b. bias: (N,) or None.
    Returns: (M, N) of out_dtype, by default that of `tensor_a`. Sums as in `dense`.

    Raises ShapeError if the inner dimensions differ.
    """
    name = f"T_matmul_{'T' if transpose_a else 'N'}{'T' if transpose_b else 'N'}"
    return _matmul("matmul", tensor_a, tensor_b, bias, out_dtype, transpose_a, transpose_b, name, MATMUL)


@checked
def batch_matmul(tensor_a: te.Tensor, tensor_b: te.Tensor, oshape: Extents | None = None, out_dtype: Any = None,
                 transpose_a: bool = False, transpose_b: bool = True, auto_scheduler_rewritten_layout: str = "") -> te.Tensor:
    """tensor_a[b, i, k] * tensor_b[b, j, k] summed over k, for each b.

    tensor_a: (B, M, K), or (B, K, M) with transpose_a. tensor_b: (B, N, K), or (B, K, N) without transpose_b. A batch of 1 is
    used for all of the other. oshape: the shape of the result, where it is known better than from the arguments.
    Returns: (B, M, N) of out_dtype, by default that of `tensor_a`. Sums as in `dense`.

    Raises ShapeError if the batches or the inner dimensions differ.
    """
    where = opening("batch_matmul", tensor_a, tensor_b)
    for name, tensor in (("tensor_a", tensor_a), ("tensor_b", tensor_b)):
        if tensor.ndim != 3:
            raise ShapeError(f"{where}: {name} has the shape {shown(tensor.shape)}, not 3 dimensions (batch, rows, columns)",
                             hint="topi.reshape or topi.expand_dims it first")
    a, b = tensor_a.shape[0], tensor_b.shape[0]
    if as_int(a) != 1 and as_int(b) != 1 and differ(a, b):
        raise ShapeError(f"{where}: batches of {a!r} and {b!r}, shapes {shown(tensor_a.shape)} and {shown(tensor_b.shape)}",
                         hint="they must be equal, or one of them 1")
    rows, columns, k = _extents(where, tensor_a, tensor_b, transpose_a, transpose_b)
    batch = b if as_int(a) == 1 else a
    shape = (batch, rows, columns) if oshape is None else tuple(oshape)
    if len(shape) != 3 or any(differ(x, y) for x, y in zip(shape, (batch, rows, columns))):
        raise ShapeError(f"{where}: oshape is {shown(shape)}, the product has the shape {shown((batch, rows, columns))}")
    wide, final = _dtypes(where, tensor_a, tensor_b, out_dtype)

    def formula(n: Any, i: Any, j: Any) -> Any:
        left = (0 if as_int(a) == 1 else n, *((k, i) if transpose_a else (i, k)))
        right = (0 if as_int(b) == 1 else n, *((j, k) if transpose_b else (k, j)))
        return te.sum(tensor_a(*left).astype(wide) * tensor_b(*right).astype(wide), axis=k)

    name = f"T_batch_matmul_{'T' if transpose_a else 'N'}{'T' if transpose_b else 'N'}"
    output = te.compute(shape, formula, name=name, tag=BATCH_MATMUL,
                      info=MatmulOp("batch_matmul", tensor_a, tensor_b, transpose_a, transpose_b, batched=True))
    return _narrowed(output, final)


@checked
def dense_pack_weights(weight: te.Tensor, wide: int, layout: str = "OI", group: int = 1) -> te.Tensor:
    """The weights of `dense` ("OI": results, terms) or of `matmul` ("IO") in panels of `wide` results, to be packed once.

    Returns: (panels, terms, wide), or with groups of terms, which divide them, (panels, terms / group, wide, group); the last
    panel is padded with zeros. `topi.schedules.packing.panels_in` says which are best. Raises ShapeError if the weights have
    not 2 dimensions, panels no results, or groups leave a rest of terms.
    """
    where = opening("dense_pack_weights", weight)
    if weight.ndim != 2 or layout not in ("OI", "IO") or wide < 1:
        raise ShapeError(f'{where}: the shape is {shown(weight.shape)}, layout "{layout}", panels have {wide} results',
                         hint='weights of 2 dimensions, "OI" or "IO", panels of 1 result or more')
    results, terms = weight.shape[layout.index("O")], weight.shape[layout.index("I")]
    if group < 1 or (group > 1 and (as_int(terms) or 1) % group):
        raise ShapeError(f"{where}: groups of {group} leave a rest of {terms!r} terms", hint="a group that divides them, or 1")

    def element(panel: Any, k: Any, lane: Any, *inside: Any) -> Any:
        at = panel * wide + lane
        term = k * group + inside[0] if inside else k
        value = weight(at, term) if layout == "OI" else weight(term, at)
        return value if (as_int(results) or 1) % wide == 0 else te.if_then_else(at < results, value, te.const(0, weight.dtype))

    shape = ((results + wide - 1) // wide, terms // group, wide, *((group,) if group > 1 else ()))
    packed: te.Tensor = te.compute(shape, element, name="packed_weight", tag="injective",
                                   info=InjectiveOp("dense_pack_weights"))
    return packed


@checked
def dense_unpack_weights(panels: te.Tensor, results: int) -> te.Tensor:
    """The weights (results, terms) of `dense` from what `dense_pack_weights` makes of them.

    A product reads the panels as they lie where these are whole vectors wide. Raises ShapeError if they are no panels of so
    many results.
    """
    where = opening("dense_unpack_weights", panels)
    size, group = (as_int(panels.shape[2]), as_int((*panels.shape, 1)[3])) if panels.ndim in (3, 4) else (None, None)
    if size is None or group is None or as_int(panels.shape[0]) != (results + size - 1) // size:
        raise ShapeError(f"{where}: {panels.name} {shown(panels.shape)} are no panels of {results} results",
                         hint="dense_pack_weights(weight, wide)")

    def element(j: Any, k: Any) -> Any:
        return panels(j // size, k, j % size) if panels.ndim == 3 else panels(j // size, k // group, j % size, k % group)

    weights: te.Tensor = te.compute((results, panels.shape[1] * group), element, name="unpacked_weight", tag="injective",
                                    info=PanelsOp("dense_unpack_weights", panels, size, group))
    return weights


def _matmul(operator: str, a: te.Tensor, b: te.Tensor, bias: te.Tensor | None, out_dtype: Any, transpose_a: bool,
            transpose_b: bool, name: str, tag: str) -> te.Tensor:
    where = opening(operator, a, b)
    for tensor in (a, b):
        if tensor.ndim != 2:
            raise ShapeError(f"{where}: {tensor.name} has the shape {shown(tensor.shape)}, not 2 dimensions",
                             hint="topi.reshape it first")
    rows, columns, k = _extents(where, a, b, transpose_a, transpose_b)
    if bias is not None and (bias.ndim != 1 or differ(bias.shape[0], columns)):
        raise ShapeError(f"{where}: bias {bias.name} has the shape {shown(bias.shape)}, the result {shown((rows, columns))}",
                         hint=f"bias has the shape ({columns!r},)")
    wide, final = _dtypes(where, a, b, out_dtype)

    def formula(i: Any, j: Any) -> Any:
        left, right = (k, i) if transpose_a else (i, k), (j, k) if transpose_b else (k, j)
        return te.sum(a(*left).astype(wide) * b(*right).astype(wide), axis=k)

    output = te.compute((rows, columns), formula, name=name, tag=tag, info=MatmulOp(operator, a, b, transpose_a, transpose_b))
    return _narrowed(output if bias is None else _with_bias(output, bias), final)


def _with_bias(x: te.Tensor, bias: te.Tensor) -> Any:
    return te.compute(x.shape, lambda i, j: x(i, j) + bias(j).astype(x.dtype), name=f"{x.name}_bias", tag=BROADCAST,
                      info=te.ElementwiseOp("add", broadcasts=True))


def _extents(where: str, a: te.Tensor, b: te.Tensor, transpose_a: bool, transpose_b: bool) -> tuple[Any, Any, Any]:
    """The number of rows and columns of the product, and the extent of the dimension that is summed over."""
    rows, inner = (a.shape[-1], a.shape[-2]) if transpose_a else (a.shape[-2], a.shape[-1])
    other, columns = (b.shape[-1], b.shape[-2]) if transpose_b else (b.shape[-2], b.shape[-1])
    if differ(inner, other):
        turned = ", ".join(f"{t.name} transposed" for t, is_turned in ((a, transpose_a), (b, transpose_b)) if is_turned)
        raise ShapeError(f"{where}: {inner!r} and {other!r} terms to sum, shapes {shown(a.shape)} and {shown(b.shape)}"
                         f"{f' ({turned})' if turned else ''}", hint="see transpose_a and transpose_b" if turned else
                         "the columns of the first are the rows of the second")
    return rows, columns, te.reduce_axis((0, inner), name="k")


def _dtypes(where: str, a: te.Tensor, b: te.Tensor, out_dtype: Any) -> tuple[Any, Any]:
    """The dtype that the sum is accumulated in, and the dtype of the result."""
    if a.dtype.is_float != b.dtype.is_float:
        raise DTypeError(f"{where}: {a.name} holds {a.dtype} and {b.name} {b.dtype}",
                         hint=f"convert one of them: topi.cast({b.name}, {str(a.dtype)!r})")
    require_room((a, b), out_dtype, where)
    final = a.dtype if out_dtype is None else te.const(0, out_dtype).dtype
    return ("float32" if final in ("float16", "bfloat16") else final), final


def _narrowed(wide: te.Tensor, dtype: Any) -> te.Tensor:
    """`wide` converted to `dtype`; `wide` itself if it has this dtype."""
    if wide.dtype == dtype:
        return wide
    return te.compute(wide.shape, lambda *i: wide(*i).astype(dtype), name=f"{wide.name}_{dtype}", tag=ELEMWISE,
                      info=te.ElementwiseOp("cast"))
