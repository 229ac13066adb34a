"""Records do what frozen dataclasses do."""

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, astuple, dataclass, field, fields, replace
from functools import cached_property
from typing import ClassVar

import pytest

from tedsl.record import record


def frozen(cls=None, /, **options):
    decorate = dataclass(frozen=True, **options)
    return decorate if cls is None else decorate(cls)


def classes(decorate):
    """The same classes by one decorator or the other."""

    @decorate
    class Point:
        """A point."""

        x: int
        y: int = 2
        tags: list = field(default_factory=list, compare=False)
        kind: ClassVar[str] = "point"

        @cached_property
        def norm(self):
            return self.x ** 2 + self.y ** 2

    @decorate
    class Space(Point):
        z: int = field(default=3, repr=False)
        made: int = field(init=False, default=7)

        def __post_init__(self):
            object.__setattr__(self, "made", self.x + 1)

    @decorate(eq=False, kw_only=True)
    class Named:
        values: tuple
        self_: int = 0

    @decorate(repr=False)
    class Own:
        a: object

        def __eq__(self, other):
            return True

        def __repr__(self):
            return "own"

    @decorate
    class One:
        only: int

    @decorate
    class Nothing:
        pass

    return Point, Space, Named, Own, One, Nothing


Point, Space, Named, Own, One, Nothing = OURS = classes(record)
for made in OURS:
    made.__qualname__ = made.__name__
THEIRS = classes(frozen)


@pytest.mark.parametrize("made", [OURS, THEIRS], ids=["record", "dataclass"])
def test_construction_and_equality(made):
    point, space, named, own, one, nothing = made
    a, b = point(1), point(1, 2, ["t"])
    assert a == b and hash(a) == hash(b) and a != point(2) and a != (1, 2) and a.tags == [] and a.tags is not point(1).tags
    assert point(y=5, x=4).y == 5 and astuple(a) == (1, 2, []) and replace(a, y=9) == point(1, 9) and a.norm == 5
    c = space(1)
    assert (c.made, c.z, c.kind) == (2, 3, "point") and c != a and a != c and c == space(1, 2) and c != space(1, z=4)
    with pytest.raises(TypeError):
        named((1,))
    with pytest.raises(TypeError):
        point()
    with pytest.raises(TypeError):
        point(1, w=2)
    assert named(values=(1,)) != named(values=(1,)) and named(values=(1,)).values == (1,)
    assert own(1) == own(2) and repr(own(1)) == "own" and {own([]): 1} if own.__hash__ is None else True
    assert one(3) == one(3) and hash(one(3)) == hash((3,)) and nothing() == nothing() and hash(nothing()) == hash(())


@pytest.mark.parametrize("made", [OURS, THEIRS], ids=["record", "dataclass"])
def test_nothing_is_set(made):
    a = made[0](1)
    for change in (lambda: setattr(a, "x", 2), lambda: setattr(a, "other", 2), lambda: delattr(a, "x")):
        with pytest.raises(FrozenInstanceError):
            change()

    class Derived(made[0]):
        pass

    derived = Derived(1)
    derived.other = 5
    assert derived.other == 5
    with pytest.raises(FrozenInstanceError):
        derived.x = 3
    del derived.other


def test_texts_and_fields_are_the_same():
    for ours, theirs in zip(OURS, THEIRS):
        assert [(f.name, f.init, f.repr, f.compare) for f in fields(ours)] == \
            [(f.name, f.init, f.repr, f.compare) for f in fields(theirs)]
        assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
        assert ours.__match_args__ == theirs.__match_args__ and ours.__doc__ == ours.__doc__
    assert repr(Space(1)) == "Space(x=1, y=2, tags=[], made=2)"
    assert repr(Point(1, tags=[One(2)])) == "Point(x=1, y=2, tags=[One(only=2)])"
    endless = Point(1)
    endless.tags.append(endless)
    assert repr(endless) == "Point(x=1, y=2, tags=[...])"


def test_records_are_copied_pickled_and_matched():
    a = Point(1, 5, ["t"])
    for twin in (copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert twin == a and twin.tags == a.tags
    match a:
        case Point(1, y, tags):
            assert (y, tags) == (5, ["t"])
        case _:
            pytest.fail("no match")


def test_a_record_that_defines_what_it_is_compared_by():
    @record
    class Folded:
        name: str

        def __eq__(self, other):
            return self.name.lower() == other.name.lower()

        def __hash__(self):
            return hash(self.name.lower())

    assert {Folded("A"): 1}[Folded("a")] == 1
