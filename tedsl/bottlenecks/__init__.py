"""Why kernels are slow: `tedsl.why_slow(kernel, *arrays)`.

`program.py` finds what a call runs, `clock.py` measures its stages, `sites.py` counts what the loops do and touch,
`functions.py` measures exp and the like, `assembly.py` reads the machine code, `stages.py` puts these together, `causes.py`
holds the rules, `report.py` shows what they say.
"""

from __future__ import annotations

from tedsl.bottlenecks.causes import Cause as Cause
from tedsl.bottlenecks.diagnosis import why_slow as why_slow
from tedsl.bottlenecks.report import Report as Report
from tedsl.bottlenecks.stages import Stage as Stage
from tedsl.errors import entries

__all__ = ["Cause", "Report", "Stage", "why_slow"]
entries(globals())
