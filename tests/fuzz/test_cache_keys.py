"""Keys of the cache on disk: programs that lower to different loops never share one, whatever small thing tells them apart."""

import json
import re
from collections import Counter
from dataclasses import fields, is_dataclass, replace
from enum import Enum

import pytest

from tedsl.errors import TedslError
from tedsl.fuzz.applied import scheduled
from tedsl.fuzz.draw import Draw
from tedsl.fuzz.programs import SMALL, draw_program
from tedsl.fuzz.recurrences import draw_recurrence
from tedsl.fuzz.schedules import draw_schedule
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Var
from tedsl.ir.func import Accesses
from tedsl.ir.node import Node
from tedsl.ir.walk.identity import identity
from tedsl.ir.walk.serial import to_data
from tedsl.lang.tensor import Tensor
from tedsl.lower import request as keys
from tedsl.lower.inputs import functions_of
from tedsl.lower.request import FunctionOptions
from tedsl.passes.context import pass_config
from tedsl.passes.default import lowering_pipeline
from tedsl.schedule.record.recorder import Recorder
from tedsl.target import Target

BLOCKS, BLOCK, CHANGES = 4, 13, 9


@pytest.fixture(autouse=True)
def _with_a_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TEDSL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(keys, "versions", lambda: "fixed")


def drawn(seed):
    draw = Draw(f"key {seed}")
    case, _ = draw_recurrence(draw) if draw.chance(15) else draw_program(draw, SMALL)
    draw_schedule(case, draw)
    return case


def key_and_loops(case, name="main"):
    """The key of a schedule and, as data, the loops that the backend gets; None for a program that is refused."""
    try:
        names = scheduled(case)
        args = [names[arg] for arg in case.args]
        config = pass_config(case.config)
    except (TedslError, NameError, TypeError, ValueError, LookupError, AttributeError, SyntaxError):
        return None
    options = FunctionOptions(True, config.accesses)
    key = keys.schedule_key(names["s"], args, name, None, options, config, Target("llvm"))
    pipeline = lowering_pipeline(config, accesses=config.accesses)
    try:
        functions = functions_of(names["s"], args, name, None, options)
        return key, json.dumps([to_data(pipeline(func)) for func in functions.values()])
    except TedslError:
        return None


def changed(case, draw):
    """The case with one small change: a number, a dtype, an operator, a name, a directive, an option."""
    lines, schedule = list(case.lines), list(case.schedule)
    way = draw.choice(("number", "number", "operator", "dtype", "name", "drop", "swap", "option", "axis"))
    texts = draw.choice([part for part in (lines, schedule) if part])
    at = draw.which(len(texts))
    if way == "drop":
        first = draw.which(len(schedule) + 1)
        del schedule[first:first + 1]
    elif way == "swap":
        first = draw.which(len(schedule) + 1)
        schedule[first:first + 2] = schedule[first:first + 2][::-1]
    elif way == "option":
        options = {"tir.noalias": False, "tir.disable_vectorize": True, "tir.UnrollLoop": {"auto_max_step": 9},
                   "tir.LoopPartition": {"partition_const_loop": True}, "tir.data_index": "trust"}
        option = draw.choice(list(options))
        return replace(case, config={**case.config, option: options[option]})
    elif way == "name":
        lines = [text.replace("name='T1'", "name='U1'") for text in lines]
    else:
        texts[at] = replaced_once(texts[at], way, draw)
    return replace(case, lines=lines, schedule=schedule)


WAYS = {"number": (r"(?<![\w.'])\d+(?![\w.'])", ("{0} + 1", "2 * {0}", "0")), "operator": (r" [+*-] ", (" + ", " - ", " * ")),
        "dtype": (r"'(?:float|int|uint)\d+'", ("'float32'", "'int32'", "'int8'", "'float64'")),
        "axis": (r"\b[ij]\b", ("i", "j"))}


def replaced_once(text, way, draw):
    """`text` with one of the places of that kind replaced by another word."""
    pattern, words = WAYS[way]
    places = list(re.finditer(pattern, text))
    if not places:
        return text
    place = draw.choice(places)
    return text[:place.start()] + draw.choice(words).format(place[0]) + text[place.end():]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.filterwarnings("ignore:build")
def test_a_change_of_the_loops_is_a_change_of_the_key(block):
    loops_of, counts = {}, Counter()
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        case, draw = drawn(seed), Draw(f"change {seed}")
        original = key_and_loops(case)
        if original is None:
            continue
        assert key_and_loops(case) == original, f"{seed}: the same program has the same key"
        for variant in (case, *[changed(case, draw) for _ in range(CHANGES)]):
            known = key_and_loops(variant)
            if known is None or known[0] is None:
                counts["refused"] += 1
                continue
            key, loops = known
            assert loops_of.setdefault(key, loops) == loops, f"{seed}: one key for\n{case.script()}and\n{variant.script()}"
            counts["other loops" if loops != original[1] else "same loops"] += 1
    assert counts["other loops"] > 10 and counts["refused"] < counts.total() / 2, counts


@pytest.mark.filterwarnings("ignore:build")
def test_what_is_beside_the_schedule_is_in_the_key():
    case = next(case for case in map(drawn, range(50)) if len(case.args) > 2 and key_and_loops(case) is not None)
    names = scheduled(case)
    s, args = names["s"], [names[arg] for arg in case.args]
    plain = (s, args, "main", None, FunctionOptions(True), pass_config({}), Target("llvm"))
    others = [
        {1: args[::-1]}, {1: args[:-1]}, {2: "other"}, {4: FunctionOptions(True, Accesses.AT_RUN_TIME)},
        {4: FunctionOptions(False)}, {5: pass_config({"tir.noalias": False})},
        {5: pass_config({"tir.UnrollLoop": {"auto_max_depth": 7}})},
        {6: Target("llvm -mcpu=x86-64")}, {6: Target("llvm -mattr=+avx2")}, {6: Target("llvm -keys=arm_cpu")}]
    every = [keys.schedule_key(*[change.get(at, part) for at, part in enumerate(plain)]) for change in ({}, *others)]
    runs = [key for key in every if key is not None]  # code for a processor that this machine is not has none
    assert len(set(runs)) == len(runs) >= 8


# --- every attribute counts -------------------------------------------------------------------------------------------

UNREAD = {"Recorder": set(Recorder.__dataclass_fields__) - {"names"}}  # by lowering: not in a key
LOOKUPS = {"names", "stage_map", "_order"}  # about objects that are met elsewhere


def attributes_of(item):
    """All attributes that an object stores, found by slots and `__dict__`: not by what the key takes."""
    stored = [slot for cls in type(item).__mro__ for slot in getattr(cls, "__slots__", ()) if slot != "__weakref__"]
    return [name for name in (*stored, *getattr(item, "__dict__", {})) if hasattr(item, name)]


def is_ours(item):
    return type(item).__module__.startswith(("tedsl.", "topi.")) and not isinstance(item, (DType, Enum))


def reachable(root):
    """The objects of tedsl that can be reached from `root`."""
    found, stack = {}, [root]
    while stack:
        item = stack.pop()
        if isinstance(item, (list, tuple, set, frozenset)):
            stack.extend(item)
        elif hasattr(item, "items"):
            stack.extend(part for pair in item.items() for part in pair)
        elif is_ours(item) and id(item) not in found:
            found[id(item)] = item
            stack.extend(getattr(item, name) for name in attributes_of(item)
                         if name not in UNREAD.get(type(item).__name__, LOOKUPS))
    return list(found.values())


def perturbed(value):
    """Another value of the same type; None for what is not a plain value."""
    match value:
        case bool():
            return not value
        case Enum():
            return next(member for member in type(value) if member is not value)
        case int():
            return value + 1
        case float():
            return 0.5 if value != 0.5 else 2.0
        case DType():
            return DType("int16") if value != "int16" else DType("int8")
        case str():
            return value + "_"
        case ():
            return ("one more",)
    return None


def derived(item, name):
    """Whether an attribute follows from others: of nodes what their constructors compute, of operations what they remember."""
    if isinstance(item, Var):
        return name in ("dtype", "_contents")  # its type says it; what a leaf contains is not remembered
    if isinstance(item, Node):
        return name not in item.init_fields
    if isinstance(item, Tensor):
        return name in ("shape", "dtype")
    return is_dataclass(item) and name not in {field.name for field in fields(item)}


@pytest.mark.filterwarnings("ignore:build")
def test_every_attribute_of_every_object_is_in_the_key():
    """Each plain value that a schedule holds is changed in place: the key changes, or the attribute follows from others."""
    silent, changes = Counter(), 0
    cases = [case for case in map(drawn, range(60)) if key_and_loops(case) is not None][:12]
    for case in cases:
        names = scheduled(case)
        root = (names["s"].state, [names[arg] for arg in case.args])
        before = identity(root)
        if before is None:
            continue
        seen = Counter()
        for item in reachable(root):
            for name in attributes_of(item):
                kind = type(item).__name__, name
                value = getattr(item, name)
                other = perturbed(value)
                if other is None or derived(item, name) or name in UNREAD.get(kind[0], ()) or seen[kind] >= 3:
                    continue
                seen[kind] += 1
                object.__setattr__(item, name, other)
                try:
                    silent[kind] += identity(root) == before
                finally:
                    object.__setattr__(item, name, value)
                changes += 1
        assert identity(root) == before
    assert +silent == Counter() and changes > 300


@pytest.mark.filterwarnings("ignore:build")
def test_what_is_looked_up_is_in_the_key():
    """The stages of operations and the names of objects, as far as these are met; of other names that they are taken."""
    case = next(case for case in map(drawn, range(90)) if "cache_write" in str(case.schedule) and key_and_loops(case))
    state = scheduled(case)["s"].state
    before = identity(state)
    names, stages = state.recorder.names, state.stage_map
    known = list(names)
    for key in known[:4]:
        kept = names[key]
        names[key] = f"{kept}_"
        assert identity(state) != before
        names[key] = kept
    written = next(op for op in stages if stages[op].op is op and not stages[op].is_placeholder)
    kept, stages[written] = stages[written], next(stage for stage in state.stages if stage is not stages[written])
    assert identity(state) != before
    stages[written] = kept
    assert identity(state) == before
    replaced = [op for op in stages if op is not stages[op].op and op is not stages[op].origin_op]
    stages.update(dict.fromkeys(replaced, state.stages[0]))
    assert identity(state) == before, "what was replaced is met nowhere"
