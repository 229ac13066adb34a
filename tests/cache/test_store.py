"""Entries of the cache on disk: whole or not there, whatever happens to their files and to those who write them."""

import os
import random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from tedsl.cache import place
from tedsl.cache.store import CODE, SCHEDULE, Store

KEY, OTHER = "1" * 48, "2" * 48
PIECES = {"code": b"machine code " * 50, "empty": b""}


@pytest.fixture(autouse=True)
def _warn_again(monkeypatch):
    monkeypatch.setattr(place, "_warned", set())


@pytest.fixture
def store(tmp_path):
    return Store(str(tmp_path / "cache"), 1 << 20)


def files(store):
    return sorted(name for name in os.listdir(store.folder) if name != "hits")


def test_an_entry_comes_back_under_its_key_and_kind(store):
    assert store.load(KEY, CODE) is None
    store.save(KEY, CODE, PIECES)
    assert store.load(KEY, CODE) == PIECES
    assert store.load(OTHER, CODE) is None and store.load(KEY, SCHEDULE) is None
    store.save(KEY, CODE, {"code": b"new"})
    assert store.load(KEY, CODE) == {"code": b"new"}
    assert files(store) == [f"{KEY}.{CODE}"]


def test_the_folder_is_for_its_user_alone(store):
    store.save(KEY, CODE, PIECES)
    assert os.stat(store.folder).st_mode & 0o777 == 0o700
    assert os.stat(store._path(KEY, CODE)).st_mode & 0o777 == 0o600


def test_a_damaged_entry_is_missing_and_replaced(store):
    """Truncated at every class of place, changed in every field of the head, in the index and in the pieces."""
    store.save(KEY, CODE, PIECES)
    path = Path(store._path(KEY, CODE))
    whole = path.read_bytes()
    damaged = [whole[:length] for length in (0, 1, 7, 8, 11, 12, 15, 16, 23, 24, 40, len(whole) // 2, len(whole) - 1)]
    for at in (0, 8, 12, 16, 24, 30, 100, len(whole) - 1):
        damaged.append(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
    damaged += [whole + b"\0", whole * 2, bytes(len(whole))]
    for data in damaged:
        path.write_bytes(data)
        assert store.load(KEY, CODE) is None
        assert not path.exists(), "it is out of the way"
        store.save(KEY, CODE, PIECES)
        assert store.load(KEY, CODE) == PIECES


def test_an_entry_under_the_name_of_another_is_not_taken(store):
    store.save(KEY, CODE, PIECES)
    os.rename(store._path(KEY, CODE), store._path(OTHER, CODE))
    assert store.load(OTHER, CODE) is None and files(store) == []


def _kill_at_random_moments(folder, times):
    """Children that write one entry again and again, each killed at a random moment; then the entry is whole or absent."""
    draw = random.Random(5)
    store = Store(str(folder), 1 << 30)
    outcomes, longest = {"whole": 0, "absent": 0}, 0.004  # seconds until a child is killed, longer where children are slow
    for number in range(times):
        child = os.fork()
        if child == 0:
            try:
                writer = Store(str(folder), 1 << 30)
                while True:
                    writer.save(KEY, CODE, {"code": bytes([number % 251]) * 300_000})
            finally:
                os._exit(0)
        time.sleep(draw.random() * longest)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        pieces = store.load(KEY, CODE)
        outcomes["absent" if pieces is None else "whole"] += 1
        longest *= 1.05 if pieces is None else 0.9
        if pieces is not None:
            data = pieces["code"]
            assert len(data) == 300_000 and data == data[:1] * len(data), "of one writer"
        if number % 5 == 0:
            store.drop(KEY, CODE)
    return outcomes


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_writers_killed_at_200_random_moments_leave_whole_entries(tmp_path):
    folder = tmp_path / "cache"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outcomes = _kill_at_random_moments(folder, 200)
    assert outcomes["whole"] > 20
    store = Store(str(folder), 1 << 30)
    left = [name for name in os.listdir(folder) if name.endswith(".tmp")]
    assert left, "some were killed while they wrote"
    for name in left:
        os.utime(folder / name, (0, 0))  # long ago
    store.shrink()
    assert not any(name.endswith(".tmp") for name in os.listdir(folder))


def test_unfinished_files_of_living_writers_stay(store):
    store.save(KEY, CODE, PIECES)
    unfinished = Path(store.folder) / ".tedsl-0123456789abcdef.tmp"
    unfinished.write_bytes(b"half of an entr")
    store.shrink()
    assert unfinished.exists()


def test_eight_writers_at_once_and_readers_between_them(tmp_path):
    """Each of 8 processes writes and reads the same 6 entries, whose content follows from the key; the folder holds four."""
    code = """
import random, sys, warnings
warnings.simplefilter("error")
from tedsl.cache.store import CODE, Store
store = Store(sys.argv[1], 400_000)
draw = random.Random(int(sys.argv[2]))
for step in range(150):
    digit = draw.choice("012345")
    content = {"code": digit.encode() * 100_000}
    if draw.random() < 0.5:
        store.save(digit * 48, CODE, content)
    else:
        assert store.load(digit * 48, CODE) in (None, content)
"""
    folder = tmp_path / "cache"
    writers = [subprocess.Popen([sys.executable, "-c", code, str(folder), str(seed)]) for seed in range(8)]
    assert [writer.wait(120) for writer in writers] == [0] * 8
    store = Store(str(folder), 400_000)
    store.shrink()
    assert store.contents().size <= 400_000
    assert not any(name.endswith(".tmp") for name in os.listdir(folder))


def test_entries_that_were_not_used_for_longest_go_first(store):
    keys = [f"{number:048x}" for number in range(1, 13)]
    for age, key in enumerate(keys):
        store.save(key, CODE, {"code": bytes(20_000)})
        os.utime(store._path(key, CODE), (1000 + age, 1000 + age))
    store.limit = 100_000
    assert store.load(keys[0], CODE) is not None  # used now
    store.shrink()
    assert store.contents().size <= 90_000
    assert store.load(keys[0], CODE) is not None and store.load(keys[1], CODE) is None
    assert store.load(keys[-1], CODE) is not None


def test_writing_alone_keeps_the_folder_within_its_limit(store):
    store.limit = 200_000
    for number in range(100):
        store.save(f"{number * 7919 % 256:02x}" + f"{number:046x}", CODE, {"code": bytes(10_000)})
    assert store.contents().size <= 200_000 * (1 + 1 / 32)


def test_an_entry_larger_than_the_cache_is_not_written(store):
    store.limit = 1000
    store.save(KEY, CODE, {"code": bytes(2000)})
    assert store.load(KEY, CODE) is None


def test_clear_removes_what_is_ours_alone(store):
    for kind in (CODE, SCHEDULE):
        store.save(KEY, kind, PIECES)
    store.load(KEY, CODE)
    for name in ("notes.txt", "1234.code", ".tedsl-00ff.tmp"):
        (Path(store.folder) / name).write_text("mine")
    assert store.contents().entries == {"code": 1, "schedule": 1, "runtime": 0, "host": 0} and store.contents().hits == 1
    assert store.clear() == 2
    assert files(store) == ["1234.code", "notes.txt"]
    assert store.contents().size == store.contents().hits == 0


# --- folders that cannot be used --------------------------------------------------------------------------------------

def save_and_load(store):
    """The warnings of two rounds of writing and reading, in which nothing is raised and nothing comes back."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            store.save(KEY, CODE, PIECES)
            assert store.load(KEY, CODE) is None
            assert store.contents().size == 0 and store.clear() == 0
            store.shrink()
    return [str(warning.message) for warning in caught]


def test_a_file_in_the_place_of_the_folder_costs_one_warning(tmp_path):
    (tmp_path / "cache").write_text("a file")
    (warning,) = save_and_load(Store(str(tmp_path / "cache"), 1 << 20))
    assert "is not used: " in warning and "TEDSL_CACHE_DIR" in warning
    (warning,) = save_and_load(Store(str(tmp_path / "cache" / "below"), 1 << 20))
    assert "Not a directory" in warning


def test_a_folder_that_all_can_write_to_is_not_used(tmp_path):
    store = Store(str(tmp_path), 1 << 20)
    store.save(KEY, CODE, PIECES)
    tmp_path.chmod(0o777)
    again = Store(str(tmp_path), 1 << 20)
    with pytest.warns(RuntimeWarning, match="other users can write to it"):
        assert again.load(KEY, CODE) is None
    again.save(OTHER, CODE, PIECES)
    assert files(store) == [f"{KEY}.{CODE}"]


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 kB, if this process may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir(mode=0o700)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_costs_one_warning(small_disk):
    store = Store(str(small_disk / "cache"), 1 << 20)
    store.save(OTHER, CODE, {"code": b"small"})
    with pytest.warns(RuntimeWarning, match="No space left"):
        store.save(KEY, CODE, {"code": bytes(200_000)})
    assert files(store) == [f"{OTHER}.{CODE}"], "nothing is left of what did not fit"
    store.save(KEY, CODE, {"code": b"small"})  # no second warning, no error
    assert Store(store.folder, 1 << 20).load(OTHER, CODE) == {"code": b"small"}


def test_a_disk_that_can_only_be_read_serves_what_it_has(small_disk):
    Store(str(small_disk), 1 << 20).save(KEY, CODE, PIECES)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    store = Store(str(small_disk), 1 << 20)
    assert store.load(KEY, CODE) == PIECES
    with pytest.warns(RuntimeWarning, match="Read-only"):
        store.save(OTHER, CODE, PIECES)
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)


def test_an_interrupted_write_leaves_no_file(store, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    store.save(OTHER, CODE, PIECES)
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.save(KEY, CODE, PIECES)
    assert files(store) == [f"{OTHER}.{CODE}"]
