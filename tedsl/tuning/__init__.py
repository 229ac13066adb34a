"""From a task to the best schedule: `tedsl.tune(task, seconds=60)`.

`searching.py` is the search with its budget, `trial.py` what a search has to say (`templates.py`: that of autotvm's templates),
`result.py` what comes out, `explain.py` what the best have in common, `progress.py` what is shown meanwhile.
"""

from __future__ import annotations

from tedsl.errors import entries
from tedsl.tuning.explain import Difference as Difference
from tedsl.tuning.explain import Explanation as Explanation
from tedsl.tuning.result import Picture as Picture
from tedsl.tuning.result import Result as Result
from tedsl.tuning.searching import tune as tune
from tedsl.tuning.trial import Search as Search
from tedsl.tuning.trial import Trial as Trial

__all__ = ["Difference", "Explanation", "Picture", "Result", "Search", "Trial", "tune"]
entries(globals())
