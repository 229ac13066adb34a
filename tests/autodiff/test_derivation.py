"""One derivation as text: a window with a stride, before and after zeros are left out of its sums."""

import tedsl
from tedsl import te
from tedsl.autodiff import terms


def window():
    a, w = te.placeholder((9,), name="A"), te.placeholder((3,), name="W")
    k = te.reduce_axis((0, 3), name="k")
    return te.compute((4,), lambda i: te.sum(a[2 * i + k] * w[k], axis=k), name="B"), a, w


def loops(tensors):
    text = str(tedsl.lower(te.create_schedule(tensors[-1].op), tensors, simple_mode=True))
    return text[text.index("  for "):].rstrip("}\n ")


def test_a_window(golden, monkeypatch):
    b, a, w = window()
    head = te.placeholder(b.shape, name="head")
    by_a, by_w = te.gradient(b, [a, w], head)
    jacobian, = te.gradient(b, [a])
    monkeypatch.setattr(terms, "eliminate_zeros", lambda tensor: tensor)
    plain_a, _ = te.gradient(b, [a, w], head)
    golden.sections(formula=loops([a, w, b]), before=loops([a, w, head, plain_a]), after=loops([a, w, head, by_a]),
                    weights=loops([a, w, head, by_w]), jacobian=loops([a, w, jacobian]))
