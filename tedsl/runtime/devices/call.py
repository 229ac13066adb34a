"""The call of a function whose kernels run on a device: the host function runs here, with arrays that lie there."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError, entry
from tedsl.runtime.arguments import words
from tedsl.runtime.arguments.check import Prepared, prepare
from tedsl.runtime.array import NDArray, numpy_dtype
from tedsl.runtime.call import CheckedCall, number_in
from tedsl.runtime.callbacks import own_functions
from tedsl.runtime.devices.device import Device, device
from tedsl.runtime.devices.dlpack import array_of
from tedsl.runtime.devices.launch import Launches
from tedsl.runtime.devices.memory import DeviceArray, driver_for
from tedsl.runtime.devices.module import DeviceModule
from tedsl.runtime.devices.streams import current_stream
from tedsl.runtime.devices.table import kinds_for_code_of, runs_code_of
from tedsl.runtime.foreign import device_of_dlpack

ALIGNMENT = 16  # of the first element of an array, in bytes


class DeviceCall(CheckedCall):
    """A host function with the kernels of `code`: checks a call's arguments, which lie on one device, runs the function and
    raises its errors.
    """

    def __init__(self, host: CheckedCall, code: DeviceModule) -> None:
        super().__init__(host.signature, host.library, host.address, 0, (), host.messages, host.timer)
        self.code = code

    @entry
    def __call__(self, *args: Any, **named: Any) -> Any:
        if named:
            self.refuse_names(*named)
        prepared, place = self.prepare_on_device(args)
        with self.running_on(place):
            status = self.run(prepared)
        if status:
            self.fail(status)
        of = self.signature.result
        return None if of is None else number_in(prepared.slots[-1], of)

    def prepare(self, args: Sequence[Any]) -> Prepared:
        """Returns the checked arguments."""
        return self.prepare_on_device(args)[0]

    def prepare_on_device(self, args: Sequence[Any]) -> tuple[Prepared, Device]:
        """Returns the checked arguments, and the device on which all arrays lie."""
        sig, kind = self.signature, self.code.kind
        if len(args) != len(sig.params):
            raise ArgumentTypeError(words.wrong_count(sig, str(len(args))))
        arrays = {k: self._array(k, args[k], self._place_for(args)) for k, _ in sig.tensors()}
        place = device(kind, 0)
        for number, (k, array) in enumerate(arrays.items()):
            if not number:
                place, first = array.device, k
            elif array.device != place:
                raise ArgumentError(f"{words.argument(sig, k)} is an array on {array.device}, and {words.position(sig, first)} "
                                    f"lies on {place}: a function runs on one device",
                                    hint=f"copy it: x.copyto(tedsl.device({place.kind!r}, {place.device_id}))")
        shadows = [arrays[k].shadow() if k in arrays else arg for k, arg in enumerate(args)]
        try:
            prepared = prepare(sig, shadows)
        except ArgumentError as error:
            raise type(error)(error.problem, hint=_on_device(error.hint, place)) from None
        for slot, array in enumerate(arrays.values()):  # that of an empty array is an address of this process
            prepared.slots[slot] = array.address
        return prepared, place

    def place_of(self, args: Sequence[Any]) -> Device:
        """Returns the device on which a call with `args` runs."""
        return self.prepare_on_device(args)[1]

    def _place_for(self, args: Sequence[Any]) -> Device:
        """Returns the device to which arguments are to be copied: that of the first array on one, else one that is there."""
        kind = self.code.kind
        lying = [inner.device for arg in args if isinstance(arg, NDArray) and (inner := arg.device_array()) is not None]
        here = [place for place in lying if runs_code_of(place.kind, kind)]
        there = [place for name in kinds_for_code_of(kind) if (place := device(name, 0)).exist]
        return next(iter((*here, *there)), device(kind, 0))

    def _array(self, k: int, value: Any, place: Device) -> DeviceArray:
        """Returns argument k as an array on a device of the function's kind; `place` is such a device, for hints."""
        sig, kind = self.signature, self.code.kind
        there = f"tedsl.device({place.kind!r}, {place.device_id})"
        array = value.device_array() if isinstance(value, NDArray) else _of_other_library(value, kind)
        if array is not None and runs_code_of(array.device.kind, kind):
            if array.address % ALIGNMENT and array.size:
                raise ArgumentError(f"{words.argument(sig, k)} begins at an address that is no multiple of {ALIGNMENT} bytes, "
                                    "and kernels load whole vectors", hint="copy it: x.copyto(x.device)")
            return array
        where = words.argument(sig, k)
        name = sig.params[k].name
        name = name if name.isidentifier() else "x"
        if array is not None:
            raise ArgumentTypeError(f"{where} is an array on {array.device}, and the function runs on devices of {kind}",
                                    hint=f"copy it: {name} = {name}.copyto({there})")
        if not isinstance(value, NDArray) and not hasattr(value, "__array__"):
            raise ArgumentTypeError(f"{where} is {type(value).__name__}, and the function takes an array on a device of the "
                                    f"kind {kind}", hint=f"tedsl.nd.array(values, {there}) makes one")
        raise ArgumentTypeError(f"{where} lies in the memory of the CPU, and the function runs on a device of the kind {kind}",
                                hint=f"copy it there: {name} = tedsl.nd.array({name}, {there}), and a result back with "
                                     f"{name}.numpy()")

    @contextmanager
    def running_on(self, place: Device) -> Iterator[None]:
        """Context manager in which the host function finds its kernels, on the device `place`."""
        driver, loaded = driver_for(place), self.code.loaded_on(place)
        launches = Launches(driver, place.device_id, self.code.code, loaded, current_stream(place.kind, place.device_id))
        try:
            with own_functions(launches.functions):
                yield
        finally:
            launches.close()

    @contextmanager
    def timed(self, args: Sequence[Any]) -> Iterator[Callable[[int], float]]:
        """Context manager of a function that calls the host function n times with `args`, which are checked once, and returns
        the seconds between events of the device.
        """
        prepared, place = self.prepare_on_device(args)
        driver, stream = driver_for(place), current_stream(place.kind, place.device_id)
        status = ctypes.c_int32(0)

        def run(count: int) -> float:
            start = driver.record_event(place.device_id, stream)
            self.run_many(prepared, count, status)
            end = driver.record_event(place.device_id, stream)
            seconds = driver.elapsed(place.device_id, start, end)
            if status.value:
                self.fail(status.value)
            return seconds

        with self.running_on(place):
            yield run
            driver.synchronise(place.device_id, stream)


def _on_device(hint: str, place: Device) -> str:
    """Returns a hint for arrays of numpy as one for arrays on a device."""
    where = f"tedsl.device({place.kind!r}, {place.device_id})"
    hint = re.sub(r"numpy\.empty\((.+?), ('\w+')\)", rf"tedsl.nd.empty(\1, \2, {where})", hint)
    if "copy back" in hint:
        return "a converted copy would not take the result: allocate the output with the dtype and layout that it needs, " \
               f"tedsl.nd.empty(shape, dtype, {where})"
    hint = re.sub(r"x\.astype\(('\w+')\)", rf"tedsl.nd.array(x.numpy().astype(\1), {where})", hint)
    return hint.replace("numpy.ascontiguousarray(x)", "x.contiguous() of the library that made it")


def _of_other_library(value: Any, kind: str) -> DeviceArray | None:
    """Returns the array of another library on a device of `kind`; None for anything else."""
    if isinstance(value, type) or not hasattr(value, "__dlpack__"):
        return None
    place = device_of_dlpack(value)
    return array_of(value, place, numpy_dtype) if place is not None and runs_code_of(place.kind, kind) else None
