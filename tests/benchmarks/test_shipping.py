"""The table of files of kernels: what it measures of each format."""

import shutil

from benchmarks import shipping


def test_every_format_is_measured_where_it_can_be(tmp_path):
    rows = shipping.measured(tmp_path)
    assert list(rows) == ["its process", ".tedsl", ".so", ".o", ".tar", ".h", ".whl"]
    assert all(columns["bytes"] > 0 and columns["write"] > 0 for name, columns in rows.items() if name.startswith("."))
    for name in (".tedsl", ".so", ".whl"):
        assert 0 < rows[name]["load"] < rows[name]["imports"] and rows[name]["python"] > 0
    assert ("raw" in rows[".so"]) == bool(shutil.which("cc"))


def test_the_least_of_rounds_is_printed_in_columns():
    rounds = [{".so": {"bytes": 11000, "load": load}, ".h": {"bytes": 9}} for load in (3.25, 2.5)]
    lines = shipping.table(shipping.least(rounds)).splitlines()
    assert lines[0].split()[:3] == ["bytes", "write", "ms"]
    assert lines[1].split() == [".so", "11000", "2.5"] and lines[2].split() == [".h", "9"]
