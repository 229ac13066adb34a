"""Functions of the loop IR and modules of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, IntEnum
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, ClassVar, TextIO, cast

from tedsl.errors import ArgumentError, ArgumentTypeError, LoweringError, OptionError, missing_attribute, type_in_words
from tedsl.ir.buffer import Buffer
from tedsl.ir.dtype import HANDLE
from tedsl.ir.expr import Var
from tedsl.ir.node import FrozenDict, Node, node, set_field
from tedsl.ir.stmt import Stmt

RECOMPUTED = "tedsl.recomputed"  # attribute of a function: a stage that computes elements of an argument again
_STYLES = ("light", "dark", "ansi")  # of TVM's show
REFUSED = "tedsl.refused"  # attribute of a function that is only read and must not run: the words of its refusal


class Accesses(Enum):
    """How loops handle accesses that are not proved to stay inside their memory.
    PROVED: they are refused, made a requirement on the arrays of the call, or, where the index depends on data, clamped.
    DATA_AT_RUN_TIME: as PROVED, but a data-dependent index is bounds-checked before use (`passes/checked`).
    DATA_TRUSTED: as PROVED, but a data-dependent index is assumed to be in range.
    AT_RUN_TIME: they are left as written, and every access is bounds-checked while the loops run (`passes/checked`).
    """

    PROVED = "proved"
    DATA_AT_RUN_TIME = "data at run time"
    DATA_TRUSTED = "data trusted"
    AT_RUN_TIME = "at run time"

    @property
    def name_stages(self) -> bool:
        """Whether loops are annotated with the stage that they compute, for the errors of run-time checks."""
        return self in (Accesses.AT_RUN_TIME, Accesses.DATA_AT_RUN_TIME)


class CallingConv(IntEnum):
    """How a function is called, its attribute "calling_conv": by others, with arrays and numbers, or as a kernel."""

    DEFAULT = 0
    C_PACKED_FUNC = 1
    DEVICE_KERNEL_LAUNCH = 2


class Number(int):
    """An attribute that is an integer: `value` is it, as of the constants that TVM makes of such attributes."""

    __slots__ = ()

    @property
    def value(self) -> int:
        return int(self)


@node
class PrimFunc(Node):
    """A function of scalars and buffers: `params` in order, each a scalar Var or a handle that `buffer_map` maps to a
    buffer. A buffer among the `params` gets a handle of its name; a pointer of `ir_builder` is the handle that it is made of.

    attrs: "global_symbol" (its name), "tir.noalias" (the buffers do not overlap), "from_legacy_te_schedule", ...
    Variables in the shapes and strides of the buffers are bound by the arrays of the call.
    """

    params: tuple[Var, ...]
    body: Stmt
    ret_type: Any = None
    buffer_map: Mapping[Var, Buffer] = FrozenDict()
    attrs: Mapping[str, Any] = FrozenDict()
    children: ClassVar[tuple[str, ...]] = ("body",)
    binders: ClassVar[tuple[str, ...]] = ("params",)

    def adopt(self) -> None:
        """Replace buffers among the parameters by handles of the same name, and add them to `buffer_map`; pointers of a
        builder by their variables.
        """
        given: tuple[Any, ...] = tuple([param.as_expr() if hasattr(param, "as_expr") else param for param in self.params])
        buffers = {param: Var(param.name, HANDLE) for param in given if isinstance(param, Buffer)}
        set_field(self, "params", tuple([buffers.get(param, param) for param in given]))
        set_field(self, "buffer_map", FrozenDict({**self.buffer_map, **{var: buffer for buffer, var in buffers.items()}}))

    def __post_init__(self) -> None:
        if not all(isinstance(param, Var) and isinstance(buffer, Buffer) for param, buffer in self.buffer_map.items()):
            raise ArgumentTypeError(f"PrimFunc: the field buffer_map maps parameters to buffers, not {dict(self.buffer_map)!r}")
        if any(type(value) is int for value in self.attrs.values()):
            set_field(self, "attrs", FrozenDict({key: Number(value) if type(value) is int else value
                                                 for key, value in self.attrs.items()}))

    @property
    def name(self) -> str:
        return str(self.attrs.get("global_symbol", "main"))

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The buffers of the parameters, in their order."""
        return tuple(self.buffer_map[p] for p in self.params if p in self.buffer_map)

    if not TYPE_CHECKING:  # type checkers refuse the call
        def __call__(self, *args: Any, **named: Any) -> Any:
            raise ArgumentTypeError("a PrimFunc cannot be called: it says what is computed, and is not compiled yet",
                                    hint="f = tedsl.build(func), then f(a, b)")

    def with_body(self, new_body: Stmt) -> PrimFunc:
        """A copy of this function with another body; itself if the body is the same object."""
        return self if new_body is self.body else self.replace(body=new_body)

    def with_attr(self, attr_key_or_dict: str | Mapping[str, Any], attr_value: Any = None) -> PrimFunc:
        """A copy of this function with one attribute set, or with several from a dict."""
        new = {attr_key_or_dict: attr_value} if isinstance(attr_key_or_dict, str) else dict(attr_key_or_dict)
        return self.replace(attrs=FrozenDict({**self.attrs, **new}))

    def without_attr(self, attr_key: str) -> PrimFunc:
        """A copy of this function without an attribute, which need not be there."""
        return self.replace(attrs=FrozenDict({key: value for key, value in self.attrs.items() if key != attr_key}))

    def specialize(self, param_map: Mapping[Var, Any]) -> PrimFunc:
        """A copy of this function for known values of parameters; `tedsl/ir/walk/specialize.py` says which."""
        from tedsl.ir.walk.specialize import specialized

        return specialized(self, param_map)

    def script(self, tir_prefix: str = "T", show_meta: bool = False) -> str:
        """The function as TVMScript (tedsl/ir/tvmscript); `readable()` gives it for reading, `str()` as TVM 0.8 does.

        tir_prefix: the name of `tvm.script.tir` in the text. show_meta: accepted; there is no metadata.
        """
        return _script(self, tir_prefix)

    def readable(self) -> str:
        """The loops in the notation for reading, which `show()` prints (tedsl/ir/script)."""
        from tedsl.ir.script import script

        return script(self)

    def astext(self, show_meta_data: bool = True) -> str:
        """TVM's text, as `str()`. show_meta_data: accepted; there is none."""
        return str(self)

    def show(self, file: TextIO | str | None = None, colour: bool | None = None, *, style: str | None = None,
             black_format: bool | None = None) -> None:
        """Print `readable()`, in colour on a terminal unless `colour` says otherwise; in a notebook, display it.

        style ("light", "dark", "ansi", by position too) and black_format are TVM's: accepted; there is one style.
        """
        _show(self, None if file in _STYLES else cast("TextIO | None", file), colour)

    def _repr_html_(self) -> str:
        return _shown(f"PrimFunc: {self.name}", self)


def marked(func: PrimFunc, findings: Iterable[LoweringError]) -> PrimFunc:
    """Returns `func` as one that must not run, with the words of all `findings` behind those that it has already."""
    known = [str(func.attrs[REFUSED])] if REFUSED in func.attrs else []
    return func.with_attr(REFUSED, "\nand: ".join(dict.fromkeys([*known, *map(str, findings)])))


def refuse_marked(func: PrimFunc) -> None:
    """Raises LoweringError, in the words that `marked` noted, for a function that must not run."""
    words = func.attrs.get(REFUSED)
    if words is not None:
        raise LoweringError(str(words))


@node
class GlobalVar(Node):
    """The name of a function of a module."""

    name_hint: str


class _Functions(dict[GlobalVar, "PrimFunc"]):
    """Functions by their names, whose items are a list, as those of TVM's maps."""

    if not TYPE_CHECKING:
        def items(self):
            return list(dict.items(self))


class IRModule:
    """A mapping from names to PrimFuncs. Printing the module prints its functions."""

    def __init__(self, functions: Mapping[Any, PrimFunc] | None = None) -> None:
        self._functions: dict[str, PrimFunc] = {}
        if functions is not None and not isinstance(functions, Mapping):
            raise ArgumentTypeError(f"a module is made of functions by name, got {functions!r}",
                                    hint='IRModule({"main": func})')
        for name, func in (functions or {}).items():
            self[name] = func

    if not TYPE_CHECKING:  # type checkers refuse the call
        def __call__(self, *args: Any, **named: Any) -> Any:
            raise ArgumentTypeError("an IRModule cannot be called: it says what is computed, and is not compiled yet",
                                    hint="f = tedsl.build(mod), then f(a, b)")

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:
            functions = self.__dict__.get("_functions", {})
            of = next(iter(functions), "main") if len(functions) < 2 else "NAME"
            raise missing_attribute("a module of functions", name, self, {
                field: f"mod[{of!r}].{own}, of a function of the module"
                for field, own in (("body", "body"), ("args", "params"), ("params", "params"), ("buffer_map", "buffer_map"))})

    @staticmethod
    def from_expr(expr: PrimFunc) -> IRModule:
        """A module of one function, under its global_symbol."""
        if not isinstance(expr, PrimFunc):
            raise ArgumentTypeError(f"IRModule.from_expr takes a function, not {type_in_words(expr)}",
                                    hint="make a PrimFunc of statements: tir.PrimFunc([A, B], stmt)")
        return IRModule({expr.name: expr})

    @property
    def functions(self) -> dict[GlobalVar, PrimFunc]:
        return _Functions({GlobalVar(name): func for name, func in self._functions.items()})

    def get_global_vars(self) -> list[GlobalVar]:
        return [GlobalVar(name) for name in self._functions]

    def get_global_var(self, name: str) -> GlobalVar:
        """The GlobalVar called `name`; OptionError if there is no such function."""
        self[name]
        return GlobalVar(name)

    def __getitem__(self, name: str | GlobalVar) -> PrimFunc:
        key = name.name_hint if isinstance(name, GlobalVar) else name
        if key not in self._functions:
            raise OptionError(f"the module has no function {key!r}; it has: {', '.join(self._functions) or '(none)'}")
        return self._functions[key]

    def __setitem__(self, name: str | GlobalVar, func: PrimFunc) -> None:
        if not isinstance(func, PrimFunc):
            raise ArgumentError(f"an IRModule holds PrimFuncs, not {type(func).__name__}")
        if not isinstance(name, (str, GlobalVar)):
            raise ArgumentTypeError(f"the name of a function in an IRModule is a string or a GlobalVar, not {name!r}",
                                    hint='IRModule({"main": func})')
        self._functions[name.name_hint if isinstance(name, GlobalVar) else name] = func

    def __contains__(self, name: object) -> bool:
        return (name.name_hint if isinstance(name, GlobalVar) else name) in self._functions

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def items(self) -> list[tuple[str, PrimFunc]]:
        return list(self._functions.items())

    def update(self, other: IRModule | Mapping[Any, PrimFunc]) -> None:
        """Adds the functions of `other`, replacing those of the same name."""
        for name, func in other.items():
            self[name] = func

    def update_func(self, var: str | GlobalVar, func: PrimFunc) -> None:
        """Adds a function, in place of one of that name."""
        self[var] = func

    def functions_items(self) -> list[tuple[GlobalVar, PrimFunc]]:
        """The functions with their names, in order of the names."""
        return [(GlobalVar(name), self._functions[name]) for name in sorted(self._functions)]

    def _move(self) -> IRModule:
        """This module, as TVM hands one over to a pass."""
        return self

    def map(self, transform: Any) -> IRModule:
        """A module with `transform` applied to each function."""
        return IRModule({name: transform(func) for name, func in self._functions.items()})

    def __str__(self) -> str:
        return Node.full_text(self)

    def script(self, tir_prefix: str = "T", show_meta: bool = False) -> str:
        """The functions as TVMScript (tedsl/ir/tvmscript); `readable()` gives them for reading, `str()` as TVM 0.8 does.

        tir_prefix: the name of `tvm.script.tir` in the text. show_meta: accepted; there is no metadata.
        """
        return _script(self, tir_prefix)

    def readable(self) -> str:
        """The functions in the notation for reading, which `show()` prints (tedsl/ir/script)."""
        from tedsl.ir.script import script

        return script(self)

    def astext(self, show_meta_data: bool = True) -> str:
        """TVM's text, as `str()`. show_meta_data: accepted; there is none."""
        return str(self)

    def show(self, file: TextIO | str | None = None, colour: bool | None = None, *, style: str | None = None,
             black_format: bool | None = None) -> None:
        """Print `readable()`, in colour on a terminal unless `colour` says otherwise; in a notebook, display it.

        style ("light", "dark", "ansi", by position too) and black_format are TVM's: accepted; there is one style.
        """
        _show(self, None if file in _STYLES else cast("TextIO | None", file), colour)

    def _repr_html_(self) -> str:
        return _shown(f"IRModule: {', '.join(self)}", self)

    __repr__ = __str__


def _script(program: PrimFunc | IRModule, prefix: object) -> str:
    if not isinstance(prefix, str) or not prefix.isidentifier() or iskeyword(prefix):
        raise ArgumentError(f"script: tir_prefix is a name, as in `from tvm.script import tir as T`, got {prefix!r}",
                            hint='leave it out, or write "T"')
    from tedsl.ir.tvmscript import tvmscript

    return tvmscript(program, prefix)


def _show(program: PrimFunc | IRModule, file: TextIO | None, colour: bool | None) -> None:
    from tedsl.display.code import painted_code
    from tedsl.display.notebook import in_notebook, show_in_notebook
    from tedsl.display.terminal import output, wants_colour

    if file is None and colour is None and in_notebook():
        show_in_notebook(program)
        return
    out = output(file)
    print(painted_code(program.readable(), wants_colour(out) if colour is None else colour), file=out)


def _shown(title: str, program: PrimFunc | IRModule) -> str:
    from tedsl.display.code import code_block
    from tedsl.display.page import folded, fragment

    return fragment(title, code_block(program.readable()), folded("The same in TVM's notation", str(program)))
