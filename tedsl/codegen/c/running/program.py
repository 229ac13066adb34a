"""Runs a module of C: compiles it on the first call, loads it, and calls it through the same checks as machine code."""

from __future__ import annotations

import ctypes
import functools
import os
import tempfile
import threading
import weakref
from collections.abc import Sequence
from typing import Any

from tedsl.codegen.c.kernel import CFunction
from tedsl.codegen.c.running.compiler import Compiler, compiler_for, machine_options
from tedsl.codegen.llvm.linking import jit
from tedsl.errors import TedslError, entry
from tedsl.ir.expr import Var
from tedsl.runtime.call import CheckedCall
from tedsl.runtime.raw_form import RESULT
from tedsl.runtime.signature import Signature
from tedsl.runtime.timing import NO_PAUSES, Pauses, TimingResult
from tedsl.target.target import Target

# Behind the text of the module: each kernel with its arguments as 64-bit slots, and the launcher, which the loader sets.
_FLOATS = {"slot_f32": """
static float slot_f32(int64_t slot)
{
    const int32_t bits = (int32_t)slot;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
""", "slot_f64": """
static double slot_f64(int64_t slot)
{
    double value;
    memcpy(&value, &slot, sizeof value);
    return value;
}
"""}
_LAUNCHER = """
int32_t (*tedsl_launcher)(int32_t (*body)(void *, int64_t, int64_t), void *env, int64_t count);
int32_t tedsl_parallel_launch(int32_t (*body)(void *env, int64_t begin, int64_t end), void *env, int64_t count)
{
    return tedsl_launcher(body, env, count);
}
"""


def with_calls(source: str, functions: Sequence[CFunction]) -> str:
    """Returns the module with a function `int32_t NAME_slots(int64_t *)` for each kernel."""
    parts = [source]
    calls = "\n".join(_slots_call(function) for function in functions)
    parts += ["#include <string.h>\n"] if "slot_f" in calls else []
    parts += [text for name, text in _FLOATS.items() if name in calls]
    parts += [_LAUNCHER] if "tedsl_parallel_launch" in source else []
    return "".join([*parts, calls])


def _slots_call(function: CFunction) -> str:
    values = []
    for k, p in enumerate(function.parameters):
        slot = f"slots[{k}]"
        if p.kind == RESULT:
            values.append(f"({p.type})(void *)(slots + {k})")
        elif p.type.endswith("*"):
            values.append(f"({p.type})(intptr_t){slot}")
        elif p.type in ("float", "double"):
            values.append(f"slot_f{32 if p.type == 'float' else 64}({slot})")
        else:
            values.append(f"({p.type}){slot}")
    return (f"int32_t {function.name}_slots(int64_t *slots)\n{{\n    (void)slots;\n"
            f"    return {function.name}({', '.join(values)});\n}}\n")


class Program:
    """The shared object of a module, compiled when it is first asked for an address. quick: soon rather than fast."""

    def __init__(self, source: str, functions: Sequence[CFunction], target: Target, quick: bool) -> None:
        self._source, self._functions, self._target, self._quick = source, functions, target, quick
        self._library: ctypes.CDLL | None = None
        self._lock = threading.Lock()

    def address(self, name: str) -> int:
        """Returns the address of the call of the kernel `name` with slots."""
        with self._lock:
            if self._library is None:
                self._library = self._compiled()
            library = self._library
        return ctypes.cast(getattr(library, f"{name}_slots"), ctypes.c_void_p).value or 0

    def _compiled(self) -> ctypes.CDLL:
        compiler = compiler_for(self._target)
        options = ["-O1" if self._quick else "-O3", *machine_options(compiler, self._target)]
        source = with_calls(self._source, self._functions)
        if "#pragma omp" in source:
            return _with_openmp(compiler, source, options)
        library = loaded(compiler.shared_object(source, options))
        if "tedsl_parallel_launch" in self._source:
            ctypes.c_void_p.in_dll(library, "tedsl_launcher").value = jit.runtime_address("tedsl_parallel_launch")
        weakref.finalize(self, unload, library._handle)
        return library


def _with_openmp(compiler: Compiler, source: str, options: Sequence[str]) -> ctypes.CDLL:
    """Returns a module with loops of OpenMP, which run serially where the compiler has no library for them.
    It is never unloaded, for the threads of OpenMP go on.
    """
    try:
        return loaded(compiler.shared_object(source, [*options, "-fopenmp"]))
    except TedslError:
        return loaded(compiler.shared_object(source, options))


def loaded(image: bytes) -> ctypes.CDLL:
    """Loads a shared object, whose file is needed only meanwhile."""
    with tempfile.TemporaryDirectory(prefix="tedsl-") as folder:
        path = os.path.join(folder, "module.so")
        with open(path, "wb") as file:
            file.write(image)
        try:
            return ctypes.CDLL(path, mode=os.RTLD_NOW)
        except OSError as error:
            raise TedslError(f"the compiled module cannot be loaded: {str(error).replace(path, 'module.so')}",
                             hint="load the library of the C functions that it calls first: "
                                  "ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)") from None


def unload(handle: int) -> None:
    import _ctypes

    _ctypes.dlclose(handle)


class SourceCall(CheckedCall):
    """A kernel of a module in C: a checked call whose machine code is made when it is first called.

    general, compact: the names of the kernel for any strides and for compact arrays ("": there is none).
    """

    def __init__(self, signature: Signature, program: Program, general: str, compact: str, compact_scalars: tuple[Var, ...],
                 messages: Sequence[str]) -> None:
        super().__init__(signature, program, 0, int(bool(compact)), compact_scalars, messages,
                         functools.partial(jit.runtime_address, "tedsl_time_calls"))
        self._names = {False: general, True: compact}
        self._program = program

    def link(self) -> None:
        """Compiles and loads the module, unless it is loaded."""
        if not self._addresses[False]:
            self._addresses = {key: self._program.address(name) if name else 0 for key, name in self._names.items()}

    @entry
    def __call__(self, *args: Any, **named: Any) -> Any:
        self.link()
        return super().__call__(*args, **named)

    def time(self, args: Sequence[Any], number: int, repeat: int, min_repeat_ms: float,
             pauses: Pauses = NO_PAUSES) -> TimingResult:
        self.link()
        return super().time(args, number, repeat, min_repeat_ms, pauses)
