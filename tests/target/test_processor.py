"""What identifies the processor, and what LLVM said of it, kept on disk."""

import os
import platform
import subprocess
import sys

import pytest

from tedsl.cache import carried
from tedsl.cache.store import HOST, current_store
from tedsl.target import host as host_module
from tedsl.target.executable import EXECUTE, PAGE, READ, Pages
from tedsl.target.host import host, llvm_library
from tedsl.target.processor import processor

ON_X86_64 = platform.machine() == "x86_64" and sys.platform == "linux"


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """How often LLVM was asked, with a cache of this test."""
    monkeypatch.setenv("TEDSL_CACHE_DIR", str(tmp_path / "cache"))
    found, times = host_module._detected, []
    monkeypatch.setattr(host_module, "_detected", lambda: times.append(1) or found())
    host.cache_clear()
    monkeypatch.setattr(carried, "_taken", {})
    monkeypatch.setattr(carried, "_used", {})
    yield times
    host.cache_clear()


@pytest.mark.skipif(not ON_X86_64, reason="cpuid")
def test_a_processor_answers_the_same_on_every_core():
    said = set()
    allowed = os.sched_getaffinity(0)
    try:
        for core in allowed:
            os.sched_setaffinity(0, {core})
            processor.cache_clear()
            said.add(processor())
    finally:
        os.sched_setaffinity(0, allowed)
    assert len(said) == 1 and said.pop().count(" ") > 10


@pytest.mark.skipif(not ON_X86_64, reason="cpuid")
def test_llvm_is_asked_once_about_a_processor(asked, monkeypatch):
    first = host()
    host.cache_clear()
    assert host() == first and asked == [1]
    host.cache_clear()
    monkeypatch.setattr(host_module, "processor", lambda: "another one")
    assert host() == first and asked == [1, 1]
    host.cache_clear()
    monkeypatch.setattr(host_module, "llvm_library", lambda: "another version")
    assert host() == first and asked == [1, 1, 1]
    assert current_store().contents().entries[HOST] == 3


@pytest.mark.skipif(not ON_X86_64, reason="cpuid")
@pytest.mark.parametrize("said", [b"", b"null", b'["x86_64", "znver4", ["avx2"]]', b"[1"])
def test_an_entry_that_says_something_else_is_written_again(asked, said, monkeypatch):
    first = host()
    store = current_store()
    (entry,) = [name for name in os.listdir(store.folder) if name.endswith(HOST)]
    store.save(entry.partition(".")[0], HOST, {"host": said})
    host.cache_clear()
    assert host() == first and asked == [1, 1]
    host.cache_clear()
    assert host() == first and asked == [1, 1]


def test_without_a_cache_or_an_identity_llvm_is_asked(asked, monkeypatch):
    monkeypatch.setattr(host_module, "processor", lambda: "")
    first = host()
    host.cache_clear()
    assert host() == first and asked == [1, 1]
    monkeypatch.undo()
    monkeypatch.setenv("TEDSL_CACHE_DIR", "off")
    host.cache_clear()
    assert host() == first


def test_the_installed_llvm_is_told_by_its_library():
    assert "llvmlite" in llvm_library() and ("libllvmlite" in llvm_library() or "llvmlite.dll" in llvm_library())


@pytest.mark.skipif(not ON_X86_64, reason="Linux")
def test_pages_are_written_or_executed_never_both():
    program = ("import ctypes\nfrom tedsl.target.executable import *\n"
               "pages = Pages(2 * PAGE)\npages.write(0, bytes.fromhex('8d4701c3'))  # lea eax, [rdi + 1]; ret\n"
               "pages.protect(0, PAGE, READ | EXECUTE)\n"
               "print(ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(pages.address)(41))\n"
               "maps = [line for line in open('/proc/self/maps') if line.startswith(f'{pages.address:x}')]\n"
               "print(maps[0].split()[1])\npages.write(PAGE, b'x')\nprint('written', flush=True)\npages.write(0, b'x')\n")
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert run.stdout.split() == ["42", "r-xp", "written"] and run.returncode < 0


def test_released_pages_are_gone_and_protection_needs_pages():
    pages = Pages(PAGE)
    pages.protect(0, 0, READ | EXECUTE)
    with pytest.raises(OSError, match="cannot be made executable"):
        pages.protect(1, PAGE, READ)
    with pytest.raises(AssertionError):
        pages.write(PAGE - 1, b"xy")
    pages.release()
    with pytest.raises(OSError, match="there are no"):
        Pages(1 << 62)


@pytest.mark.skipif(not ON_X86_64, reason="cpuid")
def test_what_a_file_says_of_this_processor_is_not_asked_again(asked, monkeypatch):
    monkeypatch.setenv("TEDSL_CACHE_DIR", "off")
    known = host()
    said = carried.entries()
    for damaged, times in ((b"", 1), (said[:-1], 1), (said, 0)):
        host.cache_clear()
        asked.clear()
        carried.take(damaged)
        assert host() == known and len(asked) == times
