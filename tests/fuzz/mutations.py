"""python -m tests.fuzz.mutations [--limit 2000] [--only NAME]: plants each fault and counts the programs until it is found."""

import argparse
import multiprocessing
import sys
import time

from tedsl.fuzz.draw import Draw
from tedsl.fuzz.run import draw_case, outcome_of, preload
from tests.fuzz.faults import FAULTS, Unplantable


def _search(fault, first, limit, tried, queue):
    options = {"interpret": False} if fault.machine else {"compiled": False}
    try:
        fault.plant()
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
    except Unplantable as error:
        queue.put(error)


def search(fault, *, first=0, limit=2000):
    """How many programs it took to find the fault, and what was seen; (limit, None) if it was not found."""
    context = multiprocessing.get_context("fork")
    tried, queue = context.Value("q", 0), context.SimpleQueue()
    process = context.Process(target=_search, args=(fault, first, limit, tried, queue))
    process.start()
    while process.is_alive() and queue.empty():
        time.sleep(0.01)
    outcome = ("crash", None) if queue.empty() else queue.get()
    process.join()
    if isinstance(outcome, Unplantable):
        raise outcome
    if outcome == ("crash", None):
        return tried.value, f"the process ended with {process.exitcode}"
    return tried.value, None if outcome is None else f"{outcome[0]}: {outcome[1]}"


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
