"""Candidates are built and run in processes of their own, so that one which crashes, hangs or takes all memory costs one trial.

`process.py` is such a process, `cores.py` says on which processors it runs, `building.py` and `running.py` what happens inside,
`estimate.py` what a simulated device says instead, `measurer.py` keeps builds and runs in order, `remote.py` on several
machines, `machine.py` says of which model. `budget.py` says how much is measured. `options.py` and `outcome.py` are what
goes in and what comes out.
"""

from tedsl.errors import entries
from tedsl.tune.measure.budget import within
from tedsl.tune.measure.check import Checker
from tedsl.tune.measure.measurer import Measurer
from tedsl.tune.measure.options import BuildOption, RunOption, limited
from tedsl.tune.measure.outcome import FAILURES, Candidate, Failure, Outcome
from tedsl.tune.measure.remote import RemoteMeasurer

__all__ = ["FAILURES", "BuildOption", "Candidate", "Checker", "Failure", "Measurer", "Outcome", "RemoteMeasurer", "RunOption",
           "limited", "within"]

entries(globals())
