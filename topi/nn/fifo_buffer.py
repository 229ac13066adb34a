"""A buffer whose oldest elements make room for new ones."""

from __future__ import annotations

from typing import Any

from tedsl import te
from tedsl.errors import ShapeError
from topi.extents import as_int, axis_of, differ, opening, require_one_dtype, shown
from topi.injective import injective


def fifo_buffer(data: te.Tensor, buffer: te.Tensor, axis: int) -> te.Tensor:
    """The last buffer.shape[axis] elements along `axis` of `buffer` with `data` behind it, in the shape of `buffer`."""
    where = opening("fifo_buffer", data, buffer)
    along = axis_of(axis, buffer.ndim, where)
    new, length = as_int(data.shape[along]) if data.ndim == buffer.ndim else None, as_int(buffer.shape[along])
    others = [d for d in range(buffer.ndim) if d != along]
    if data.ndim != buffer.ndim or any(differ(data.shape[d], buffer.shape[d]) for d in others) \
            or (new is not None and length is not None and new > length):
        raise ShapeError(f"{where}: {data.name} {shown(data.shape)} does not fit into {buffer.name} {shown(buffer.shape)}",
                         hint=f"the same but for dimension {along}, which may be smaller")
    require_one_dtype([data, buffer], where)
    kept = buffer.shape[along] - data.shape[along]

    def formula(*i: Any) -> Any:
        later = [i[d] + data.shape[d] if d == along else i[d] for d in range(buffer.ndim)]
        return te.if_then_else(i[along] < kept, buffer(*later), data(*[i[d] - kept if d == along else i[d] for d in
                                                                       range(buffer.ndim)]))

    return injective("fifo_buffer", buffer.shape, formula, name="new_buffer", tag="injective,fifo_buffer")
