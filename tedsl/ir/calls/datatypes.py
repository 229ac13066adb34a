"""Types of programs: numbers of 8 to 64 bits that the program computes with by functions of its own.

    datatype.register("myfloat", 150)                               "custom[myfloat]32" is a dtype
    datatype.register_op(add, "Add", "llvm", "myfloat")             a + b of it, on this target
    datatype.register_op(from_float, "Cast", "llvm", "float", "myfloat")

A rule, `add`, takes the operator with operands that are unsigned integers of as many bits, and returns an expression: bits for
a result of the type, else a value of the operator's dtype. `passes/lower_datatypes.py` applies the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError, LoweringError, OptionError
from tedsl.ir.build import as_expr
from tedsl.ir.dtype import CUSTOM_CODES, DType, dtype
from tedsl.ir.expr import BinaryOp, Call, Cast, Expr, FloatImm, StringImm
from tedsl.ir.functions import FUNCTIONS
from tedsl.ir.ops import CALL_PACKED, CALL_PURE_EXTERN, IF_THEN_ELSE

Rule = Callable[[Any], Any]
FIRST_CODE = 129  # as in TVM; smaller numbers are those of its own kinds of dtypes
_RULES: dict[tuple[str, ...], Rule] = {}  # by target, operator and names of types
_MINIMA: dict[str, Callable[[int], Any]] = {}


def register(type_name: str, type_code: int) -> None:
    """Makes `custom[type_name]8`, ...`16`, ...`32` and ...`64` dtypes.

    type_code: a number from 129 to 255 that no other type has; ArgumentError else.
    """
    if not isinstance(type_name, str) or not type_name.isidentifier():
        raise ArgumentTypeError(f"datatype.register: the name of a type is an identifier, not {type_name!r}", hint='"myfloat"')
    if not isinstance(type_code, int) or not FIRST_CODE <= type_code <= 255:
        raise ArgumentError(f"datatype.register: the code of {type_name} is a number from {FIRST_CODE} to 255, "
                            f"not {type_code!r}")
    holder = next((name for name, code in CUSTOM_CODES.items() if code == type_code), type_name)
    if holder != type_name or CUSTOM_CODES.get(type_name, type_code) != type_code:
        raise ArgumentError(f"datatype.register: {holder} has the code {CUSTOM_CODES[holder]}, and {type_name} is to have "
                            f"{type_code}", hint="each type has one code of its own")
    CUSTOM_CODES[type_name] = type_code


def get_type_code(type_name: str) -> int:
    """The code of a registered type; OptionError if there is none of that name."""
    if type_name not in CUSTOM_CODES:
        raise _unknown(f"the name {type_name!r}")
    return CUSTOM_CODES[type_name]


def get_type_name(type_code: int) -> str:
    """The name of the registered type of that code; OptionError if there is none."""
    for name, code in CUSTOM_CODES.items():
        if code == type_code:
            return name
    raise _unknown(f"the code {type_code!r}")


def get_type_registered(type_code: int) -> bool:
    """Whether a type of that code is registered."""
    return type_code in CUSTOM_CODES.values()


def _unknown(what: str) -> OptionError:
    listed = ", ".join(f"{name} ({code})" for name, code in CUSTOM_CODES.items())
    return OptionError(f"no type is registered of {what}; registered: {listed or '(none)'}",
                       hint='tedsl.target.datatype.register("myfloat", 150)')


def register_op(lower_func: Rule, op_name: str, target: str, src_type_name: str, dest_type_name: str | None = None,
                intrinsic_name: str | None = None) -> None:
    """Makes `lower_func` the rule for an operator of a type on a target ("llvm", "cuda", ...).

    op_name: "Add", "Mul", "Max", "LT", ... of two operands; "FloatImm", a constant; "Cast" from src_type_name to dest_type_name
    ("float", "int", "uint", "bfloat", or a type); "Call" of intrinsic_name, such as "tir.exp".
    """
    if not callable(lower_func):
        raise ArgumentTypeError(f"datatype.register_op: the rule of {op_name} is a function of the operator, "
                                f"not {lower_func!r}", hint='create_lower_func({32: "MyAdd"}), lambda op: ...')
    for name, what in ((op_name, "op_name"), (target, "target"), (src_type_name, "src_type_name")):
        if not isinstance(name, str):
            raise ArgumentTypeError(f"datatype.register_op: {what} is a name, not {name!r}")
    if (op_name == "Cast") is not isinstance(dest_type_name, str):
        raise ArgumentTypeError(f"datatype.register_op: a Cast, and nothing else, has a dest_type_name; got {op_name} and "
                                f"{dest_type_name!r}", hint='register_op(f, "Cast", "llvm", "float", "myfloat")')
    if (op_name == "Call") is not isinstance(intrinsic_name, str):
        raise ArgumentTypeError(f"datatype.register_op: a Call, and nothing else, has an intrinsic_name; got {op_name} and "
                                f"{intrinsic_name!r}",
                                hint='register_op(f, "Call", "llvm", "myfloat", intrinsic_name="tir.exp")')
    _RULES[_key(target, op_name, src_type_name, dest_type_name or intrinsic_name or "")] = lower_func


def _key(target: str, op_name: str, src: str, more: str) -> tuple[str, ...]:
    return target, op_name, src, more.removeprefix("tir.") if op_name == "Call" else more


def rule_for(targets: tuple[str, ...], op_name: str, src: str, more: str = "") -> Rule | None:
    """The rule for an operator on the first of `targets` that has one. more: where a Cast goes, or the operator of a Call."""
    return next((rule for target in targets if (rule := _RULES.get(_key(target, op_name, src, more))) is not None), None)


def has_datatypes() -> bool:
    """Tells whether there are types of programs."""
    return bool(CUSTOM_CODES)


def register_min_func(func: Callable[[int], Any], type_name: str) -> None:
    """Makes `func` what gives the smallest value of a type, from its bits: `te.max` begins there."""
    get_type_code(type_name)
    if not callable(func):
        raise ArgumentTypeError(f"datatype.register_min_func: a function of the number of bits is needed, not {func!r}",
                                hint=f'lambda num_bits: tir.const(-1e30, f"custom[{type_name}]{{num_bits}}")')
    _MINIMA[type_name] = func


def min_of_datatype(of: DType) -> Expr:
    """The smallest value of a type. DTypeError if the program has not registered one."""
    if of.custom not in _MINIMA:
        raise DTypeError(f"the smallest value of {of} is not known",
                         hint=f'tedsl.target.datatype.register_min_func(f, "{of.custom}")')
    made = as_expr(_MINIMA[of.custom](of.bits), of.element)
    if made.dtype is not of.element:
        raise DTypeError(f"the smallest value of {of} is one of that dtype, and its function gives {made!r} of {made.dtype}",
                         hint=f'tir.const(-1e30, "{of}"), or tir.call_pure_extern("{of}", name)')
    return made


def create_min_lower_func(extern_func_map: Mapping[int, str], type_name: str) -> Callable[[int], Expr]:
    """A function for `register_min_func`: it calls the function without arguments whose name the map has for the bits."""
    names = _by_bits(extern_func_map, "create_min_lower_func")

    def lower(num_bits: int) -> Expr:
        return _call(dtype(f"custom[{type_name}]{num_bits}"), _chosen(names, (num_bits,), f"min_value of {type_name}"), ())

    return lower


def create_lower_func(extern_func_map: Mapping[Any, Any] | str) -> Rule:
    """A rule that makes an operator a call: of the C function, or of the function of `register_func`, whose name the map has
    for the bits of the type; of a Cast for the bits before and after: `{(32, 16): "FloatToMyFloat16"}`. A function of Python
    in the place of a name is called with the operands and returns an expression. A name in the place of a map serves for all.
    """
    names = extern_func_map if isinstance(extern_func_map, str) else _by_bits(extern_func_map, "create_lower_func")

    def lower(op: Any) -> Expr:
        bits: tuple[int, ...]
        operands: tuple[Expr, ...]
        match op:
            case Cast():
                bits, operands = (op.value.dtype.bits, op.dtype.bits), (op.value,)
            case FloatImm():
                bits, operands = (op.dtype.bits,), (FloatImm(dtype("float32"), op.value),)
            case Call():
                known = op if op.dtype.is_custom else op.args[0]
                bits, operands = (known.dtype.bits,), op.args
            case BinaryOp():
                bits, operands = (op.a.dtype.bits,), (op.a, op.b)
            case _:
                raise ArgumentTypeError(f"create_lower_func: {op!r} is no operator of a type")
        return _call(op.dtype.storage, names if isinstance(names, str) else _chosen(names, bits, type(op).__name__), operands)

    return lower


def _by_bits(given: Any, what: str) -> dict[tuple[int, ...], Any]:
    if not isinstance(given, Mapping) or not given:
        raise ArgumentTypeError(f"datatype.{what}: a map from bits to names of functions is needed, not {given!r}",
                                hint='{32: "MyAdd32", 16: "MyAdd16"}, for a Cast {(32, 16): "FloatToMy16"}')
    made = {key if isinstance(key, tuple) else (key,): name for key, name in given.items()}
    for key, name in made.items():
        if not all(isinstance(bits, int) for bits in key) or not (isinstance(name, str) or callable(name)):
            raise ArgumentTypeError(f"datatype.{what}: bits and the name of a function are needed, not {key!r}: {name!r}")
    return made


def _chosen(names: Mapping[tuple[int, ...], Any], bits: tuple[int, ...], what: str) -> Any:
    found = names.get(bits, names.get(bits[-1:]))
    if found is None:
        wanted = " to ".join(map(str, bits))
        raise LoweringError(f"the types of {what} have {wanted} bits, and there are functions for "
                            f"{', '.join(' to '.join(map(str, key)) for key in names)}")
    return found


def _call(of: DType, function: Any, operands: tuple[Expr, ...]) -> Expr:
    if callable(function):
        return as_expr(function(*operands))
    op = CALL_PACKED if function in FUNCTIONS else CALL_PURE_EXTERN
    return Call(of, op, (StringImm(function), *operands))


def lower_ite(ite_op: Call) -> Call:
    """The rule for `tir.if_then_else`: a choice between bits."""
    return Call(_a_call(ite_op, "lower_ite").dtype.storage, IF_THEN_ELSE, ite_op.args)


def lower_call_pure_extern(op: Call) -> Call:
    """The rule for `tir.call_pure_extern`: the function gives bits."""
    return Call(_a_call(op, "lower_call_pure_extern").dtype.storage, CALL_PURE_EXTERN, op.args)


def _a_call(given: object, what: str) -> Call:
    if not isinstance(given, Call):
        raise ArgumentTypeError(f"datatype.{what} is a rule, which takes a call, not {given!r}",
                                hint=f'register_op(datatype.{what}, "Call", "llvm", "myfloat", intrinsic_name=...)')
    return given
