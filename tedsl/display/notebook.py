"""Detects notebooks, where `show()` displays the value instead of printing text."""

from __future__ import annotations

import sys
from typing import Any


def in_notebook() -> bool:
    """Tells whether this program runs in a notebook, which displays markup."""
    return hasattr(_shell(), "kernel")


def show_in_notebook(value: Any) -> None:
    """Displays `value`, by its `_repr_html_`."""
    sys.modules["IPython"].display.display(value)


def _shell() -> Any:
    """Returns IPython's shell if this program runs in one. IPython is not imported: in a notebook it is already."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()
