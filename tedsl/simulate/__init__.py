"""A simulator of CUDA devices: it runs the PTX that `build` makes and reports what hardware hides.

    a = tedsl.nd.array(values, tedsl.device("sim", 0))
    f(a, b)
    print(tedsl.simulate.last_report())          # instructions, traffic, conflicts, divergence, races
    with tedsl.simulate.mode("checked"):         # what it finds is an error
        f(a, b)

ptx/: what a text says. instructions/: what they compute. machine/: threads, barriers, warps. memory/: what was written, by
whom. reports/: what is told. models.py: the devices. options.py: how kernels run. device.py, loaded.py,
driver.py: the driver "sim".
"""

from __future__ import annotations

from tedsl.simulate.options import mode
from tedsl.simulate.reports.log import Reports, last_report, report, reset
from tedsl.simulate.reports.report import KernelReport

__all__ = ["KernelReport", "Reports", "last_report", "mode", "report", "reset"]
