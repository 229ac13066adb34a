"""python -m tests.fuzz --count 1000 --seed 0: programs number seed to seed + count - 1; one: python -m tests.fuzz --only 17."""

import argparse
import sys

from tedsl.fuzz.check import check, show
from tedsl.fuzz.draw import Draw
from tedsl.fuzz.reduce import reduced
from tedsl.fuzz.run import draw_case, outcome_apart, run_many


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", type=int, help="one program: prints its script, its loops, and what happens")
    parser.add_argument("--show", type=int, default=3, help="how many findings are reduced and printed")
    options = parser.parse_args()
    if options.only is not None:
        return one(options.only)
    report = run_many(range(options.seed, options.seed + options.count), jobs=options.jobs)
    print(report.text())
    kinds = {}
    for finding in report.findings:
        kinds.setdefault(finding.kind, []).append(finding)
    for kind, group in kinds.items():
        print(f"\n{len(group)} x {kind}: programs {[f.seed for f in group][:12]}\n  {group[0].detail[:400]}")
    for group in list(kinds.values())[:options.show]:
        if not group[0].kind.startswith("while drawing"):
            print(f"\n--- program {group[0].seed}, reduced\n{reduced(draw_case(Draw(group[0].seed))).script()}")
    return 1 if report.findings else 0


def one(seed):
    case = draw_case(Draw(seed))
    outcome = outcome_apart(case)
    print(case.script(), f"\noutcome: {outcome}")
    if outcome is not None and outcome[0] != "refused":
        small = reduced(case)
        print(small.script())
        show(small)
        if outcome[0] != "crash":
            check(small)
    return 0


if __name__ == "__main__":
    sys.exit(main())
