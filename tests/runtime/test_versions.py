"""What compiled code depends on beside the program: an edited source is another source."""

import os
import time
from pathlib import Path

import pytest

from tedsl.runtime import versions
from tedsl.runtime.versions import COMPILER, PACKAGE, installed_source, source_of
from tedsl.version import VERSION
from tests.test_layers import imports_of


@pytest.fixture
def package(tmp_path):
    for name in ("passes/loops", "shell"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("a.py", "passes/b.py", "passes/loops/b.py", "shell/b.py"):
        (tmp_path / name).write_text("x = 1\n")
    return tmp_path


def of(package):
    return source_of(str(package), time.time() + 60)


def test_the_same_files_are_the_same_source(package):
    assert of(package) == of(package) is not None
    (package / "notes.txt").write_text("no code")
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "a.pyc").write_bytes(b"made of a.py")
    edited(package / "shell" / "b.py")
    assert of(package) == of(package)


def edited(file):
    known = file.stat()
    file.write_text("x = 2\n")  # of the same size
    os.utime(file, ns=(known.st_atime_ns, known.st_mtime_ns + 4_000_000))


@pytest.mark.parametrize("change", [
    lambda package: edited(package / "passes" / "b.py"),
    lambda package: edited(package / "passes" / "loops" / "b.py"),
    lambda package: (package / "a.py").write_text("x = 10\n"),
    lambda package: (package / "passes" / "c.py").write_text(""),
    lambda package: (package / "a.py").unlink(),
    lambda package: (package / "passes" / "b.py").rename(package / "passes" / "d.py"),
], ids=["edited", "edited below", "longer", "added", "removed", "renamed"])
def test_a_changed_file_makes_another_source(change, package):
    before = of(package)
    change(package)
    assert of(package) not in (None, before)


def test_files_changed_since_the_process_began_are_not_its_code(package):
    began = time.time()
    assert source_of(str(package), began + 60) is not None
    assert source_of(str(package), began - 60) is None
    known = (package / "a.py").stat()
    (package / "a.py").write_text("x = 7\n")
    os.utime(package / "a.py", ns=(known.st_atime_ns, known.st_mtime_ns))  # as copying tools do
    assert source_of(str(package), began) is None


def test_what_cannot_be_listed_has_no_source(tmp_path):
    assert source_of(str(tmp_path / "absent.zip" / "tedsl"), time.time() + 60) is None
    assert source_of(str(tmp_path), time.time() + 60) is None, "no files: they are elsewhere"


def test_an_installed_wheel_is_what_its_record_says(tmp_path):
    package, record = tmp_path / "tedsl", tmp_path / f"tedsl-{VERSION}.dist-info" / "RECORD"
    package.mkdir()
    assert installed_source(str(package), time.time() + 60) is None, "a checkout"
    record.parent.mkdir()
    record.write_text("__editable___tedsl_finder.py,sha256=abc,7\n")
    assert installed_source(str(package), time.time() + 60) is None, "installed from a folder that is elsewhere"
    record.write_text("tedsl/__init__.py,sha256=abc,7\ntedsl/version.py,sha256=abc,7\n")
    first = installed_source(str(package), time.time() + 60)
    assert first is not None and installed_source(str(package), time.time() - 60) is None, "installed while the process runs"
    record.write_text("tedsl/__init__.py,sha256=abd,7\ntedsl/version.py,sha256=abc,7\n")
    assert installed_source(str(package), time.time() + 60) not in (None, first)
    package.rmdir()
    package.symlink_to(PACKAGE)
    assert installed_source(str(package), time.time() + 60) is None, "files that are edited elsewhere"


def test_a_record_is_read_once_while_it_stays_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("TEDSL_CACHE_DIR", str(tmp_path / "cache"))
    package, record = tmp_path / "tedsl", tmp_path / f"tedsl-{VERSION}.dist-info" / "RECORD"
    package.mkdir()
    record.parent.mkdir()
    read, of_record = [], versions._digest_of_record
    monkeypatch.setattr(versions, "_digest_of_record", lambda path: read.append(1) or of_record(path))

    def said(content=None):
        if content is not None:
            record.write_text(f"tedsl/__init__.py,sha256={content},7\ntedsl/version.py,sha256=abc,7\n")
            time.sleep(versions._SLACK * 1.5)
        return installed_source(str(package), time.time() + 60)

    first = said("abc")
    assert said() == said() == first and len(read) == 1
    second = said("abd")
    assert second not in (None, first) and said() == second and len(read) == 2
    assert said("abc") == first and len(read) == 3, "what it says counts, not when it was written"
    record.write_text("tedsl/__init__.py,sha256=abe,7\ntedsl/version.py,sha256=abc,7\n")
    said()
    said()
    assert len(read) == 5, "a file so young may change and keep its times"


def test_code_is_made_by_files_that_are_looked_at():
    """Of what they import, display makes texts and pictures alone; all else is files of the package."""
    package = Path(PACKAGE)
    files = [file for room in COMPILER for file in (package / room).rglob("*.py")]
    files += [package / "compiler.py", package / "driver.py"]
    folders = {room for file in files for room in imports_of(file) if (package / room / "__init__.py").is_file()}
    assert len(files) > 500 and folders == COMPILER | {"display"}


def test_the_package_is_tedsl():
    assert os.path.basename(PACKAGE) == "tedsl" and os.path.isfile(os.path.join(PACKAGE, "version.py"))
    assert versions.source_of(PACKAGE, time.time() + 60) is not None


def test_the_source_is_looked_at_again_after_a_moment(monkeypatch):
    """Modules that are loaded anew, as notebooks do after an edit, are another compiler."""
    looks = []
    monkeypatch.setattr(versions, "source_of", lambda folder, since: looks.append(1) or f"look {len(looks)}")
    monkeypatch.setattr(versions, "_seen", versions._Seen(time.monotonic(), "now"))
    monkeypatch.setattr(versions, "FRESH", 1000)
    first = versions.versions()
    assert first == versions.versions() is not None and looks == []
    monkeypatch.setattr(versions, "FRESH", -1)
    assert len({first, versions.versions(), versions.versions()}) == 3 and len(looks) == 2
    monkeypatch.setattr(versions, "source_of", lambda folder, since: None)
    assert versions.versions() is None
