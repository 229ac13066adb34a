"""Packages are found where an import finds them."""

import importlib.util
import sys
import zipfile

from tedsl.target.installed import place_of


def test_packages_are_found_where_an_import_finds_them(tmp_path, monkeypatch):
    assert place_of("numpy") == importlib.util.find_spec("numpy").origin
    assert place_of("absent_package") == ""
    for folder in ("first", "second"):
        (tmp_path / folder / "drawn_here").mkdir(parents=True)
        (tmp_path / folder / "drawn_here" / "__init__.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "empty"), str(tmp_path / "first"), str(tmp_path / "second"), *sys.path])
    assert place_of("drawn_here") == str(tmp_path / "first" / "drawn_here" / "__init__.py")


def test_a_package_in_an_archive_is_found_too(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("packed_here/__init__.py", "")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "packed.zip"), *sys.path])
    assert place_of("packed_here") == str(tmp_path / "packed.zip" / "packed_here" / "__init__.py")
