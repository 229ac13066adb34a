"""What is refused: by which error, in which words."""

import importlib

import pytest

from tedsl.errors import AbsentModuleError, OptionError, TedslError


def refused(call, *words, error=TedslError, match=None):
    """The error with which `call` is refused: of class `error`, with all `words` in its text, and the pattern `match`."""
    with pytest.raises(error, match=match) as caught:
        call()
    text = str(caught.value)
    for word in words:
        assert word in text, f"{word!r} is missing in:\n{text}"
    return caught.value


def absent(path):
    """The hint of a name of TVM that is not here, "tedsl.autotvm.measure.x", which a look and a use after an import give alike;
    a hint of its own, no list of the names that are near.
    """
    home, _, name = path.rpartition(".")
    module = importlib.import_module(home)
    looked = refused(lambda: getattr(module, name), error=OptionError,
                     match=r"has no attribute(.|\n)*hint: (?!it has |did you mean ).{20}")
    used = refused(lambda: exec(f"from {module.__name__} import {name}\n{name}(3)", {}), error=AbsentModuleError)
    assert used.hint == looked.hint
    return looked.hint
