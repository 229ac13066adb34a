"""The register tiles that the model chooses."""

import pytest

from tedsl.target import Target
from topi.schedules.cpu.tiles import next_is_asked_for, registers, registers_of_rows, tile_of

MACHINES = ["llvm -mcpu=znver4", "llvm -mcpu=icelake-server", "llvm -mcpu=haswell", "llvm -mcpu=znver3", "llvm -mcpu=x86-64",
            "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1", "llvm -mtriple=riscv64-linux-gnu -mcpu=spacemit-x60"]
SIZES = [None, 0, 1, 7, 64, 100, 157, 1024]


@pytest.mark.parametrize("notation", MACHINES)
def test_a_tile_fits_the_registers_and_the_product(notation):
    target = Target(notation)
    lanes = target.vector_lanes("float32")
    for rows in SIZES:
        for columns in SIZES:
            for terms in (None, 1, 64, 4096):
                tall, wide = tile_of(rows, columns, terms, lanes, target)
                vectors, rest = divmod(wide, lanes)
                assert not rest and tall * vectors + vectors <= registers(target)
                assert 1 <= tall <= (rows or 16) and wide - lanes < (columns or 1 << 20) + lanes


def test_a_machine_of_two_multipliers_takes_wider_tiles():
    """Where two multiply-adds start in a cycle, loads for them are more: wider tiles have fewer."""
    one, two = Target("llvm -mcpu=znver4"), Target("llvm -mcpu=icelake-server")
    assert tile_of(512, 512, 512, 16, one)[1] < tile_of(512, 512, 512, 16, two)[1]


def test_what_nearly_binds_counts_too():
    """Of 12 x 316 x 563, tiles of 6 rows wait for multiply-adds alone, with two vectors as with three: three were faster."""
    assert tile_of(12, 563, 316, 16, Target("llvm -mcpu=znver5")) == (6, 48)


def test_sums_are_enough_to_hide_the_latency():
    for notation in MACHINES[:4]:
        target = Target(notation)
        tall, wide = tile_of(1024, 1024, 256, target.vector_lanes("float32"), target)
        assert tall * wide // target.vector_lanes("float32") >= target.machine.chains(target.vector_bits)


def test_rows_that_evict_each_other_are_fewer_or_their_tiles_wider():
    """Rows of 4096 bytes fall into one set of L1, which has 8 lines: eight rows of one vector load lines again and again."""
    target = Target("llvm -mcpu=znver4")
    assert tile_of(1024, 1024, 1000, 16, target)[0] >= 8
    tall, wide = tile_of(1024, 1024, 1024, 16, target)
    assert tall < 8 or wide > 16


def test_panels_from_afar_are_narrow_enough_that_the_next_one_is_asked_for():
    """A panel of 64 columns and 4096 terms is 1 MB, half of L2, and the tiles of 24 rows are over before it is read."""
    target = Target("llvm -mcpu=sapphirerapids")
    near, far = (tile_of(24, 1024, 4096, 16, target, are_far=are_far)[1] for are_far in (False, True))
    assert not next_is_asked_for(4 * 4096 * near, target) and next_is_asked_for(4 * 4096 * far, target)


def test_many_tiles_below_each_other_take_the_same_panels_from_afar():
    target = Target("llvm -mcpu=sapphirerapids")
    assert tile_of(1024, 1024, 1024, 16, target, are_far=True) == tile_of(1024, 1024, 1024, 16, target)


def test_the_model_of_another_machine_changes_the_tile():
    assert tile_of(512, 512, 512, 16, Target("llvm -mcpu=znver4")) != \
        tile_of(512, 512, 512, 16, Target("llvm -mcpu=znver4 -model=icelake-server"))


def test_a_rest_that_fills_no_vector_takes_registers_by_its_pieces():
    """25 columns in one tile are vectors of 16, 8 and 1; beside a whole tile, 15 are one vector with a mask, 9 are 8 and 1.

    Masks load 9 at once: 25 columns are two vectors.
    """
    assert registers_of_rows(25, 2, 16) == [(1.0, 3)] and registers_of_rows(111, 7, 16) == [(1.0, 10)]
    assert registers_of_rows(25, 2, 16, True) == [(1.0, 2)] and registers_of_rows(111, 7, 16, True) == [(1.0, 7)]
    assert registers_of_rows(41, 1, 16, True) == [(2.0, 1), (1.0, 2)] and registers_of_rows(0, 1, 16, True) == []
    assert registers_of_rows(31, 1, 16) == [(1.0, 1), (1.0, 1)] and registers_of_rows(41, 1, 16) == [(2.0, 1), (1.0, 2)]
    assert registers_of_rows(96, 3, 16) == [(2.0, 3)] and registers_of_rows(15, 1, 16) == [(1.0, 1)]
    for columns in (25, 37, 47, 100, 111):
        with Target("llvm -mcpu=znver4") as target:
            tall, wide = tile_of(500, columns, 300, 16, target)
            assert all((tall + 1) * held < 32 for _, held in registers_of_rows(columns, wide // 16, 16, True))
