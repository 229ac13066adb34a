"""What linking gives: machine code in this process, by name."""

from __future__ import annotations

from collections.abc import Mapping


class Library:
    """Linked machine code. Its addresses are valid as long as it is referenced."""

    __slots__ = ("__weakref__", "_addresses")

    def __init__(self, addresses: Mapping[str, int]) -> None:
        self._addresses = dict(addresses)

    def address(self, name: str) -> int:
        """Returns the address of the exported function `name`."""
        return self._addresses[name]
