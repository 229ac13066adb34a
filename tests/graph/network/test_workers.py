"""Kernels of networks in the cache on disk, compiled by all cores."""

import os
import subprocess
import sys
import time

import pytest

from tedsl.cache import workers
from tedsl.errors import ArgumentError

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
PROGRAM = """
import sys, time
import numpy as np
from tedsl import graph
from tedsl.cache import workers
from tedsl.graph.network import build
from tests.graph.networks import resnet18

workers.usable_processors = lambda: 3
here = []
compile_kernel = build.compile_kernel
build.compile_kernel = lambda *args: here.append(args) or compile_kernel(*args)
network = graph.compile(resnet18(32, width=8), opt_level=0)
image = np.random.default_rng(0).standard_normal((1, 3, 32, 32)).astype("float32")
np.save(sys.argv[1], network(image))
print(len(here), len(network.modules))
"""


def run(folder, name):
    environment = os.environ | {"TEDSL_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(folder / name)], capture_output=True, text=True, check=True,
                          env=environment)
    return [int(number) for number in done.stdout.split()]


@needs_fork
def test_the_first_process_compiles_with_others_and_the_second_finds_all(tmp_path):
    compiled_here, kernels = run(tmp_path, "first.npy")
    assert 0 < compiled_here < kernels
    assert run(tmp_path, "second.npy") == [0, kernels]
    assert (tmp_path / "first.npy").read_bytes() == (tmp_path / "second.npy").read_bytes()


def test_one_core_does_all_work_itself(monkeypatch):
    monkeypatch.setattr(workers, "usable_processors", lambda: 1)
    done = []
    workers.share(5, done.append)
    assert done == [0, 1, 2, 3, 4]


@needs_fork
def test_each_number_is_worked_off_once(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "usable_processors", lambda: 4)
    monkeypatch.setattr(workers, "can_share", lambda: True)
    workers.share(40, lambda number: os.close(os.open(tmp_path / str(number), os.O_CREAT | os.O_EXCL)))
    assert sorted(int(path.name) for path in tmp_path.iterdir()) == list(range(40))


@needs_fork
def test_an_error_in_this_process_is_raised_and_one_elsewhere_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "usable_processors", lambda: 3)
    monkeypatch.setattr(workers, "can_share", lambda: True)
    here = os.getpid()

    def work(number):
        if os.getpid() != here:
            os._exit(9)
        (tmp_path / str(number)).touch()

    workers.share(10, work)

    def refused(number):
        raise ArgumentError("no")

    with pytest.raises(ArgumentError, match="no"):
        workers.share(10, refused)


@needs_fork
def test_workers_that_were_forked_before_an_interrupt_are_ended(monkeypatch):
    fork, forked = os.fork, []

    def interrupted():
        if forked:
            raise KeyboardInterrupt
        forked.append(fork())
        return forked[-1]

    monkeypatch.setattr(workers, "usable_processors", lambda: 3)
    monkeypatch.setattr(workers, "can_share", lambda: True)
    monkeypatch.setattr(os, "fork", interrupted)
    with pytest.raises(KeyboardInterrupt):
        workers.share(9, lambda number: time.sleep(60))
    with pytest.raises(ChildProcessError):
        os.waitpid(forked[0], os.WNOHANG)
