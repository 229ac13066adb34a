"""Names that are promised and not there yet: they say so."""

from __future__ import annotations

from typing import Any, NoReturn

from tedsl.errors import TedslError


def gradient(output: Any, inputs: Any, head: Any = None) -> NoReturn:
    """Derivatives of tensors are not made yet."""
    raise TedslError(f"te.gradient: derivatives are not made yet, so not that of {getattr(output, 'name', output)}",
                     hint="write it as a te.compute of its own, and check it by tedsl.testing.check_numerical_grads")
