"""A tuning task: a template with arguments, for a target."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Any

from tedsl import te
from tedsl.autotvm.absent import OF_TASK
from tedsl.autotvm.task.dispatcher import ApplyConfig
from tedsl.autotvm.task.fallback import FallbackConfigEntity
from tedsl.autotvm.task.space import ConfigSpace, InstantiationError
from tedsl.errors import ArgumentError, ArgumentTypeError, entries, type_in_words
from tedsl.graph.network.costs import formulas_of, operations_of
from tedsl.ir import build
from tedsl.ir.expr import Expr
from tedsl.lang.tensor import Tensor
from tedsl.schedule.handles import Schedule
from tedsl.target.current import as_target
from tedsl.target.target import Target

__all__ = ["FlopCalculationError", "TASK_TABLE", "Task", "args_to_workload", "compute_flop", "create", "deserialize_args",
           "serialize_args"]
Scheduled = tuple[Schedule, Sequence[Any]]
TEMPLATES: dict[str, Callable[..., Scheduled]] = {}  # by the name of the task
TASK_TABLE = TEMPLATES  # TVM's name: programs delete an entry to register their own
_FIRST = 16  # points that are tried where the default configuration is refused
HALVES: dict[str, str] = {}  # by the names of tasks of which one half is there: the decorator of the other


class FlopCalculationError(ArgumentError):
    """The number of operations of a schedule is not known."""


def serialize_args(args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments as values that can be written down: a tensor as ("TENSOR", shape, dtype), lists as tuples."""
    def plain(value: Any) -> Any:
        if isinstance(value, Tensor):
            return ("TENSOR", plain(value.shape), str(value.dtype))
        if isinstance(value, (list, tuple)) or type(value).__name__ == "Array":
            return tuple([plain(one) for one in value])
        if isinstance(value, numbers.Integral) and not isinstance(value, bool):
            return int(value)
        if isinstance(value, Expr):
            known = build.as_int(value)
            if known is None:
                raise ArgumentError(f"a task has arguments that are known, and {value} is an expression")
            return known
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise ArgumentTypeError("an argument of a task is a number, a text, a tensor or a list of them, not "
                                f"{type_in_words(value)}")

    return tuple([plain(one) for one in args])


def deserialize_args(args: Sequence[Any]) -> tuple[Any, ...]:
    """What `serialize_args` wrote, with a new placeholder for each tensor."""
    return tuple([te.placeholder(one[1], one[2]) if isinstance(one, tuple) and one[:1] == ("TENSOR",) else one for one in args])


def args_to_workload(args: Sequence[Any], task_name: str | None = None) -> tuple[Any, ...]:
    """The workload of a call: the name of the task and its arguments."""
    plain = serialize_args(args)
    return plain if task_name is None else (task_name, *plain)


def _from_json(value: Any) -> Any:
    return tuple([_from_json(one) for one in value]) if isinstance(value, list) else value


class Task:
    """name: of the template. args: as `serialize_args` gives them. target: that it is tuned for. config_space: its points.

    flop: the operations of one call, from the formulas, or as the template said by cfg.add_flop.
    """

    def __init__(self, name: str, args: Sequence[Any]) -> None:
        self.name, self.args = name, tuple([_from_json(one) for one in args])
        self.kwargs: dict[str, Any] = {}
        self.config_space = ConfigSpace()
        self.target: Target = as_target(None)
        self.target_host: Any = None
        self.flop = 0

    @property
    def workload(self) -> tuple[Any, ...]:
        return (self.name, *self.args)

    @property
    def func(self) -> Callable[..., Scheduled]:
        """The template. Raises ArgumentError if the program has none of that name."""
        if self.name not in TEMPLATES:
            near = get_close_matches(self.name, [*TEMPLATES, *HALVES])
            hint = f"did you mean {' or '.join(near)}?" if near else f"write @autotvm.template({self.name!r}) above one"
            if self.name in HALVES:
                hint = f"write @autotvm.{HALVES[self.name]}({self.name!r}), too"
            raise ArgumentError(f"there is no template {self.name!r}", hint=hint)
        return TEMPLATES[self.name]

    def instantiate(self, config: ConfigSpace) -> Scheduled:
        """The schedule and the arguments of a point. Raises InstantiationError where the template refuses it."""
        with ApplyConfig(config), self.target:
            sch, args = _scheduled(self.name, self.func(*deserialize_args(self.args)))
        if not config.valid():
            raise InstantiationError(f"{self.name}: {'; '.join(config.errors)}")
        return sch, args

    def plain(self) -> Scheduled:
        """The schedule and the arguments of the default configuration; where that is refused, or the template raises an error,
        of the first point for which neither holds. Raises the error of the default one if there is none among the first.
        """
        try:
            return self.instantiate(FallbackConfigEntity())
        except Exception as error:
            for index in range(min(_FIRST, len(self.config_space))):
                with suppress(Exception):
                    return self.instantiate(self.config_space.get(index))
            raise error

    def __getstate__(self) -> dict[str, Any]:
        """With the template, which another process may not know."""
        return {**self.__dict__, "template": TEMPLATES.get(self.name)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        template = state.pop("template")
        self.__dict__.update(state)
        if template is not None:
            TEMPLATES.setdefault(self.name, template)

    def __repr__(self) -> str:
        return f"Task(func_name={self.name}, args={self.args}, kwargs={{}}, workload={self.workload})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and self.workload == other.workload and str(self.target) == str(other.target)

    def __hash__(self) -> int:
        return hash(self.workload)


def create(task_name: Any, args: Sequence[Any], target: Any = None, target_host: Any = None, *,
           template_key: str | None = None) -> Task:
    """The task of a template, by its name or the template itself, with the space that the template defines for these
    arguments; any function becomes the template of its name. target: None is the current one. template_key: accepted, as
    programs of TVM 0.6 pass it; here a template has one form.

    Raises ArgumentError if there is no such template, or if it defines no schedule.
    """
    name = _as_template(task_name)
    if not isinstance(args, (list, tuple)):
        raise ArgumentTypeError(f"task.create: args is a tuple of the arguments of {name}, not {type_in_words(args)}",
                                hint="autotvm.task.create(name, args=(512, 512), target='llvm')")
    task = Task(name, serialize_args(args))
    task.target, task.target_host = as_target(target), target_host
    _check_call(name, task.func, task.args)
    with ApplyConfig(task.config_space), task.target:
        sch, _ = _scheduled(name, task.func(*deserialize_args(task.args)))
    task.flop = task.config_space.flop or compute_flop(sch)
    return task


def _as_template(given: Any) -> str:
    """The name of a template, which a function that is none becomes."""
    name = getattr(given, "task_name", given)
    if isinstance(name, str):
        return name
    if not inspect.isfunction(given):
        raise ArgumentTypeError(f"task.create takes the name of a template, not {type_in_words(given)}")
    known = TEMPLATES.get(given.__name__, given)
    if known is not given and not _is_changed(known, given):
        raise ArgumentError(f"task.create: there is another template {given.__name__!r}",
                            hint=f"@autotvm.template('another name') above def {given.__name__}")
    TEMPLATES[given.__name__] = given
    return given.__name__


def _is_changed(known: Callable[..., Scheduled], given: Callable[..., Scheduled]) -> bool:
    """Whether a function stands where another one stood before: its cell of a notebook ran again."""
    names = [(getattr(f, "__module__", None), getattr(f, "__qualname__", "")) for f in (known, given)]
    return names[0] == names[1] and "<" not in given.__qualname__


def _check_call(name: str, template: Callable[..., Scheduled], args: Sequence[Any]) -> None:
    """Raises ArgumentTypeError if the template does not take these arguments."""
    try:
        inspect.signature(template).bind(*args)
    except TypeError as error:
        raise ArgumentTypeError(f"task.create: {name} is called with {len(args)} arguments: {error}",
                                hint="args are those of the function, in its order") from None


def _scheduled(name: str, made: Any) -> Scheduled:
    if not (isinstance(made, (list, tuple)) and len(made) == 2 and isinstance(made[0], Schedule)):
        raise ArgumentError(f"the template {name} returned {type_in_words(made)}, and not a schedule and its arguments",
                            hint="end it with: return s, [A, B, C]")
    return made[0], made[1]


def compute_flop(sch: Schedule) -> int:
    """The operations on elements that the formulas of a schedule take; a multiply-add counts two, a loop whose extent is not
    constant as one iteration. Raises FlopCalculationError where there are statements alone, and no formula.
    """
    outputs = [op.output(0) for op in sch.outputs]
    formulas = formulas_of(outputs)
    if not formulas:
        raise FlopCalculationError("the number of operations is not known from statements",
                                   hint="cfg.add_flop(2 * N * M * K)")
    return max(1, sum(map(operations_of, formulas)))


# Programs of TVM import these from here.
entries(globals(), absent=OF_TASK, later={
    name: f"tedsl.autotvm.task.templates:{name}" for name in ("get_config", "register_customized_task", "template")})
