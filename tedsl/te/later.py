"""Names of TVM's te that tedsl does not implement: calling one raises an error that says so."""

from __future__ import annotations

from typing import Any, NoReturn

from tedsl.errors import TedslError


def gradient(output: Any, inputs: Any, head: Any = None) -> NoReturn:
    """Raises an error: derivatives of tensors are not implemented."""
    raise TedslError(f"te.gradient: derivatives are not implemented, so not that of {getattr(output, 'name', output)}",
                     hint="write it as a te.compute of its own, and check it by tedsl.testing.check_numerical_grads")
