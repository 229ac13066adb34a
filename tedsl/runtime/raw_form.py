"""The raw form of a kernel, as C sees it: `int32_t NAME(pointers..., numbers...)`, without any check of its arguments.

One pointer for each array parameter, to its first element; then every scalar parameter and every variable of shapes, strides
and offsets, in the order of `Signature.scalars`; last, where the kernel returns a number, a pointer to the place for it.
Arrays of bool are bytes, of float16 and bfloat16 their bits. Numbers travel wide: integers and bool as `int64_t` (uint64 as
`uint64_t`), float64 as `double`, other floats as `float`, handles as `void *`. What the function returns is a status: 0, 1
where a workspace could not be allocated, 16 + k where assertion number k failed.
"""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.ir.dtype import DType
from tedsl.ir.expr import Var
from tedsl.record import record
from tedsl.runtime.signature import Signature

ARRAY, NUMBER, RESULT = "array", "number", "result"


@record
class RawParameter:
    """A parameter of the raw form, of `dtype`: an ARRAY (`written`: an output), a NUMBER, or the place of the RESULT.

    var: the data pointer or the variable; of a result a variable of its own.
    """

    name: str
    var: Var
    dtype: DType
    kind: str
    written: bool = False

    @property
    def type(self) -> str:
        """The type of the parameter in C."""
        if self.kind == ARRAY:
            return f"{'' if self.written else 'const '}{_element(self.dtype)} *"
        return f"{travelling_type(self.dtype)} *" if self.kind == RESULT else travelling_type(self.dtype)

    @property
    def declaration(self) -> str:
        """The parameter as a declaration of C: `const float *A`."""
        return f"{self.type}{'' if self.type.endswith('*') else ' '}{self.name}"


def raw_parameters(signature: Signature, scalars: Sequence[Var] | None = None) -> list[RawParameter]:
    """Returns the parameters of the raw form of a kernel, in order; their names are those of the program.

    scalars: the variables of a version that takes others than `signature.scalars`, as that for compact arrays does.
    """
    arrays = [RawParameter(p.name, p.buffer.data, p.dtype.element, ARRAY, p.written) for _, p in signature.tensors()]
    numbers = [RawParameter(v.name, v, v.dtype, NUMBER) for v in (signature.scalars if scalars is None else scalars)]
    of = signature.result
    return [*arrays, *numbers, *([] if of is None else [RawParameter("result", Var("result", of), of, RESULT, True)])]


def travelling_type(d: DType) -> str:
    """Returns the type of C in which a number of dtype `d` is passed to a kernel, and returned by one."""
    if d.is_handle:
        return "void *"
    if d.is_float:
        return "double" if d.bits == 64 else "float"
    return "uint64_t" if d.is_uint and d.bits == 64 else "int64_t"


def _element(d: DType) -> str:
    """Returns the type of an element in memory."""
    if d.is_bool:
        return "uint8_t"
    if d.is_float:
        return {16: "uint16_t", 32: "float", 64: "double"}[d.bits]
    return "void *" if d.is_handle else f"{'' if d.is_int else 'u'}int{d.bits}_t"
