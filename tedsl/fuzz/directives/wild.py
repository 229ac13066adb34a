"""Directives that should mostly be refused."""

from __future__ import annotations

from tedsl.fuzz.scheduler import Scheduler


def wild(s: Scheduler) -> str | None:
    """A syntactically valid directive with arbitrary arguments, mostly illegal."""
    return s.draw.choice([*_loops_and_places(s), *_others(s)])


def wild_loops(s: Scheduler) -> str | None:
    """As `wild`, but only directives that split, fuse, order, annotate and place, so that accepted ones can be lowered."""
    return s.draw.choice(_loops_and_places(s))


def _loop(s: Scheduler, name: str) -> str:
    """A loop of the stage, rarely one of another stage, by a number that may not exist."""
    return f"loop({s.draw.choice([name, name, s.draw.choice(s.tensors)])}, {s.draw.which(4)})"


def _loops_and_places(s: Scheduler) -> list[str]:
    name, other = s.draw.choice(s.tensors), s.draw.choice(s.tensors)
    a, b = _loop(s, name), _loop(s, name)
    number = s.draw.choice([0, 1, 3, -1])
    return [
        f"s[{name}].split({a}, factor={number})", f"s[{name}].split({a}, nparts={number})", f"s[{name}].fuse({a}, {b})",
        f"s[{name}].reorder({a}, {b})", f"s[{name}].tile({a}, {b}, 2, {number})", f"s[{name}].vectorize({a})",
        f"s[{name}].unroll({a})", f"s[{name}].parallel({a})",
        f"s[{name}].compute_at(s[{other}], loop({other}, {s.draw.which(4)}))",
        f"s[{name}].compute_inline()", f"s[{name}].compute_root()", f"{s.fresh('c')} = s.cache_write({name}, 'local')",
        f"{s.fresh('f')} = s.rfactor({name}, {a}, {number})", f"{s.fresh('c')} = s.cache_read({name}, 'local', [{other}])"]


def _others(s: Scheduler) -> list[str]:
    name, other = s.draw.choice(s.tensors), s.draw.choice(s.tensors)
    a, b = _loop(s, name), _loop(s, name)
    return [
        f"s[{name}].double_buffer()", f"s[{name}].rolling_buffer()", f"s[{name}].decompose_reduction({a})",
        f"s[{name}].skip_zeros({a})",
        f"s[{name}].bind({a}, te.thread_axis('threadIdx.x'))", f"s[{name}].storage_align({a}, 4, 5)",
        f"s[{name}].tensorize({a}, intrinsics.copy_of(4, 'float32'))", f"s[{name}].specialize({a}.var > 1)",
        f"s[{name}].reverse_compute_at(s[{other}], {b})", f"s[{name}].compute_with(s[{other}], {a}, {b})",
        f"s[{name}].transform_layout(lambda i: [i])",
        f"s[{name}].prefetch({other}, {a}, {b})", f"s[{name}].env_threads([te.thread_axis('threadIdx.x')])",
        f"s[{name}].split({a}, factor=2, tail='shift_inwards')", f"s[{name}].split({a}, nparts=2, tail='round_up')",
        f"s.create_group([{name}], [{other}])", f"s[{name}].set_store_predicate({a}.var)",
        f"s[{name}].set_scope('{s.draw.choice(['local', 'nowhere'])}')", f"s[{name}].nontemporal()",
        f"s[{name}].pragma({a}, 'auto_unroll_max_step', {s.draw.choice(['4', 'None'])})"]
