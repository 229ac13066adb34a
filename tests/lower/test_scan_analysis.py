"""What te.schedule tells of scans and of the places of stages."""

import pytest

from tedsl import te, tir
from tedsl.errors import ArgumentTypeError

L, M, N = te.var("l"), te.var("m"), te.var("n")
STATE = te.placeholder((L, M, N), name="state")
X = te.compute((L, M, N), lambda *i: tir.const(1, "float32"), name="x")
BY_ROWS = te.compute((L, N, M), lambda t, j, i: STATE[t - 1, i, j], name="by_rows")
DIAGONAL = te.compute((L, N, M), lambda t, j, i: STATE[t - 1, j, j], name="diagonal")
COLUMN = te.compute((L, M, N), lambda t, i, j: STATE[t - 1, i, 10] * 2, name="column")
UPDATES = [
    (lambda t, i, j: X[t, j, i] + STATE[t - 1, i, j], [1, 1]),
    (lambda t, i, j: X[t, j, i] + STATE[t - 1, j, i], [0, 0]),
    (lambda t, i, j: BY_ROWS[t, j, i] + COLUMN[t, i, j], [1, 0]),
    (lambda t, i, j: DIAGONAL[t, j, i] + STATE[t - 1, i, j], [0, 0]),
    (lambda t, i, j: STATE[t - 1, i + 1 - M, j] + 1, [0, 1]),
]


@pytest.mark.parametrize(("update", "expected"), UPDATES)
def test_dimensions_that_are_computed_apart(update, expected):
    scan = te.scan(te.compute((1, M, N), lambda _, i, j: X[0, i, j]), te.compute((L, M, N), update, name="update"), STATE).op
    points = te.schedule.ScanFixPointAnalysis(scan)
    assert [points[axis].value for axis in scan.spatial_axis_] == expected


def test_other_operations_are_refused():
    with pytest.raises(ArgumentTypeError, match=r"te\.scan"):
        te.schedule.ScanFixPointAnalysis(X.op)
    with pytest.raises(ArgumentTypeError, match="schedule"):
        te.schedule.CreateAttachPath(X.op)


def test_the_loops_around_stages():
    a = te.placeholder((8, 8), name="a")
    b = te.compute((8, 8), lambda i, j: a[i, j] + 1, name="b")
    c = te.compute((8, 8), lambda i, j: b[i, j] * 2, name="c")
    s = te.create_schedule(c.op)
    s[b].compute_at(s[c], c.op.axis[1])
    paths = te.schedule.CreateAttachPath(s)
    assert paths[b.op] == (c.op.axis[1], c.op.axis[0])
    assert paths[c.op] == ()


def test_statements_say_of_what_operation_an_allocation_is():
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: a[i] + 1, name="b")
    s = te.create_schedule(b.op)
    cached = s.cache_write(b, "shared")
    stmt = te.schedule.ScheduleOps(s, te.schedule.InferBound(s))
    found = []
    tir.stmt_functor.post_order_visit(stmt, lambda node: found.append(node) if isinstance(node, tir.AttrStmt) else None)
    assert {(node.node.name, node.value.value) for node in found if node.attr_key == "realize_scope"} \
        == {(cached.op.name, "shared"), ("b", "")}
    func = te.schedule.SchedulePostProcToPrimFunc([a, b], stmt, None)
    assert "realize_scope" not in str(func)
