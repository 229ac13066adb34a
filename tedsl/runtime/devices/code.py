"""Code for a device: what a backend writes and a driver loads, as data that can be kept in a file."""

from __future__ import annotations

from tedsl.ir.dtype import DType
from tedsl.record import record


@record
class DeviceParameter:
    """A parameter of a kernel. array: the pointer to the first element of an array of `dtype`; otherwise a number of `dtype`.
    written: the kernel stores to the array.
    """

    name: str
    dtype: DType
    array: bool
    written: bool = False


@record
class DeviceFunction:
    """A kernel, which the host launches.

    axes: the thread axes whose sizes a launch gives after the parameters, in that order ("blockIdx.x", "threadIdx.x"); the
    others have size 1. dynamic_shared: one more number follows, the bytes of shared memory that the launch asks for.
    shared: the bytes of shared memory that each block has from its code. The sizes of a block in `fixed_block` (x, y, z) are
    those for which the code was made; 0 where any will do.
    """

    name: str
    parameters: tuple[DeviceParameter, ...]
    axes: tuple[str, ...]
    dynamic_shared: bool = False
    shared: int = 0
    fixed_block: tuple[int, int, int] = (0, 0, 0)


@record
class LoopLine:
    """A line of the printed loops of kernels, and the stage that its statement belongs to, "" where that is none or several."""

    text: str
    stage: str = ""


@record
class DeviceCode:
    """The kernels of a module for one device.

    form: the language of `text`: "ptx", "cl", "gcn", "spirv". target: its notation. loops: the kernels in TVM's notation,
    to be read. lines: the printed loops, to whose lines, counted from 1, the text refers (`.loc` of PTX); none where it does
    not. image: the file that a device takes, where that is not the text.
    """

    form: str
    text: str
    functions: tuple[DeviceFunction, ...]
    target: str
    loops: str = ""
    lines: tuple[LoopLine, ...] = ()
    image: bytes = b""

    def function(self, name: str) -> DeviceFunction:
        """Returns the kernel called `name`, which must be there."""
        return next(function for function in self.functions if function.name == name)
