"""NDArray: an array with a device. On the CPU it wraps a numpy array whose memory it shares, elsewhere a DeviceArray."""

from __future__ import annotations

import math
import operator
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

import numpy

from tedsl.display.facts import facts_page
from tedsl.display.markup import element
from tedsl.errors import (
    AllocationError,
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    entry,
    missing_attribute,
    type_in_words,
)
from tedsl.ir.build import as_dims
from tedsl.ir.dtype import KNOWN, DType, dtype
from tedsl.ir.dtype import dtype as dtype_of
from tedsl.runtime.devices.device import CPU, Device, cpu
from tedsl.runtime.devices.dlpack import capsule_of
from tedsl.runtime.devices.memory import DeviceArray, new_array

Array = numpy.ndarray[Any, Any]
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

    # One slot and nothing else: compiled entry points read the numpy array at a fixed offset (see array_type_address), and go
    # the slow way for anything else in the slot.
    __slots__ = ("_array",)
    _array: numpy.ndarray[Any, Any] | DeviceArray

    def __new__(cls, array: numpy.ndarray[Any, Any] | DeviceArray) -> NDArray:
        if type(array) is not numpy.ndarray and type(array) is not DeviceArray:
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
        return self._array.device if isinstance(self._array, DeviceArray) else cpu()

    ctx = device  # the old name

    def numpy(self) -> numpy.ndarray[Any, Any]:
        """Returns a copy as a numpy array."""
        return self._array.copy_out() if isinstance(self._array, DeviceArray) else self._array.copy()

    asnumpy = numpy

    def host_array(self, where: str) -> Array:
        """Returns the numpy array that this one wraps; for one on a device raises ArgumentTypeError, beginning with `where`."""
        if isinstance(self._array, DeviceArray):
            targets = {"sim": "cuda"}  # whose code its devices run
            raise ArgumentTypeError(f"{where} is an array on {self.device}, and the function runs on the CPU",
                                    hint="copy it: x.copyto(tedsl.cpu()), and a result back with y.copyto(x); or build the "
                                         f'function for the device: target="{targets.get(self.device.kind, self.device.kind)}"')
        return self._array

    def device_array(self) -> DeviceArray | None:
        """Returns the array on a device that this one wraps; None for an array on the CPU."""
        return self._array if isinstance(self._array, DeviceArray) else None

    def _read(self) -> Array:
        """Returns the values: of an array on the CPU the numpy array itself."""
        return self._array.copy_out() if isinstance(self._array, DeviceArray) else self._array

    def copyfrom(self, source_array: Any) -> NDArray:
        """Copies `source_array`, of the same shape, into this array and returns it; numbers are converted to its dtype.

        Raises ArgumentError if the shapes differ.
        """
        given = source_array._array if isinstance(source_array, NDArray) else numpy.asarray(source_array)
        if given.shape != self.shape:
            raise ArgumentError(f"copyfrom: the source has shape {given.shape}, the array {self.shape}")
        mine = self._array
        if isinstance(mine, DeviceArray) and isinstance(given, DeviceArray) and _share_a_driver(mine, given):
            mine.copy_from(given)
            return self
        values = given.copy_out() if isinstance(given, DeviceArray) else given
        if isinstance(mine, DeviceArray):
            mine.copy_in(values)
        else:
            mine[...] = values
        return self

    def copyto(self, target: Device | NDArray, mem_scope: str | None = None) -> NDArray:
        """Copies this array into `target`, which is an NDArray of the same shape, or a device on which a new array is created;
        returns the copy.

        Raises ArgumentTypeError for any other target.
        """
        if isinstance(target, Device):
            return _like(self, _one_device("copyto", target, None))
        if not isinstance(target, NDArray):
            raise ArgumentTypeError(f"copyto takes a device or an NDArray, not {type(target).__name__}")
        return target.copyfrom(self)

    def __getitem__(self, index: Any) -> Any:
        return self._read()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        whole = isinstance(index, slice) and index == slice(None)
        if whole and isinstance(value, NDArray) and value.shape == self.shape:
            self.copyfrom(value)
            return
        values = value._read() if isinstance(value, NDArray) else value
        if whole:
            given = numpy.asarray(values)
            try:
                spread = numpy.broadcast_to(given, self.shape)
            except ValueError:
                raise ArgumentError(f"the array has the shape {self.shape}, what is assigned to its elements {given.shape}",
                                    hint="assign an array of that shape, or one that numpy broadcasts to it") from None
            self.copyfrom(spread)
        elif isinstance(self._array, DeviceArray):
            changed = self._array.copy_out()
            changed[index] = values
            self._array.copy_in(changed)
        else:
            self._array[index] = values

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    if not TYPE_CHECKING:  # type checkers know what there is, and say so themselves
        def __getattr__(self, name: str) -> Any:
            if name == "_array":  # not yet: it is being copied
                raise AttributeError(name)
            instead = {one: f"x.numpy().{one}" for one in dir(numpy.ndarray)}
            instead["is_view"] = "numpy.shares_memory(x.numpy(), y.numpy()), which tells whether two arrays share memory"
            raise missing_attribute("an NDArray", name, NDArray, instead)

        for _operator in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift",
                          "rshift"):
            locals()[f"__{_operator}__"] = locals()[f"__r{_operator}__"] = _without_arithmetic
        __lt__ = __le__ = __gt__ = __ge__ = _without_arithmetic
        __neg__ = __pos__ = __abs__ = __invert__ = _without_arithmetic
        del _operator

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if copy is False and ((dtype is not None and self._array.dtype != dtype) or isinstance(self._array, DeviceArray)):
            raise ValueError(f"an NDArray of {self._array.dtype} on {self.device} cannot become {dtype or 'a numpy array'} "
                             "without a copy")
        values = self._read()
        return numpy.array(values, dtype=dtype, copy=True) if copy else numpy.asarray(values, dtype=dtype)

    def __dlpack__(self, **options: Any) -> Any:
        if isinstance(self._array, DeviceArray):
            return capsule_of(self._array, options.get("stream"))
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.device.device_type, self.device.device_id) if isinstance(self._array, DeviceArray) else (CPU, 0)

    def to_dlpack(self) -> Any:
        """Returns a DLPack capsule that shares the memory."""
        return self.__dlpack__()

    def _create_view(self, shape: Any, dtype: object = None, relative_byte_offset: int = 0) -> NDArray:
        """Returns an array of `shape` over the memory of this one, from a byte on; dtype: None for that of this array.

        Raises ArgumentError where it would reach beyond this array, and for arrays whose elements do not follow one another.
        """
        mine = self._array
        dims = tuple(map(operator.index, as_dims(shape)))
        of = mine.dtype if dtype is None else numpy_dtype(dtype_of(dtype))
        compact = mine.is_compact if isinstance(mine, DeviceArray) else mine.flags.c_contiguous
        if not compact:
            raise ArgumentError(f"a view of an array with the strides {mine.strides}: its elements do not follow one another",
                                hint="copy it first: nd.array(x.numpy())")
        end = relative_byte_offset + math.prod(dims) * of.itemsize
        if min(dims, default=0) < 0 or relative_byte_offset < 0 or relative_byte_offset % of.itemsize \
                or end > math.prod(mine.shape) * mine.dtype.itemsize:
            raise ArgumentError(f"a view of shape {dims} of {of} from byte {relative_byte_offset} on does not fit an array of "
                                f"shape {self.shape} of {self.dtype}")
        if isinstance(mine, DeviceArray):
            return NDArray(DeviceArray(mine.device, mine.owner, mine.address + relative_byte_offset, dims, of))
        return NDArray(mine.reshape(-1).view(numpy.uint8)[relative_byte_offset:end].view(of).reshape(dims))

    def same_as(self, other: object) -> bool:
        return self is other

    def __reduce__(self) -> tuple[Any, ...]:
        return NDArray, (self._read(),)  # another process has devices of its own

    @property
    def _tvm_handle(self) -> NDArray:
        """The array itself: views of it, of classes of a program, give it to calls."""
        return self

    @property
    def handle(self) -> NDArray:
        """The array itself: there is no pointer beside it."""
        return self

    def __parts__(self) -> tuple[Any, ...]:
        """What `save_json` writes of it: dtype, shape and the bytes, in base 64."""
        values = numpy.ascontiguousarray(self._read())
        return "NDArray", self.dtype, self.shape, b64encode(values.tobytes()).decode()

    def _repr_html_(self) -> str:
        return facts_page("NDArray", {"shape": self.shape, "dtype": self.dtype, "device": self.device},
                          element("pre", numpy.array2string(self._read(), threshold=200)))

    def __repr__(self) -> str:
        return f"<tedsl.nd.NDArray shape={self.shape}, {self.device}>\n{self._read()!r}"


def of_parts(of: str, shape: tuple[int, ...], content: str) -> NDArray:
    """The array that `__parts__` wrote; ValueError where the bytes do not fill the shape."""
    made = empty(shape, of)
    values = numpy.frombuffer(b64decode(content, validate=True), made.numpy().dtype)
    made.copyfrom(values.reshape(shape))
    return made


def array_type_address() -> int:
    """Returns the address of the class NDArray, by which entry points recognise its objects."""
    return id(NDArray)


@entry
def empty(shape: Any, dtype: object = "float32", device: Device | None = None, mem_scope: str | None = None, *,
          ctx: Device | None = None) -> NDArray:
    """Returns a new array of `shape` and `dtype` with undefined content, aligned to 64 bytes. ctx: the old name of `device`.

    An array of vectors, as of float32x4, is one of numbers, whose last dimension are the lanes.

    Raises ArgumentError for a negative dimension or a device that is not here, DTypeError for handles.
    """
    place = _one_device("nd.empty", device, ctx)
    try:
        dims = tuple(map(operator.index, as_dims(shape)))
    except TypeError:
        raise ArgumentTypeError(f"nd.empty: a shape is made of ints, not {shape!r}",
                                hint="for example (16, 16); // divides integers, / gave one in Python 2") from None
    if any(n < 0 for n in dims):
        raise ArgumentError(f"nd.empty: the shape {dims} has a dimension below 0")
    of = dtype_of(dtype)
    return NDArray(_made(place, (*dims, of.lanes) if of.is_vector else dims, numpy_dtype(of.element)))


@entry
def array(arr: Any, device: Device | None = None, mem_scope: str | None = None, *, ctx: Device | None = None) -> NDArray:
    """Returns a new array with the content, shape and dtype that numpy gives `arr`. ctx: the old name of `device`.

    Raises ArgumentTypeError for objects that numpy cannot convert, masked arrays, and dtypes that tedsl does not have.
    """
    place = _one_device("nd.array", device, ctx)
    if isinstance(arr, NDArray):
        return _like(arr, place)
    try:
        values = numpy.asarray(arr)
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
    made = _made(place, values.shape, native)
    if isinstance(made, DeviceArray):
        made.copy_in(values)
    else:
        made[...] = values
    return NDArray(made)


def _made(place: Device | None, shape: tuple[int, ...], of: numpy.dtype[Any]) -> numpy.ndarray[Any, Any] | DeviceArray:
    """Returns a new array on the device `place`, None for the CPU, with undefined content."""
    if place is None or place.device_type == CPU:
        return aligned(shape, of)
    return new_array(place, shape, of)


def _like(source: NDArray, place: Device | None) -> NDArray:
    """Returns a copy of an array on the device `place`."""
    made = NDArray(_made(place, source.shape, source._array.dtype.newbyteorder("=")))
    made.copyfrom(source)
    return made


def _share_a_driver(a: DeviceArray, b: DeviceArray) -> bool:
    return a.device.driver is b.device.driver and a.dtype == b.dtype and a.is_compact and b.is_compact


def aligned(shape: tuple[int, ...], of: numpy.dtype[Any]) -> numpy.ndarray[Any, Any]:
    """An array of the processor whose first element stands at a multiple of a cache line; its elements are not set.

    Raises AllocationError if memory has no room for it.
    """
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
    """Returns the numpy dtype of that name; bfloat16 is that of ml_dtypes if it can be imported, else uint16. A type of the
    program's is that of its bits.

    DTypeError for vectors and handles: arrays hold numbers.
    """
    of = dtype(name).storage
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
    """Returns the device that was given by either of its two names, None if neither was; it is there."""
    if device is not None and ctx is not None and device != ctx:
        raise ArgumentError(f"{where}: device is {device} and ctx is {ctx}", hint="they say the same: pass device")
    given = ctx if device is None else device
    if given is not None and not isinstance(given, Device):
        raise ArgumentTypeError(f"the device is {given!r}, {type_in_words(given)}", hint="use cpu(), or device(\"cpu\")")
    if given is not None and (missing := given.missing):
        raise ArgumentError(f"there is no device {given} here: {missing}", hint=given.instead)
    return given
