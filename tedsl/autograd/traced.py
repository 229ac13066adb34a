"""Tensors without values, of which functions that are compiled as a whole are traced."""

from __future__ import annotations

from typing import Any, ClassVar

from tedsl.lang.tensor import Tensor


class Traced:
    """A tensor of te with the operators of tensors that hold values. plain: the class of results."""

    __slots__ = ("formula",)
    plain: ClassVar[type[Any]]

    def __init__(self, formula: Tensor) -> None:
        self.formula = formula

    @classmethod
    def results(cls, made: Any) -> Any:
        """The tensors that a function of formulas returned."""
        return cls.plain(made) if isinstance(made, Tensor) else tuple(cls.plain(part) for part in made)
