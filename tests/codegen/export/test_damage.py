"""Damaged files of every format that is loaded are refused. More of them: python -m tests.codegen.export.damage."""

import shutil

import pytest

from tedsl.errors import ModuleError
from tedsl.runtime import load_module
from tedsl.runtime.modules.files import READERS, WRITERS
from tests.codegen.export.damage import FORMATS, accepted

NEEDS_LINKER = {"so", "o", "whl"}


@pytest.mark.parametrize("form", FORMATS)
def test_damage_is_always_found(form, tmp_path):
    if form in NEEDS_LINKER and not any(map(shutil.which, ("ld", "cc"))):
        pytest.skip("needs a linker")
    assert accepted(form, 100, 1, tmp_path) == []


def test_every_format_that_is_loaded_is_among_them(tmp_path):
    assert READERS.keys() - {"examplejson"} <= FORMATS.keys(), "that one is a text that people may write, without machine code"
    for form in WRITERS.keys() - READERS.keys():
        with pytest.raises(ModuleError, match=f"'k.{form}' is not loaded into Python: (.|\n)*export a .tedsl or .so file"):
            load_module(tmp_path / f"k.{form}")
