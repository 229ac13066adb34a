"""Offsets of ranges of memory."""

from hypothesis import given
from hypothesis import strategies as st

from tedsl.graph.plan.offsets import ALIGNMENT, Range, aligned, least_bytes, place

RANGES = st.lists(st.builds(lambda size, begin, length: Range(size, begin, begin + length), st.integers(1, 5000),
                            st.integers(0, 30), st.integers(0, 9)), min_size=1, max_size=40)


@given(RANGES)
def test_ranges_that_are_in_use_together_do_not_overlap(ranges):
    made = place(ranges)
    for at, (a, offset) in enumerate(zip(ranges, made.offsets)):
        assert offset % ALIGNMENT == 0 and 0 <= offset <= made.size - a.size
        for b, other in list(zip(ranges, made.offsets))[:at]:
            assert not a.meets(b) or offset + a.size <= other or other + b.size <= offset


@given(RANGES)
def test_no_plan_needs_less_than_the_bound_or_more_than_the_sum(ranges):
    assert least_bytes(ranges) <= place(ranges).size <= sum(aligned(one.size) for one in ranges)


def test_the_bound_is_the_largest_sum_in_use_at_one_time():
    assert least_bytes([Range(64, 0, 1), Range(128, 1, 2), Range(64, 3, 3)]) == 192


def test_a_range_takes_the_smallest_gap_that_holds_it():
    ranges = [Range(640, 0, 9), Range(640, 0, 0), Range(320, 1, 9), Range(64, 1, 2)]
    made = place(ranges)
    assert made.size == 1280


def test_where_largest_first_wastes_memory_another_order_is_kept():
    ranges = [Range(64 * size, begin, end) for size, begin, end in
              [(3, 0, 1), (2, 0, 3), (4, 2, 3), (3, 4, 5), (2, 3, 4)]]
    assert place(ranges).size == least_bytes(ranges)


def test_nothing_to_place_needs_nothing():
    assert place([]).size == least_bytes([]) == 0
