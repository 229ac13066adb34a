"""DeviceModule: the kernels of a program, in the language of a device, as the module that the host module imports."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tedsl.display.text import Text
from tedsl.errors import ArgumentError, ArgumentTypeError, LoweringError, ModuleError, OptionError, TedslError
from tedsl.ir.dtype import dtype
from tedsl.runtime.array import NDArray, numpy_dtype
from tedsl.runtime.devices.api import LoadedCode
from tedsl.runtime.devices.code import DeviceCode, DeviceFunction, DeviceParameter, LoopLine
from tedsl.runtime.devices.device import Device, device
from tedsl.runtime.devices.launch import launch_kernel
from tedsl.runtime.devices.memory import driver_for
from tedsl.runtime.devices.streams import current_stream
from tedsl.runtime.devices.table import runs_code_of
from tedsl.runtime.modules.container import pack, unpack

FORMAT = 1  # the version of what `save_to_bytes` writes; a reader refuses a larger one
_MANIFEST, _TEXT, _LOOPS, _IMAGE = "manifest.json", "code.txt", "loops.tir", "image"
_TITLES = {"ptx": "PTX", "cl": "OpenCL C", "cu": "CUDA C", "gcn": "AMDGPU assembly", "spirv": "SPIR-V"}
_IMAGES = {"gcn": "o", "spirv": "spv"}  # suffixes of the files that devices take, by the language of the text


class DeviceModule:
    """Kernels for devices of `kind`. Each device that runs them loads the code once. others: what makes further texts;
    a module from a file has none.
    """

    def __init__(self, code: DeviceCode, kind: str, others: Mapping[str, Callable[[], str]] = MappingProxyType({})) -> None:
        self.code, self.kind, self._others = code, kind, others
        self._loaded: dict[tuple[object, int], LoadedCode] = {}

    @property
    def type_key(self) -> str:
        return self.kind

    @property
    def imported_modules(self) -> list[Any]:
        return []

    @property
    def function_names(self) -> tuple[str, ...]:
        return tuple(function.name for function in self.code.functions)

    def loaded_on(self, place: Device) -> LoadedCode:
        """Returns the code on a device; DeviceError if the device is not there or refuses the code."""
        driver = driver_for(place)
        key = (driver, place.device_id)
        if key not in self._loaded:
            self._loaded[key] = driver.load(place.device_id, self.code)
        return self._loaded[key]

    def get_function(self, name: str, query_imports: bool = False) -> Callable[..., Any]:
        """Returns the kernel called `name`, to be called with its arguments and then the sizes of its axes, as its host
        function does; OptionError if there is none.
        """
        if name not in self.function_names:
            raise OptionError(f"the module has no kernel {name!r}; it has: {', '.join(self.function_names)}")
        return DeviceKernel(self, self.code.function(name))

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return self.get_function(name)

    def get_source(self, fmt: str = "") -> Text:
        """Returns the kernels as text: what the driver is given ("ptx", "cl"; "asm" stands for the one that it is), or as loops
        ("tir"); of a module for CUDA that was built here also as CUDA C ("cu"), which is not what runs.

        "" is CUDA C of the target cuda, as in TVM, where kernels can be written so, and what the driver is given elsewhere.
        """
        form = self.code.form
        if fmt == "" and "cu" in self._others and self.code.target.startswith("cuda"):
            with suppress(LoweringError):  # matrices of tensor cores, asynchronous copies
                return self.get_source("cu")
        if fmt in ("", "asm", form):
            return Text(self.code.text, _TITLES.get(form, form))
        if fmt == "tir":
            return Text(self.code.loops, "Loops")
        if fmt in self._others:
            return Text(self._others[fmt](), _TITLES.get(fmt, fmt))
        known = ", ".join(f'"{one}"' for one in (form, *self._others))
        raise ArgumentError(f"get_source: there is no format {fmt!r}", hint=f'choose {known} or "tir"')

    def save(self, file_name: Any, fmt: str = "") -> None:
        """Writes the text of the kernels to a file, as TVM does: `get_source(fmt)`; "" is by the suffix of the file, and
        without one what the driver is given. Of kernels
        for AMD's devices "o" is the object, of SPIR-V "spv" its words.

        Raises ArgumentError for a format that there is not, ModuleError for a file that cannot be written.
        """
        if not isinstance(file_name, (str, os.PathLike)):
            raise ArgumentTypeError(f"save takes the path of a file, not {shown_value(file_name)}", hint='save("kernels.ptx")')
        path = Path(file_name)
        fmt = fmt or path.suffix.removeprefix(".") or "asm"
        try:
            if self.code.image and fmt == _IMAGES.get(self.code.form):
                path.write_bytes(self.code.image)
                return
            path.write_text(str(self.get_source(fmt)), encoding="utf-8")
        except OSError as error:
            raise ModuleError(f"{path} cannot be written: {error.strerror}") from error

    def save_to_bytes(self) -> bytes:
        """Returns the kernels as bytes, of which `device_module_of` makes an equal module."""
        manifest = {"format": FORMAT, "kind": self.kind, "form": self.code.form, "target": self.code.target,
                    "functions": [_function_to_value(function) for function in self.code.functions],
                    "lines": [[line.text, line.stage] for line in self.code.lines]}
        return pack({_MANIFEST: json.dumps(manifest).encode(), _TEXT: self.code.text.encode(),
                     _LOOPS: self.code.loops.encode(), **({_IMAGE: self.code.image} if self.code.image else {})})

    def __repr__(self) -> str:
        return f"<tedsl.DeviceModule {', '.join(self.function_names)}; {self.kind}>"


def shown_value(value: object) -> str:
    """Returns an argument as a message shows it: a number as it is, of all else the class."""
    return repr(value) if isinstance(value, (int, float)) else f"an object of {type(value).__name__}"


class DeviceKernel:
    """A kernel of a module, to be launched by itself: `kernel(arguments..., sizes of the axes...)`. Arrays are NDArrays on the
    device; their sizes are not checked, for only the host function knows which the kernel needs.
    """

    def __init__(self, module: DeviceModule, function: DeviceFunction) -> None:
        self.module, self.function = module, function

    def __call__(self, *args: Any) -> None:
        function = self.function
        names = [*(param.name for param in function.parameters), *function.axes,
                 *(["bytes of shared memory"] if function.dynamic_shared else [])]
        if len(args) != len(names):
            raise ArgumentTypeError(f"{function.name} takes {len(names)} arguments ({', '.join(names)}), {len(args)} given")
        places: list[Device] = []
        given: list[int | float] = []
        count = len(function.parameters)
        for param, arg in zip(function.parameters, args):
            given.append(self._array(param, arg, places) if param.array else self._number(param, arg))
        for name, arg in zip(names[count:], args[count:]):
            if isinstance(arg, bool) or not isinstance(arg, int) or arg < 0:
                raise ArgumentTypeError(f"{function.name}: the size {name} is an int of at least 0, not {shown_value(arg)}",
                                        hint=f"call it with {', '.join(names)}, in this order")
            given.append(arg)
        place = places[0] if places else device(self.module.kind, 0)
        launch_kernel(self.module.loaded_on(place), function, tuple(given), current_stream(place.kind, place.device_id))

    def _array(self, param: DeviceParameter, arg: object, places: list[Device]) -> int:
        """Returns the address of an argument, which is an array of the dtype of `param` on the device of those before it,
        `places`, to which that of this one is added.
        """
        inner = arg.device_array() if isinstance(arg, NDArray) else None
        where = f"{self.function.name}: {param.name}"
        if inner is None or not runs_code_of(inner.device.kind, self.module.kind):
            raise ArgumentTypeError(f"{where} is an NDArray on a device of the kind {self.module.kind}, not {shown_value(arg)}")
        if inner.dtype != numpy_dtype(param.dtype):
            raise ArgumentTypeError(f"{where} is an array of {param.dtype}, and the given one holds {inner.dtype}")
        if places and inner.device != places[0]:
            raise ArgumentError(f"{where} lies on {inner.device}, and other arrays on {places[0]}: a kernel runs on one device",
                                hint=f"copy it: x.copyto(tedsl.device({places[0].kind!r}, {places[0].device_id}))")
        places.append(inner.device)
        return inner.address

    def _number(self, param: DeviceParameter, arg: object) -> int | float:
        if not isinstance(arg, (int, float)) or (isinstance(arg, float) and not param.dtype.is_float):
            raise ArgumentTypeError(f"{self.function.name}: {param.name} is a number of dtype {param.dtype}, not "
                                    f"{shown_value(arg)}")
        return arg

    def __repr__(self) -> str:
        return f"<tedsl.DeviceKernel {self.function.name}>"


def device_module_of(data: bytes, where: str) -> DeviceModule:
    """Returns the module of the bytes of `save_to_bytes`; ModuleError, which names the file `where`, says what is wrong."""
    pieces = unpack(data, where)
    try:
        manifest = json.loads(pieces[_MANIFEST])
        if manifest["format"] > FORMAT:
            raise ModuleError(f"{where} was written by a newer tedsl: its format is {manifest['format']}",
                              hint="load it with a tedsl as new as that")
        functions = tuple(_function_of(value) for value in manifest["functions"])
        lines = tuple(LoopLine(_text(text), _text(stage)) for text, stage in manifest.get("lines", ()))
        code = DeviceCode(_text(manifest["form"]), pieces[_TEXT].decode(), functions, _text(manifest["target"]),
                          pieces[_LOOPS].decode(), lines, pieces.get(_IMAGE, b""))
        return DeviceModule(code, _text(manifest["kind"]))
    except ModuleError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError, TedslError) as error:
        raise ModuleError(f"{where} does not hold kernels that tedsl wrote: {error}", hint="export the module again") from error


def _function_to_value(function: DeviceFunction) -> list[Any]:
    parameters = [[p.name, str(p.dtype), p.array, p.written] for p in function.parameters]
    return [function.name, parameters, list(function.axes), function.dynamic_shared, function.shared,
            list(function.fixed_block)]


def _function_of(value: Any) -> DeviceFunction:
    name, parameters, axes, dynamic, shared, block = value
    made = tuple(DeviceParameter(_text(n), dtype(of), bool(array), bool(written)) for n, of, array, written in parameters)
    x, y, z = block
    return DeviceFunction(_text(name), made, tuple(map(_text, axes)), bool(dynamic), int(shared), (int(x), int(y), int(z)))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value
