"""Of TVM's relay, what kernels need of it: `with relay.build_config(opt_level=3): tedsl.build(...)`. The rest is not part of
tedsl: see `tedsl/absent.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tedsl.absent import stands_in_part
from tedsl.errors import entries
from tedsl.transform import PassContext

__all__ = ["build_config"]


def build_config(opt_level: int = 2, required_pass: Sequence[str] | None = None, disabled_pass: Sequence[str] | None = None,
                 trace: Callable[..., Any] | None = None) -> PassContext:
    """A PassContext by the name that it had in relay. trace: accepted; tedsl.tracing shows what passes do."""
    return PassContext(opt_level, list(required_pass or ()), list(disabled_pass or ()))


entries(globals())
stands_in_part(globals())
