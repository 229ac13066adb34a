"""NDArray: an array with a device. On the CPU it wraps a numpy array whose memory it shares."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy

from tedsl.display.facts import facts_page
from tedsl.display.markup import element
from tedsl.errors import AllocationError, ArgumentError, ArgumentTypeError, DTypeError, entry, missing_attribute, type_in_words
from tedsl.ir.dtype import KNOWN, DType, dtype
from tedsl.runtime.device import CPU, Device, cpu

_ALIGNMENT = 64  # a cache line, and the widest vector
_LARGEST = 2**62  # bytes


def _without_arithmetic(array: NDArray, other: Any = None) -> Any:
    """An operator of an NDArray: numpy's arrays compute with it, it computes with nothing else."""
    if isinstance(other, (numpy.ndarray, numpy.generic)):
        return NotImplemented
    raise ArgumentTypeError("an NDArray holds values for kernels, and has no operators",
                            hint="compute with numpy, nd.array(x.numpy() + 1), or write a kernel of te.compute")


class NDArray:
    """An array for kernels. `numpy()` copies it out; `b[:] = x` and `copyfrom` copy in."""

    # One slot and nothing else: compiled entry points read the numpy array at a fixed offset (see array_type_address).
    __slots__ = ("_array",)
    _array: numpy.ndarray[Any, Any]

    def __new__(cls, array: numpy.ndarray[Any, Any]) -> NDArray:
        if type(array) is not numpy.ndarray:
            raise ArgumentTypeError(f"an NDArray wraps a numpy array, not {type(array).__name__}",
                                    hint="make one with nd.array(x) or nd.empty(shape, dtype)")
        self = object.__new__(cls)
        self._array = array
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._array.shape)

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def dtype(self) -> DType:
        return dtype(self._array.dtype)

    @property
    def device(self) -> Device:
        return cpu()

    ctx = device  # the old name

    def numpy(self) -> numpy.ndarray[Any, Any]:
        """Returns a copy as a numpy array."""
        return self._array.copy()

    asnumpy = numpy

    def copyfrom(self, source: Any) -> NDArray:
        """Copies `source`, of the same shape, into this array and returns it; numbers are converted to its dtype.

        Raises ArgumentError if the shapes differ.
        """
        values = source._array if isinstance(source, NDArray) else numpy.asarray(source)
        if values.shape != self.shape:
            raise ArgumentError(f"copyfrom: the source has shape {values.shape}, the array {self.shape}")
        self._array[...] = values
        return self

    def copyto(self, target: Device | NDArray, mem_scope: str | None = None) -> NDArray:
        """Copies this array into `target`, which is an NDArray of the same shape, or a device on which a new array is created;
        returns the copy.

        Raises ArgumentTypeError for any other target.
        """
        if isinstance(target, Device):
            return array(self._array, target)
        if not isinstance(target, NDArray):
            raise ArgumentTypeError(f"copyto takes a device or an NDArray, not {type(target).__name__}")
        return target.copyfrom(self)

    def __getitem__(self, index: Any) -> Any:
        return self._array[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        values = value._array if isinstance(value, NDArray) else value
        if isinstance(index, slice) and index == slice(None):
            self.copyfrom(numpy.broadcast_to(numpy.asarray(values), self.shape))
        else:
            self._array[index] = values

    def __len__(self) -> int:
        return len(self._array)

    if not TYPE_CHECKING:  # type checkers know what there is, and say so themselves
        def __getattr__(self, name: str) -> Any:
            if name == "_array":  # not yet: it is being copied
                raise AttributeError(name)
            instead = {one: f"x.numpy().{one}" for one in dir(numpy.ndarray)}
            raise missing_attribute("an NDArray", name, NDArray, instead)

        for _operator in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift",
                          "rshift"):
            locals()[f"__{_operator}__"] = locals()[f"__r{_operator}__"] = _without_arithmetic
        __lt__ = __le__ = __gt__ = __ge__ = _without_arithmetic
        __neg__ = __pos__ = __abs__ = __invert__ = _without_arithmetic
        del _operator

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if copy is False and dtype is not None and self._array.dtype != dtype:
            raise ValueError(f"an NDArray of {self._array.dtype} cannot become {dtype} without a copy")
        return numpy.array(self._array, dtype=dtype, copy=True) if copy else numpy.asarray(self._array, dtype=dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU, 0

    def to_dlpack(self) -> Any:
        """Returns a DLPack capsule that shares the memory."""
        return self.__dlpack__()

    def same_as(self, other: object) -> bool:
        return self is other

    def __reduce__(self) -> tuple[Any, ...]:
        return NDArray, (self._array,)

    def _repr_html_(self) -> str:
        return facts_page("NDArray", {"shape": self.shape, "dtype": self.dtype, "device": self.device},
                          element("pre", numpy.array2string(self._array, threshold=200)))

    def __repr__(self) -> str:
        return f"<tedsl.nd.NDArray shape={self.shape}, {self.device}>\n{self._array!r}"


def array_type_address() -> int:
    """Returns the address of the class NDArray, by which entry points recognise its objects."""
    return id(NDArray)


@entry
def empty(shape: Any, dtype: object = "float32", device: Device | None = None, mem_scope: str | None = None, *,
          ctx: Device | None = None) -> NDArray:
    """Returns a new array of `shape` and `dtype` with undefined content, aligned to 64 bytes. ctx: the old name of `device`.

    Raises ArgumentError for a negative dimension or a device that is not here, DTypeError for vectors and handles.
    """
    _require_cpu(_one_device("nd.empty", device, ctx))
    try:
        dims = tuple(map(operator.index, shape if hasattr(shape, "__iter__") else (shape,)))
    except TypeError:
        raise ArgumentTypeError(f"nd.empty: a shape is made of ints, not {shape!r}") from None
    if any(n < 0 for n in dims):
        raise ArgumentError(f"nd.empty: the shape {dims} has a dimension below 0")
    return NDArray(_aligned(dims, numpy_dtype(dtype)))


@entry
def array(arr: Any, device: Device | None = None, mem_scope: str | None = None, *, ctx: Device | None = None) -> NDArray:
    """Returns a new array with the content, shape and dtype that numpy gives `arr`. ctx: the old name of `device`.

    Raises ArgumentTypeError for objects that numpy cannot convert, masked arrays, and dtypes that tedsl does not have.
    """
    _require_cpu(_one_device("nd.array", device, ctx))
    try:
        values = arr._array if isinstance(arr, NDArray) else numpy.asarray(arr)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"nd.array: numpy cannot convert it to an array: {str(error).splitlines()[0]}",
                                hint="give numbers in nested lists, those of each level of equal length") from error
    if isinstance(arr, numpy.ma.MaskedArray):
        raise ArgumentTypeError("nd.array: a masked array has elements without a value", hint="fill them: arr.filled(0)")
    native = values.dtype.newbyteorder("=")
    try:
        dtype(native)
    except DTypeError as error:
        raise ArgumentTypeError(f"nd.array: there is no tedsl dtype for {values.dtype}") from error
    aligned = _aligned(values.shape, native)
    aligned[...] = values
    return NDArray(aligned)


def _aligned(shape: tuple[int, ...], of: numpy.dtype[Any]) -> numpy.ndarray[Any, Any]:
    size = of.itemsize
    for n in shape:
        size *= n
    if size > _LARGEST:
        raise ArgumentError(f"an array of shape {tuple(shape)} and dtype {of} has {size} bytes, more than memory can have")
    try:
        memory = numpy.empty(size + _ALIGNMENT, numpy.uint8)
    except MemoryError:
        raise AllocationError(f"an array of shape {tuple(shape)} and dtype {of} has {size} bytes, more than are free here",
                              hint="compute it in parts, or in a smaller dtype") from None
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start:start + size].view(of).reshape(shape) if size else numpy.empty(shape, of)


def numpy_dtype(name: object) -> numpy.dtype[Any]:
    """Returns the numpy dtype of that name; bfloat16 is that of ml_dtypes if it can be imported, else uint16.

    DTypeError for vectors and handles: arrays hold numbers.
    """
    of = dtype(name)
    if of.is_handle or of.is_vector:
        raise DTypeError(f"an array holds numbers, one in each element, and {of} is not the dtype of one",
                         hint=f"use one of {', '.join(KNOWN)}")
    if of != "bfloat16":
        return numpy.dtype(str(of))
    try:
        import ml_dtypes
    except ImportError:
        return numpy.dtype("uint16")
    bfloat16: numpy.dtype[Any] = numpy.dtype(ml_dtypes.bfloat16)
    return bfloat16


def _one_device(where: str, device: Device | None, ctx: Device | None) -> Device | None:
    """Returns the device that was given by either of its two names; None if neither was."""
    if device is not None and ctx is not None and device != ctx:
        raise ArgumentError(f"{where}: device is {device} and ctx is {ctx}", hint="they say the same: pass device")
    return ctx if device is None else device


def _require_cpu(device: Device | None) -> None:
    if device is not None and not isinstance(device, Device):
        raise ArgumentTypeError(f"the device is {device!r}, {type_in_words(device)}", hint="use cpu(), or device(\"cpu\")")
    if device is not None and not device.exist:
        raise ArgumentError(f"there is no device {device} here", hint="use cpu()")
