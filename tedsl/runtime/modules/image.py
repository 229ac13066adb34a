"""The image of a module: machine code with everything that a process needs to run it, and no address of the process that made
it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tedsl.errors import ModuleError, TedslError
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Var
from tedsl.ir.walk.serial import from_data, to_data
from tedsl.record import record
from tedsl.runtime.signature import Binding, ScalarParam, Signature, TensorParam
from tedsl.target.host import host
from tedsl.version import VERSION

FORMAT = 1  # the version of what `parts` writes; a reader refuses a larger one
CODE, BESIDE, _SOURCE, _LOOPS, _MANIFEST = "code.o", "beside/{}.o", "source.ll", "loops.tir", "manifest.json"


@record
class KernelRecord:
    """One function of an image. Its symbols follow from its name (`codegen/kernels/abi.py`).

    compact_scalars: the variables that the version for compact arrays takes, in order; None if there is no such version.
    messages: of its assertions. first_compact_message: how many of them stand before those of the compact version.
    runs_long: the GIL is released during every call.
    """

    signature: Signature
    compact_scalars: tuple[Var, ...] | None
    messages: tuple[str, ...]
    first_compact_message: int
    runs_long: bool

    @property
    def name(self) -> str:
        return self.signature.name


@record
class Image:
    """Compiled functions as data.

    target: its notation; triple, cpu, features: what that meant on the machine that compiled. code: the object, with the entry
    points for numpy arrays of `layout` (offsets of fields; None: there are none). beside: objects of imported code.
    process: C functions that the code takes from libraries of the process. source: LLVM IR before optimisation, with the
    imported texts; vectorize, unroll: with which passes it was optimised. loops: in TVM's notation. device: the notation of the
    device that runs the kernels which the functions launch, of the first imported module; "" if they launch none.
    """

    target: str
    triple: str
    cpu: str
    features: tuple[str, ...]
    kernels: tuple[KernelRecord, ...]
    code: bytes
    layout: tuple[int, ...] | None
    beside: tuple[bytes, ...] = ()
    process: tuple[str, ...] = ()
    source: str = ""
    loops: str = ""
    vectorize: bool = True
    unroll: bool = False
    device: str = ""

    def parts(self) -> dict[str, bytes]:
        """Returns the image as named pieces of bytes, from which `image_of` makes it again."""
        manifest = {
            "format": FORMAT, "tedsl": VERSION, "target": self.target, "triple": self.triple, "cpu": self.cpu,
            "features": list(self.features), "layout": self.layout, "process": list(self.process),
            "beside": len(self.beside), "vectorize": self.vectorize, "unroll": self.unroll,
            "kernels": to_data(tuple(map(_kernel_to_value, self.kernels)))}
        if self.device:
            manifest["device"] = self.device
        return {_MANIFEST: json.dumps(manifest, separators=(",", ":")).encode(), CODE: self.code,
                **{BESIDE.format(k): image for k, image in enumerate(self.beside)},
                _SOURCE: self.source.encode(), _LOOPS: self.loops.encode()}

    def check_host(self, where: str) -> None:
        """Raises ModuleError if this machine cannot run the image; `where` names the file in the message."""
        here = host()
        if self.triple.split("-")[0] != here.triple.split("-")[0] or "linux" not in self.triple:
            raise ModuleError(f"{where} was compiled for {self.triple}, and this machine is {here.triple}",
                              hint="build the program for this machine, or load the file on one like that")
        missing = sorted(set(self.features) - here.features)
        if missing:
            raise ModuleError(f"{where} was compiled for {self.cpu}, and this machine lacks {', '.join(missing)}",
                              hint='build for a processor that both have: target="llvm -mcpu=x86-64-v3"')


def image_of(parts: Mapping[str, bytes], where: str) -> Image:
    """Returns the image whose pieces are `parts`. ModuleError, which names the file `where`, says what is wrong with them."""
    try:
        manifest = json.loads(parts[_MANIFEST])
        check_format(manifest, where)
        text = {key: _as(str, manifest[key]) for key in ("target", "triple", "cpu")}
        layout = manifest["layout"]
        return Image(
            **text, features=tuple(_as(str, name) for name in manifest["features"]),
            kernels=tuple(map(_kernel_of, from_data(manifest["kernels"]))), code=parts[CODE],
            layout=None if layout is None else tuple(_as(int, offset) for offset in layout),
            beside=tuple(parts[BESIDE.format(k)] for k in range(_as(int, manifest["beside"]))),
            process=tuple(_as(str, name) for name in manifest["process"]),
            source=parts[_SOURCE].decode(), loops=parts[_LOOPS].decode(),
            vectorize=_as(bool, manifest["vectorize"]), unroll=_as(bool, manifest["unroll"]),
            device=_as(str, manifest.get("device", "")))
    except ModuleError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError, TedslError) as error:
        raise ModuleError(f"{where} is not a module that tedsl wrote: {error}", hint="export the module again") from error


def check_format(manifest: Any, where: str) -> None:
    """Raises ModuleError if `manifest` is that of a newer version of the format, or says no version."""
    version = manifest.get("format") if isinstance(manifest, dict) else None
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ModuleError(f"{where} does not say which version of the format it has", hint="export the module again")
    if version > FORMAT:
        raise ModuleError(f"{where} has version {version} of the format, written by tedsl {manifest.get('tedsl')}; "
                          f"tedsl {VERSION} reads version {FORMAT} and older",
                          hint="load it with a tedsl as new as that, or export it again with this one")


def _kernel_to_value(kernel: KernelRecord) -> tuple[Any, ...]:
    sig = kernel.signature
    params = tuple((p.name, p.buffer, p.written) if isinstance(p, TensorParam) else (p.name, p.var) for p in sig.params)
    bindings = tuple((b.var, b.kind, b.param, b.dim, b.expr, b.scale) for b in sig.bindings)
    return (sig.name, params, bindings, sig.scalars, sig.noalias, sig.result,
            kernel.compact_scalars, kernel.messages, kernel.first_compact_message, kernel.runs_long)


def _kernel_of(value: Any) -> KernelRecord:
    name, params, bindings, scalars, noalias, result, compact_scalars, messages, first, runs_long = value
    arrays_and_numbers = tuple(TensorParam(*param) if len(param) == 3 else ScalarParam(*param) for param in params)
    signature = Signature(_as(str, name), arrays_and_numbers, tuple(Binding(*binding) for binding in bindings), scalars,
                          _as(bool, noalias), None if result is None else _as(DType, result))
    return KernelRecord(signature, compact_scalars, tuple(_as(str, m) for m in messages), _as(int, first),
                        _as(bool, runs_long))


def _as(kind: type[Any], value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{value!r} is not {kind.__name__}")
    return value


