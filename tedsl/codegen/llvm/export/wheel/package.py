"""The Python files of a wheel: the module with its functions, type stubs, metadata."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Iterator, Sequence

from tedsl.codegen.llvm.export.c_entry import stored_result
from tedsl.codegen.llvm.export.header import described
from tedsl.codegen.llvm.export.library import Function
from tedsl.codegen.llvm.export.wheel import calls
from tedsl.errors import ModuleError
from tedsl.ir.dtype import DType
from tedsl.record import record
from tedsl.runtime.arguments import numpy_fields
from tedsl.runtime.signature import Signature, TensorParam
from tedsl.version import VERSION

PYTHON = "cp311"  # the first CPython whose stable ABI has all that extensions use
_NUMPY_TYPES = {"bool": "numpy.bool_", "bfloat16": "Any"}
_IMPORT = "from tedsl.runtime.arguments.numpy_fields import"


@record
class Wheel:
    """name: of the package; version; tag: of Python, ABI and platform."""

    name: str
    version: str
    tag: str

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.version}-{self.tag}.whl"

    @property
    def about(self) -> str:
        """The folder of its metadata."""
        return f"{self.name}-{self.version}.dist-info"


def python_files(wheel: Wheel, functions: Sequence[Function], levels: Sequence[tuple[str, Sequence[str]]]) -> dict[str, bytes]:
    """Returns the files of the package. levels: its extension modules, the best first, with the features that each needs."""
    kernels = [kernel_of(function) for function in functions]
    names = [kernel.name for kernel in kernels]
    wrong = next((name for name in names if not name.isidentifier() or keyword.iskeyword(name)), None)
    if wrong is not None:
        raise ModuleError(f"export_library: {wrong!r} cannot be the name of a function in Python",
                          hint="give it another name: build(s, args, name=...)")
    source = inspect.getsource(calls)
    module = [f'"""Kernels compiled by tedsl {VERSION}: {", ".join(names)}."""', "",
              f"from {wheel.name}._calls import Kernel, Parameter, load", "",
              "_functions = load(__name__, (", *_rows(levels), "), (",
              *(f"    {kernel!r}," for kernel in kernels), "))", *(f"{name} = _functions[{name!r}]" for name in names),
              f"__all__ = {names!r}", ""]
    return {f"{wheel.name}/__init__.py": "\n".join(module).encode(),
            f"{wheel.name}/__init__.pyi": stub(functions).encode(),
            f"{wheel.name}/_calls.py": source.replace(_IMPORT, f"from {wheel.name}._numpy_fields import").encode(),
            f"{wheel.name}/_numpy_fields.py": inspect.getsource(numpy_fields).encode(), f"{wheel.name}/py.typed": b""}


def _rows(levels: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """Lists the levels as lines of Python, with those of their features that can be found out where the wheel is installed."""
    for name, features in levels:
        yield f"    ({name!r}, {tuple(sorted(calls.TOLD.intersection(features)))!r}),"


def kernel_of(function: Function) -> calls.Kernel:
    """Returns what `calls.py` knows of a function."""
    sig = function.signature
    parameters = tuple(
        calls.Parameter(p.name, str(p.dtype), len(p.shape), p.written) if isinstance(p, TensorParam)
        else calls.Parameter(p.name, str(p.dtype), None) for p in sig.params)
    result = None if sig.result is None else str(stored_result(sig.result))
    return calls.Kernel(sig.name, function.symbol, parameters, result, function.messages)


def docstring(function: Function) -> str:
    """Returns the docstring of a builtin function, from whose first line `inspect.signature` reads its parameters."""
    sig = function.signature
    lines = [f"{sig.name}({', '.join([*_names(sig), '/'] if sig.params else [])})", "--", ""]
    lines += [described(param) for param in sig.params]
    if sig.result is not None:
        lines.append(f"Returns a number of dtype {sig.result}.")
    return "\n".join([*lines, *(f"ValueError: {message}" for message in dict.fromkeys(function.messages))])


def stub(functions: Sequence[Function]) -> str:
    """Returns the types of the functions, for type checkers and editors."""
    lines = ["from typing import Any", "", "import numpy", "from numpy.typing import NDArray", ""]
    for function in functions:
        sig = function.signature
        parameters = [f"{name}: {_annotation(param.dtype, isinstance(param, TensorParam))}"
                      for name, param in zip(_names(sig), sig.params)]
        result = "None" if sig.result is None else _annotation(sig.result, False)
        lines += [f"def {sig.name}({', '.join([*parameters, '/'] if parameters else [])}) -> {result}:", '    """',
                  *(f"    {line}" for line in docstring(function).splitlines()[3:]), '    """', "    ...", ""]
    return "\n".join(line.replace("\\", "\\\\") for line in lines)


def _names(sig: Signature) -> list[str]:
    """Lists names of the parameters that Python allows, each once."""
    names: list[str] = []
    for k, param in enumerate(sig.params):
        usable = param.name.isidentifier() and not keyword.iskeyword(param.name) and param.name not in names
        names.append(param.name if usable else f"argument_{k + 1}")
    return names


def _annotation(dtype: DType, is_array: bool) -> str:
    if is_array:
        return f"NDArray[{_NUMPY_TYPES.get(str(dtype), f'numpy.{dtype}')}]"
    return "float" if dtype.is_float else "bool" if dtype.is_bool else "int"


def _description(functions: Sequence[Function]) -> Iterator[str]:
    """Lists the functions with what they take, in Markdown."""
    for function in functions:
        yield f"- `{function.signature.name}({', '.join(_names(function.signature))})`"
        yield from (f"  - {described(param)}" for param in function.signature.params)


def metadata(wheel: Wheel, functions: Sequence[Function]) -> dict[str, bytes]:
    """Returns the files that say what the wheel is, but for the list of all files."""
    names = ", ".join(function.signature.name for function in functions)
    about = ["Metadata-Version: 2.1", f"Name: {wheel.name}", f"Version: {wheel.version}", f"Summary: Compiled kernels: {names}",
             "Requires-Python: >=3.11", "Requires-Dist: numpy>=1.26", "Description-Content-Type: text/markdown", "",
             "Kernels compiled by tedsl, as functions of numpy arrays:", "", *_description(functions), ""]
    built = ["Wheel-Version: 1.0", f"Generator: tedsl {VERSION}", "Root-Is-Purelib: false", f"Tag: {wheel.tag}", ""]
    return {f"{wheel.about}/METADATA": "\n".join(about).encode(errors="replace"),
            f"{wheel.about}/WHEEL": "\n".join(built).encode()}
