"""The marks `requires_...`: a mark of pytest each, which skips with its reason where that is not here."""

import pytest

import tedsl
from tedsl.target.current import as_target

NAMES = [name for name in tedsl.testing.__all__ if name.startswith("requires_") and name != "requires_llvm"]


def put_on(mark):
    """The mark of pytest that `mark` puts on a test."""
    def test():
        """Of a user."""

    return mark(test).pytestmark[0]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "requires_package"])
def test_a_mark_is_written_with_parentheses_or_without(name):
    def test():
        """Of a user."""

    mark = getattr(tedsl.testing, name)
    assert mark(test) is test and mark()(test) is test
    plain, called = [one for one in test.pytestmark if one.name == "skipif"]
    assert plain.args == called.args and plain.kwargs["reason"] and mark.__name__ == name and mark.__doc__


def test_devices_that_are_not_here_are_named():
    for name, words in (("requires_gpu", "gpu needs a GPU: no target here is one"), ("requires_cudnn", "cudnn needs a GPU"),
                        ("requires_micro", "micro needs a microcontroller"), ("requires_rpc", "rpc needs a remote device")):
        mark = put_on(getattr(tedsl.testing, name))
        assert mark.args == (True,) and mark.kwargs["reason"].startswith(words)
    assert put_on(tedsl.testing.requires_nvcc_version(11, 4)).args == (True,)


def test_processors_and_packages_are_looked_for():
    here = as_target(None)
    skips = {what: put_on(getattr(tedsl.testing, f"requires_{what}")).args == (True,)
             for what in ("x86", "aarch64", "x86_avx512", "aarch64_sve")}
    assert skips == {"x86": here.arch != "x86-64", "aarch64": here.arch != "aarch64",
                     "x86_avx512": here.arch != "x86-64" or "avx512f" not in here.features,
                     "aarch64_sve": here.arch != "aarch64" or "sve" not in here.features}
    assert tedsl.testing.requires_package("numpy", "os.path").args == (False,)
    missing = tedsl.testing.requires_package("numpy", "no_such_package")
    assert missing.args == (True,) and missing.kwargs["reason"] == "not installed: no_such_package"
