"""Plans as text, in the syntax of Python, and as JSON; both read back.

    plan("train")
    task("load", "source", outputs=("load",), function="load")
    register("load", "load", ("prepare",), ("float32[8, 3, 32, 32]",), count=3)

Fields that are as by default are left out.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any

from tedsl.actors.plan.description import Plan, RegisterDescription, Task
from tedsl.actors.plan.stalls import check_plan
from tedsl.errors import PlanError, TedslError
from tedsl.graph.text.parser import spec_of

_KINDS: dict[str, type] = {"task": Task, "register": RegisterDescription}
Functions = Mapping[str, Callable[..., Any]] | None


def text(plan: Plan) -> str:
    """The text of a plan: its tasks, then its registers."""
    lines = [f"plan({_shown(plan.name)})"]
    parts: list[tuple[str, Any]] = [("task", task) for task in plan.tasks.values()]
    for kind, one in parts + [("register", register) for register in plan.registers.values()]:
        data = _data(one)
        needed = [f.name for f in fields(one) if f.default is MISSING]
        given = [_shown(data[name]) for name in needed] + [f"{name}={_shown(value)}" for name, value in data.items()
                                                           if name not in needed]
        lines.append(f"{kind}({', '.join(given)})")
    return "\n".join(lines)


def as_json(plan: Plan) -> str:
    """The plan as JSON."""
    return json.dumps({"plan": plan.name, "tasks": [_data(task) for task in plan.tasks.values()],
                       "registers": [_data(register) for register in plan.registers.values()]}, indent=1)


def _data(one: Any) -> dict[str, Any]:
    """The fields of a task or register that are not as by default, in the order of the constructor."""
    found = {f.name: getattr(one, f.name) for f in fields(one) if f.default is MISSING or getattr(one, f.name) != f.default}
    if "specs" in found:
        found["specs"] = tuple(map(str, found["specs"]))
    return found


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"' if value.isprintable() and not set('"\\') & set(value) else repr(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))}{',' * (len(value) == 1)})"
    return repr(value)


def parse(source: str, functions: Functions = None) -> Plan:
    """The plan of a text; `functions` are what its tasks call, by name. Raises PlanError, with the line, if it says none."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise PlanError(f"line {error.lineno}: {error.msg}", hint="the text is in the syntax of Python, as str(plan) writes "
                                                                  "it") from None
    name, parts = "plan", []
    for line in tree.body:
        match line:
            case ast.Expr(value=ast.Call(func=ast.Name(id="plan"), args=[ast.Constant(value=str() as given)], keywords=[])):
                name = given
            case ast.Expr(value=ast.Call(func=ast.Name(id=kind)) as call) if kind in _KINDS:
                parts.append(_read(kind, call))
            case _:
                raise PlanError(f"line {line.lineno}: {ast.unparse(line)} is no line of a plan",
                                hint="plan, task or register stand there")
    return _plan(name, parts, functions)


def from_json(source: str, functions: Functions = None) -> Plan:
    """The plan that JSON says. Raises PlanError if it says none."""
    try:
        data = json.loads(source)
        given = [("task", one) for one in data["tasks"]] + [("register", one) for one in data["registers"]]
        parts = [_made(kind, (), {name: _tuples(value) for name, value in one.items()}, f"{kind} {one.get('name')}") for kind,
                 one in given]
        name = data.get("plan", "plan")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, TedslError):
            raise
        raise PlanError(f"this JSON is no plan: {type(error).__name__}: {error}",
                        hint='it has the fields "plan", "tasks" and "registers", as actors.as_json(plan) writes them') from None
    return _plan(name, parts, functions)


def _plan(name: str, parts: list[Any], functions: Functions) -> Plan:
    tasks = [one for one in parts if isinstance(one, Task)]
    return check_plan(Plan(tasks, [one for one in parts if not isinstance(one, Task)], functions, name))


def _read(kind: str, call: ast.Call) -> Any:
    try:
        args = [ast.literal_eval(one) for one in call.args]
        kwargs = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
    except ValueError:
        raise PlanError(f"line {call.lineno}: {ast.unparse(call)}: fields are numbers, strings and tuples of them") from None
    return _made(kind, args, kwargs, f"line {call.lineno}")


def _made(kind: str, args: Any, kwargs: dict[str, Any], where: str) -> Any:
    """A task or register of its fields."""
    known = fields(_KINDS[kind])
    given = dict(zip([f.name for f in known], args)) | kwargs
    strangers = sorted(set(given) - {f.name for f in known})
    missing = [f.name for f in known if f.default is MISSING and f.name not in given]
    problem = f"it has no field {strangers[0]!r}" if strangers else f"its {', '.join(missing)} is missing" if missing else ""
    if problem or len(args) > len(known):
        raise PlanError(f"{where}: {kind}: {problem or 'too many fields'}", hint=f"fields: {', '.join(f.name for f in known)}")
    for f in known:
        if f.name in given and not _fits(given[f.name], str(f.type)):
            raise PlanError(f"{where}: {kind}: {f.name} is {given[f.name]!r}")
    if "specs" in given:
        given["specs"] = tuple([_spec(one, where) for one in given["specs"]])
    return _KINDS[kind](**given)


def _fits(value: Any, kind: str) -> bool:
    """Whether a value is of the type that a field declares."""
    if "tuple" in kind:
        return isinstance(value, tuple) and all(isinstance(part, str) for part in value)
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "int":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, str) or (value is None and "None" in kind)


def _spec(said: Any, where: str) -> Any:
    try:
        return spec_of(ast.parse(said, mode="eval").body, {})
    except (SyntaxError, TypeError, TedslError) as refusal:
        raise PlanError(f"{where}: {said!r} is no shape and dtype", hint='write "float32[8, 3, 32, 32]"') from refusal


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
