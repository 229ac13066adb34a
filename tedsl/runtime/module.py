"""Module, the result of `build`: functions that run, and the texts that they were compiled from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tedsl.display.text import Text
from tedsl.errors import ArgumentError, ArgumentTypeError, ModuleError, OptionError, TedslError, with_entries
from tedsl.ir.func import PrimFunc
from tedsl.runtime.call import CheckedCall, unpicklable
from tedsl.runtime.devices.call import DeviceCall
from tedsl.runtime.devices.device import Device
from tedsl.runtime.devices.module import DeviceModule
from tedsl.runtime.modules.image import Image
from tedsl.runtime.modules.protocol import RuntimeModule
from tedsl.runtime.signature import Signature
from tedsl.runtime.timing import Pauses
from tedsl.target.target import Target

if TYPE_CHECKING:
    from tedsl.runtime.timing import TimingResult

_FORMATS = {"ll": "ll", "llvm": "ll", "asm": "asm", "s": "asm", "tir": "tir", "c": "c", "h": "h"}
TITLES = {"ll": "LLVM IR", "asm": "Assembly", "tir": "Loops", "c": "C", "h": "Header"}  # of the formats, in a notebook


def _joined_text(modules: Sequence[Module], form: str) -> str:
    return "\n".join([module._sources[form]() for module in modules])


@with_entries
class Module:
    """Compiled functions. Calling the module calls its first function, whose name is `entry_name`.

    functions: name -> callable; calls: name -> the checked call behind it, for the timer; sources: format -> a function that
    returns the text; refusal: why the module cannot run here, or ""; image: returns the compiled functions as data.
    code_key: the key of the code in the cache on disk; "" if it is not kept there. loops: returns the functions after all
    passes, each in its versions; None where only texts are known. loaded_as: "library" or "system_lib" for a module that was
    loaded from linked code.
    """

    # `__call__` is a slot of the object, not a method: the interpreter then goes from `mod(a, b)` to the compiled entry point
    # without running any Python.
    __slots__ = ("__call__", "__weakref__", "_calls", "_functions", "_image", "_imported", "_loops", "_refusal", "_sources",
                 "_target", "code_key", "entry_name", "loaded_as")
    __call__: Callable[..., Any]

    def __init__(self, functions: Mapping[str, Callable[..., Any]], calls: Mapping[str, CheckedCall],
                 sources: Mapping[str, Callable[[], str]], target: object, refusal: str = "",
                 image: Callable[[], Image] | None = None, code_key: str = "",
                 loops: Callable[[], Sequence[PrimFunc]] | None = None) -> None:
        self.code_key, self.loaded_as = code_key, ""
        self.entry_name = next(iter(functions))
        self._functions, self._calls, self._sources = dict(functions), dict(calls), dict(sources)
        self._target, self._refusal, self._image, self._loops = target, refusal, image, loops
        self._imported: list[RuntimeModule] = []
        self.__call__ = self._functions[self.entry_name]

    @staticmethod
    def joined(modules: Sequence[Module]) -> Module:
        """A module with the functions of several, which are loaded; its texts are theirs, one after the other."""
        functions = {name: found for module in modules for name, found in module._functions.items()}
        calls = {name: call for module in modules for name, call in module._calls.items()}
        forms = [form for form in modules[0]._sources if all(form in module._sources for module in modules)]
        sources = {form: partial(_joined_text, modules, form) for form in forms}
        return Module(functions, calls, sources, modules[0]._target)

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return self.get_function(name)

    def get_function(self, name: str, query_imports: bool = False) -> Callable[..., Any]:
        """Returns the function called `name`; OptionError, which is an AttributeError, if there is none.

        query_imports: look into imported modules, too.
        """
        if isinstance(name, str) and name in self._functions:
            return self._functions[name]
        for module in self._imported if query_imports else ():
            try:
                return module.get_function(name, True)
            except AttributeError:
                continue
        raise OptionError(f"the module has no function {name!r}; it has: {', '.join(self._functions)}",
                          hint="query_imports=True looks into imported modules, too" if self._imported and not query_imports
                          else "")

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._functions

    @property
    def function_names(self) -> tuple[str, ...]:
        return tuple(self._functions)

    @property
    def entry_func(self) -> Callable[..., Any]:
        return self._functions[self.entry_name]

    def signature(self, name: str) -> Signature:
        """Returns the parameters of the function called `name`, which is compiled code."""
        self.get_function(name)
        return self._calls[name].signature

    @property
    def format(self) -> str:
        """The suffix of files that hold such modules without losing anything."""
        return "tedsl"

    def implements_function(self, func_name: str, query_imports: bool = False) -> bool:
        """Tells whether the module has a function of this name; query_imports: or a module that it imports."""
        try:
            self.get_function(func_name, query_imports)
        except AttributeError:
            return False
        return True

    @property
    def type_key(self) -> str:
        """The backend of its functions; "library" of a module that was loaded from a shared library, an object or an archive,
        "system_lib" of one that is linked into the program."""
        return self.loaded_as or self.backend

    @property
    def backend(self) -> str:
        """The backend of its functions: "llvm" for those that launch kernels, which are imported."""
        target = self._target
        return "llvm" if isinstance(target, Target) and target.is_device else str(getattr(target, "kind", "llvm"))

    @property
    def target(self) -> object:
        return self._target

    def get_source(self, fmt: str = "") -> Text:
        """Returns the module as text: "ll" (LLVM IR), "asm" (assembly) or "tir" (the loops, in TVM's notation); for the target
        "c" it is "c", "h" (the header) or "tir". The first of them is the default.

        A str that a console prints as it is, and a notebook shows as a block. Raises ArgumentError for any other format.
        """
        form = next(iter(self._sources)) if fmt == "" else _FORMATS.get(fmt, "") if isinstance(fmt, str) else ""
        if form not in self._sources:
            *some, last = (f'"{name}"' for name in self._sources)
            raise ArgumentError(f"get_source: there is no format {fmt!r}", hint=f"choose {', '.join(some)} or {last}")
        return Text(self._sources[form](), TITLES[form])

    def compiled_loops(self) -> tuple[PrimFunc, ...]:
        """Returns the functions after all passes, as they became machine code: each in a version for any arrays, and where its
        strides are symbolic in one for compact arrays.

        Raises ModuleError where only texts are known, as of modules from files.
        """
        if self._loops is None:
            raise ModuleError(f"the loops of {self!r} are not known", hint="build it in this program, for the target llvm")
        return tuple(self._loops())

    def time_evaluator(self, func_name: str, dev: Device | None = None, number: int = 10, repeat: int = 1,
                       min_repeat_ms: float = 0, f_preproc: str = "", *, ctx: Device | None = None,
                       limit_zero_time_iterations: int = 100, cooldown_interval_ms: float = 0, repeats_to_cooldown: int = 1,
                       cache_flush_bytes: int = 0) -> Callable[..., TimingResult]:
        """Returns a function of the kernel's arguments that calls it number x repeat times and returns a TimingResult, in
        seconds per call.

        Arguments are checked once; the loop is machine code. One untimed call goes first. min_repeat_ms: the least
        milliseconds of a repetition, for which `number` grows. Before a repetition cache_flush_bytes are written elsewhere, or
        with f_preproc "cache_flush_cpu_non_first_arg" twice the largest cache; after every repeats_to_cooldown repetitions the
        program rests for cooldown_interval_ms. ctx: the old name of `dev`. limit_zero_time_iterations: accepted and not needed,
        as no repetition takes no time. Raises OptionError if there is no such function, ArgumentError for a device that is not
        here; the returned function raises it for counts below 1.
        """
        flush_all = "cache_flush_cpu_non_first_arg"
        if f_preproc not in ("", flush_all):
            raise ArgumentError(f"time_evaluator: there is no f_preproc={f_preproc!r}", hint=f'the only one is "{flush_all}"')
        flushed = 2 * self._largest_cache() if f_preproc else cache_flush_bytes
        pauses = Pauses(cooldown_interval_ms, repeats_to_cooldown, flushed)
        pauses.check()
        dev = ctx if dev is None else dev
        if dev is not None and not isinstance(dev, Device):
            raise ArgumentTypeError(f"time_evaluator: dev is a Device, not {dev!r}", hint="use cpu()")
        if dev is not None and not dev.exist:
            raise ArgumentError(f"time_evaluator: there is no device {dev} here: {dev.missing}", hint=dev.instead)
        self.get_function(func_name)
        if self._refusal:
            raise TedslError(self._refusal)
        call = self._calls[func_name]

        def evaluate(*args: Any) -> TimingResult:
            if dev is not None and not call.place_of(args).same_place(dev):
                raise ArgumentError(f"time_evaluator: {func_name} runs on {call.place_of(args)}, not on {dev}",
                                    hint="give the device of the arrays")
            return call.time(args, number, repeat, min_repeat_ms, pauses)

        return evaluate

    def timed(self, func_name: str, *args: Any) -> AbstractContextManager[Callable[[int], float]]:
        """Context manager of a function that calls the function `func_name` n times with `args` and returns the seconds.

        Arguments are checked once; the loop is machine code. For measurements of one's own, as in turns with another kernel.
        Raises OptionError if there is no such function.
        """
        self.get_function(func_name)
        if self._refusal:
            raise TedslError(self._refusal)
        return self._calls[func_name].timed(args)

    @staticmethod
    def _largest_cache() -> int:
        """Returns the bytes of the largest cache of the machine that the program runs on."""
        machine = Target("llvm").machine
        return max(machine.l1.size, machine.l2.size, machine.l3.size)

    # --- leaving the process -----------------------------------------------------------------------------------------

    def import_module(self, module: RuntimeModule) -> None:
        """Imports `module`: `get_function(name, query_imports=True)` finds its functions, and it is exported with this one.

        Raises ArgumentTypeError for what does not have the methods of a RuntimeModule, ArgumentError where a module would
        import itself.
        """
        if not isinstance(module, RuntimeModule):
            raise ArgumentTypeError(f"import_module: {module!r} is not a module",
                                    hint="it needs type_key, get_function, get_source and save_to_bytes")
        waiting: list[object] = [module]
        while waiting:
            other = waiting.pop()
            if other is self:
                raise ArgumentError("import_module: a module cannot import itself, directly or through another module")
            waiting += getattr(other, "imported_modules", [])
        self._imported.append(module)

    @property
    def imported_modules(self) -> list[RuntimeModule]:
        """The modules that were imported into this one, such as those for other devices."""
        return list(self._imported)

    def image(self) -> Image:
        """Returns the compiled functions as data. ModuleError says why a module has no such form."""
        if self._image is None:
            raise ModuleError(f"{self!r} has no machine code of tedsl that could be written",
                              hint='build it for target="llvm"; get_source() is the text of a module for another target')
        return self._image()

    def save(self, file_name: Any, fmt: str = "") -> None:
        """Writes the module to a file, in the format `fmt` ("": by its suffix), as `export_library` does."""
        from tedsl.runtime.modules.files import write_module

        write_module(self, file_name, fmt, {})

    def export_library(self, file_name: Any, fcompile: Callable[..., Any] | None = None, **options: Any) -> None:
        """Writes the module to a file that another process, or a program in another language, can use; by its suffix:

        - `.tedsl`: for `tedsl.runtime.load_module`, with no linker on either side.
        - `.so`: a shared library for programs in C, and for `load_module`. linker: "ld", "cc" or "ziglang", by default the
          first that is there.
        - `.h`: the C header; `.o`, `.ll`, `.s`: the library as an object, LLVM IR or assembly; `.tar`: objects and header.
        - `.whl`: a Python package that needs no tedsl, named by the file: kernels-1.0.whl. levels: modules of the same
          functions for other processors, of which the best is chosen at import.

        prefix: how all symbols of a library begin, by default the name of the file without its "lib". fcompile: a function
        (file name, names of objects, **options) that makes the file instead, as of `tedsl.contrib.cc`.

        Raises ModuleError for other suffixes, for what cannot leave the process, and where a linker is missing or fails.
        """
        from tedsl.runtime.modules.files import write_module

        if fcompile is not None:
            write_module(self, file_name, "so", {**options, "fcompile": fcompile})
        else:
            write_module(self, file_name, "", options)

    export = export_library

    def save_to_bytes(self) -> bytes:
        """Returns the module as the content of a `.tedsl` file."""
        from tedsl.runtime.modules.files import to_bytes

        return to_bytes(self)

    def __reduce__(self) -> tuple[Any, ...]:
        raise unpicklable("a Module")

    def __copy__(self) -> Module:
        return self  # it is code, not data

    def __deepcopy__(self, memo: object) -> Module:
        return self

    def _repr_html_(self) -> str:
        from tedsl.display.page import folded, fragment

        return fragment(repr(self), folded("Loops", self.get_source("tir"), is_open=True),
                        folded(TITLES[next(iter(self._sources))], self.get_source()))

    def __repr__(self) -> str:
        takes = ", ".join(f"{name}({self._calls[name].signature.names})" if name in self._calls else name
                          for name in self._functions)
        return f"<tedsl.Module {takes}; target {self._target}{'; does not run here' if self._refusal else ''}>"


def on_device(host: Module, code: DeviceModule, target: Target) -> Module:
    """Returns the module of the functions of `host`, which launch the kernels of `code` on the devices of `target`."""
    calls = {name: DeviceCall(call, code) for name, call in host._calls.items()}
    module = Module(calls, calls, host._sources, target, image=lambda: replace(host.image(), device=str(target)))
    module.import_module(code)
    return module


def refused(name: str, reason: str) -> Callable[..., Any]:
    """Returns a function that raises an error with the `reason` why it cannot run here."""

    def refuse(*args: Any) -> None:
        raise TedslError(f"{name}: {reason}", hint="get_source works; build for this machine to run it")

    return refuse
