"""The folder of the cache and its limit, as the environment says them."""

import os
import sys
from pathlib import Path

import pytest

from tedsl.cache import place
from tedsl.cache.place import cache_folder, cache_limit
from tedsl.cache.store import current_store


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("TEDSL_CACHE_DIR", "TEDSL_CACHE_SIZE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(place, "_warned", set())
    place._bytes.cache_clear()
    return monkeypatch.setenv


def test_a_folder_that_is_named(environment, monkeypatch):
    environment("TEDSL_CACHE_DIR", "/somewhere/kernels")
    assert cache_folder() == "/somewhere/kernels"
    environment("TEDSL_CACHE_DIR", "kernels")
    assert cache_folder() == str(Path.cwd() / "kernels")
    environment("HOME", "/home/me")
    environment("TEDSL_CACHE_DIR", "~/kernels")
    assert cache_folder() == "/home/me/kernels"


@pytest.mark.parametrize("said", ["off", "OFF", " off "])
def test_off(said, environment):
    environment("TEDSL_CACHE_DIR", said)
    assert cache_folder() == "" and current_store() is None


def test_the_folder_of_the_user_on_linux(environment, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    environment("HOME", "/home/me")
    assert cache_folder() == "/home/me/.cache/tedsl"
    environment("XDG_CACHE_HOME", "/scratch/me")
    assert cache_folder() == "/scratch/me/tedsl"
    environment("XDG_CACHE_HOME", "not/absolute")
    assert cache_folder() == "/home/me/.cache/tedsl"
    environment("TEDSL_CACHE_DIR", "")
    assert cache_folder() == "/home/me/.cache/tedsl"


def test_the_folder_of_the_user_elsewhere(environment, monkeypatch):
    environment("HOME", "/Users/me")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == "/Users/me/Library/Caches/tedsl"


def test_a_user_without_a_home_has_no_cache(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # what it does where nobody knows a home
    assert cache_folder() == "" and current_store() is None


@pytest.mark.parametrize("said, size", [("", 1 << 30), ("1000", 1000), ("500M", 500 << 20), ("2g", 2 << 30), ("3 GiB", 3 << 30),
                                        ("64kB", 64 << 10), ("0", 0), ("1T", 1 << 40)])
def test_the_limit(said, size, environment):
    environment("TEDSL_CACHE_SIZE", said)
    assert cache_limit() == size


@pytest.mark.parametrize("said", ["much", "-5", "1.5G", "5X"])
def test_a_limit_that_is_no_size_costs_one_warning(said, environment):
    environment("TEDSL_CACHE_SIZE", said)
    with pytest.warns(RuntimeWarning, match=f"TEDSL_CACHE_SIZE is '{said}'"):
        assert cache_limit() == 1 << 30
    assert cache_limit() == 1 << 30
