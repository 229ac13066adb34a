"""What should be refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tedsl.fuzz.schedules import Scheduler


def wild(s: Scheduler) -> str | None:
    """Anything that can be written, most of it wrong."""
    name, other = s.draw.choice(s.tensors), s.draw.choice(s.tensors)
    a, b = (f"loop({s.draw.choice([name, name, other])}, {s.draw.which(4)})" for _ in "ab")
    number = s.draw.choice([0, 1, 3, -1])
    return s.draw.choice([
        f"s[{name}].split({a}, factor={number})", f"s[{name}].fuse({a}, {b})", f"s[{name}].reorder({a}, {b})",
        f"s[{name}].tile({a}, {b}, 2, {number})", f"s[{name}].vectorize({a})", f"s[{name}].unroll({a})",
        f"s[{name}].parallel({a})", f"s[{name}].compute_at(s[{other}], loop({other}, {s.draw.which(4)}))",
        f"s[{name}].compute_inline()", f"{s.fresh('c')} = s.cache_write({name}, 'local')",
        f"{s.fresh('f')} = s.rfactor({name}, {a}, {number})", f"{s.fresh('c')} = s.cache_read({name}, 'local', [{other}])",
        f"s[{name}].set_scope('{s.draw.choice(['local', 'nowhere'])}')", f"s[{name}].nontemporal()"])
