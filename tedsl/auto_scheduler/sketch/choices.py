"""The decisions of one proposal: each has a name and options; some are given, the others are drawn."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeVar

Decision: TypeAlias = int | str
Decisions: TypeAlias = dict[str, Decision]
T = TypeVar("T", int, str)

_CHANGES = (0.7, 0.3)  # how often a mutation changes one decision, and two


class Choices:
    """Answers a sketch that asks for decisions.

    given: decisions by name, taken where they are among the options. without: decisions that are not taken again if there is
    another option. made: what was decided; free: the names for which there was more than one option.
    """

    def __init__(self, draw: random.Random, given: Mapping[str, Decision] | None = None,
                 without: Mapping[str, Decision] | None = None) -> None:
        self.draw = draw
        self.given, self.without = given or {}, without or {}
        self.made: Decisions = {}
        self.free: list[str] = []

    def one(self, name: str, options: Sequence[T]) -> T:
        """One of `options`; an option that is there several times is drawn that much more often."""
        old = self.without.get(name)
        others = [option for option in options if option != old] or list(options)
        given = next((option for option in others if option == self.given.get(name)), None)
        value = others[self.draw.randrange(len(others))] if given is None else given
        self.made[name] = value
        if any(option != value for option in options):
            self.free.append(name)
        return value

    def yes(self, name: str, chance: float = 0.5) -> bool:
        """Whether to do something, drawn with this chance, which is neither 0 nor 1."""
        if name not in self.given and name not in self.without:
            self.made[name] = "yes" if self.draw.random() < chance else "no"
            self.free.append(name)
            return self.made[name] == "yes"
        return self.one(name, ("yes", "no")) == "yes"


def mutated(draw: random.Random, made: Decisions, free: Sequence[str]) -> Choices:
    """Choices like `made` in which one or two of the `free` decisions are others."""
    count = min(len(free), draw.choices((1, 2), _CHANGES)[0])
    changed = draw.sample(list(free), count)
    return Choices(draw, {name: value for name, value in made.items() if name not in changed},
                   {name: made[name] for name in changed})


def crossed(draw: random.Random, one: Decisions, other: Decisions) -> Choices:
    """Choices of two parents: each stage as in one of them. The first word of a name says of which stage it is."""
    names = dict.fromkeys((*one, *other))
    sides = {stage: draw.random() < 0.5 for stage in dict.fromkeys(name.split(" ")[0] for name in names)}
    if len(sides) < 2:  # a single stage: each decision as in one of them
        return Choices(draw, {name: draw.choice([made[name] for made in (one, other) if name in made]) for name in names})
    given: Decisions = {}
    for name in names:
        first, second = (one, other) if sides[name.split(" ")[0]] else (other, one)
        given[name] = first[name] if name in first else second[name]
    return Choices(draw, given)
