"""Temporary memory: aligned, reused by the thread that freed it, null where it cannot be had."""

import ctypes
import threading

import pytest

from tedsl.codegen.llvm.linking import jit


@pytest.fixture(scope="module")
def alloc():
    return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(jit.runtime_address("tedsl_workspace_alloc"))


@pytest.fixture(scope="module")
def free():
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(jit.runtime_address("tedsl_workspace_free"))


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 4096, 10**6])
def test_blocks_are_aligned_and_writable(alloc, free, size):
    block = alloc(size)
    assert block % 64 == 0
    ctypes.memset(block, 1, size)
    free(block)


def test_a_freed_block_is_used_again(alloc, free):
    block = alloc(5000)
    free(block)
    assert alloc(5000) == block
    free(block)


def test_live_blocks_are_distinct(alloc, free):
    blocks = [alloc(256) for _ in range(50)]
    assert len(set(blocks)) == 50
    for block in blocks:
        free(block)


def test_more_blocks_than_the_pool_keeps(alloc, free):
    for _ in range(3):
        for block in [alloc(1000 * k) for k in range(1, 60)]:
            free(block)


@pytest.mark.parametrize("size", [-1, -(2**63), 2**62, 2**63 - 1])
def test_what_cannot_be_had_is_null(alloc, size):
    assert alloc(size) is None


def test_freeing_null_is_nothing(free):
    free(None)


def test_threads_have_pools_of_their_own(alloc, free):
    errors = []

    def work(value):
        for k in range(300):
            block = alloc(100 + k)
            ctypes.memset(block, value, 100 + k)
            if ctypes.string_at(block, 100 + k) != bytes([value]) * (100 + k):
                errors.append(value)
            free(block)

    threads = [threading.Thread(target=work, args=(v,)) for v in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
