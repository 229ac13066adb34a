"""Public names that TVM v0.8 does not have stand in a list of their own, from which docs/names.md is written."""

from types import ModuleType

import pytest

from tests.names.table import beyond, find, names

IN_08 = {name.path for name in names()}
PLACES = ["te", "tir", "tir.transform", "tir.analysis", "topi", "topi.nn", "topi.image", "topi.vision", "topi.sparse",
          "topi.random", "arith", "target", "ir", "testing", "transform"]


def public(place):
    """The names that a module offers: those of `__all__`, else those that are defined in tedsl and begin with a letter."""
    module = find(place)
    return {name for name in getattr(module, "__all__", dir(module))
            if name[0].isalpha() and not isinstance(getattr(module, name), ModuleType)
            and ("__all__" in vars(module) or _is_of_users(getattr(getattr(module, name), "__module__", "")))}


def _is_of_users(home):
    return home.startswith(("tedsl", "topi")) and home not in ("tedsl.errors", "tedsl.absent", "tedsl.aliases")


@pytest.mark.parametrize("place", PLACES)
def test_each_public_name_is_one_of_tvm_or_listed(place):
    listed = {name for names_of in beyond().values() for name in names_of.get(place, ())}
    assert not {name for name in public(place) if f"{place}.{name}" not in IN_08} - listed, "list them in beyond.txt"
    assert all(hasattr(find(place), name) for name in listed), "these are gone"


def test_no_name_is_listed_twice():
    paths = [f"{place}.{name}" for kind in beyond().values() for place, names_of in kind.items() for name in names_of]
    assert len(paths) == len(set(paths)) > 150 and not IN_08.intersection(paths)
