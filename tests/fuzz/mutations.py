"""python -m tests.fuzz.mutations [--limit 2000] [--only NAME]: plants each fault and counts the programs until it is found."""

import __future__

import argparse
import importlib
import inspect
import multiprocessing
import sys
import textwrap
import time

from tedsl.fuzz.draw import Draw
from tedsl.fuzz.run import draw_case, outcome_of, preload
from tests.fuzz.faults import FAULTS


class Unplantable(AssertionError):
    """The text of a fault is not in its function: the compiler has changed, and the fault must be written anew."""


def function_at(where):
    """The function named "module:function" or "module:Class.method" below tedsl."""
    module, _, path = where.partition(":")
    found = importlib.import_module(f"tedsl.{module}")
    for part in path.split("."):
        found = getattr(found, part)
    return inspect.unwrap(found)


def planted_code(fault):
    """The code of the function with the fault in it."""
    function = function_at(fault.where)
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(fault.old) < 1:
        raise Unplantable(f"{fault.name}: {fault.where} has no text {fault.old!r}")
    scope = dict(function.__globals__)
    changed = source.replace(fault.old, fault.new)
    changed = changed[changed.index("def "):]  # without decorators
    exec(compile(changed, inspect.getsourcefile(function), "exec", __future__.annotations.compiler_flag), scope)
    return scope[function.__name__].__code__


def plant(fault):
    """Changes the function in this process, wherever it is referred to."""
    function_at(fault.where).__code__ = planted_code(fault)


def _search(fault, first, limit, tried, queue):
    plant(fault)
    options = {"interpret": False} if fault.machine else {"compiled": False}
    for seed in range(first, first + limit):
        tried.value += 1
        try:
            outcome = outcome_of(draw_case(Draw(seed)), **options)
        except Exception as error:  # the fault shows while directives are applied
            outcome = type(error).__name__, str(error)
        if outcome is not None and outcome[0] != "refused":
            queue.put(outcome)
            return
    queue.put(None)


def search(fault, *, first=0, limit=2000):
    """How many programs it took to find the fault, and what was seen; (limit, None) if it was not found."""
    context = multiprocessing.get_context("fork")
    tried, queue = context.Value("q", 0), context.SimpleQueue()
    process = context.Process(target=_search, args=(fault, first, limit, tried, queue))
    process.start()
    while process.is_alive() and queue.empty():
        time.sleep(0.01)
    found = None if queue.empty() else queue.get()
    process.join()
    if found is None and process.exitcode != 0:
        return tried.value, f"the process ended with {process.exitcode}"
    return tried.value, None if found is None else f"{found[0]}: {found[1]}"


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.mutations", description=__doc__)
    parser.add_argument("--limit", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    preload()
    missed = 0
    for fault in FAULTS:
        if options.only not in fault.name:
            continue
        try:
            tried, seen = search(fault, first=options.first, limit=options.limit)
        except Unplantable as error:
            tried, seen = 0, None
            print(error)
        missed += seen is None
        words = "NOT FOUND" if seen is None else seen.replace("\n", " ")[:90]
        print(f"{tried:5} programs  {fault.name:45} {words}", flush=True)
    print(f"{len(FAULTS)} faults, {missed} not found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
