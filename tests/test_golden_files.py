"""Golden files: a text that differs fails, and so does one without a file; --update-golden writes it."""

import pytest

from tests import golden_files
from tests.golden_files import Golden


@pytest.fixture
def home(request, tmp_path, monkeypatch):
    """A folder of golden files of its own, and where this test's file is in it."""
    monkeypatch.setattr(golden_files, "FOLDER", tmp_path / "golden")
    request.node.path = tmp_path / "rooms" / "test_it.py"
    return request.node, tmp_path / "golden" / "rooms" / "test_it"


def test_a_missing_file_is_a_failure(home):
    node, _ = home
    with pytest.raises(pytest.fail.Exception, match=r"no golden file .*write it with pytest --update-golden"):
        Golden(node, update=False)("text")


def test_an_update_writes_what_is_compared_afterwards(home):
    node, folder = home
    Golden(node, update=True).sections(before="a\n", after="b")
    assert (folder / "an_update_writes_what_is_compared_afterwards.txt").read_text() == "--- before\na\n\n--- after\nb\n"
    Golden(node, update=False).sections(before="a", after="b")
    with pytest.raises(AssertionError, match="if it is meant to, write it with --update-golden"):
        Golden(node, update=False).sections(before="a", after="c")
