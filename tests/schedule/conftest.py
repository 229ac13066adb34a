"""Programs that the tests of schedules share, and the state of a schedule as something that can be compared."""

import itertools
import operator
from types import SimpleNamespace

import numpy as np
import pytest

from tedsl import te
from tedsl.errors import ScheduleError
from tedsl.ir import expr as ex
from tedsl.ir.ops import IF_THEN_ELSE, LIKELY
from tedsl.schedule.handles import create_schedule
from tests.refusing import refused


def state_of(s):
    """Everything that a directive could change, by identity of its objects."""
    stages = [(st.op, st.origin_op, tuple(map(id, st.all_iter_vars)), tuple(map(id, st.leaf_iter_vars)),
               tuple(map(id, st.relations)), st.scope, st.is_output, st.attach_type, id(st.attach_stage), id(st.attach_ivar),
               tuple((id(k), id(v)) for k, v in st.iter_var_attrs.items()), st.nontemporal, st.storage, id(st.store_predicate),
               tuple((id(k), v) for k, v in st.retired.items())) for st in s.state.stages]
    known = [(id(op), id(st)) for op, st in s.state.stage_map.items()]
    return stages, known, str(s), str(s.journal), dict(s.state.recorder.names)


@pytest.fixture
def chain():
    """A -> B -> C -> D, element-wise, 64 x 48; D is the output."""
    A = te.placeholder((64, 48), name="A")
    B = te.compute((64, 48), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((64, 48), lambda i, j: B[i, j] * 2.0, name="C")
    D = te.compute((64, 48), lambda i, j: C[i, j] - 3.0, name="D")
    s = create_schedule(D.op)
    return SimpleNamespace(s=s, A=A, B=B, C=C, D=D)


@pytest.fixture
def matmul():
    """C = A B, 64 x 50 x 32, where 50 is no multiple of usual factors; D = C + 1 is the output."""
    A = te.placeholder((64, 50), name="A")
    B = te.placeholder((50, 32), name="B")
    k = te.reduce_axis((0, 50), "k")
    C = te.compute((64, 32), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    D = te.compute((64, 32), lambda i, j: C[i, j] + 1.0, name="D")
    s = create_schedule(D.op)
    return SimpleNamespace(s=s, A=A, B=B, C=C, D=D, k=k)


@pytest.fixture(name="refused")
def refused_unchanged():
    """`refused(s, fn, *words)`: fn() is a ScheduleError with all these words, and leaves the schedule as it was."""
    def check(s, fn, *words):
        before = state_of(s)
        refusal = refused(fn, *words, "loops now:", error=ScheduleError)
        assert refusal.directive
        assert state_of(s) == before
        return refusal

    return check


# --- what a schedule computes, stage by stage, in Python ---------------------------------------------------------------

def value_of(e, env, arrays):
    """The value of a formula's expression; `env` gives the axes, `arrays` the tensors computed so far."""
    match e:
        case ex.Var():
            return env[e]
        case ex.IntImm() | ex.FloatImm():
            return e.value
        case ex.ProducerLoad():
            index = tuple(int(value_of(i, env, arrays)) for i in e.indices)
            array = arrays[e.producer]
            assert all(0 <= i < n for i, n in zip(index, array.shape)), f"{e!r} reads {index} of {array.shape}"
            return array[index]
        case ex.Reduce():
            return reduced(e, env, arrays)[e.value_index]
        case ex.Call() if e.op is IF_THEN_ELSE:
            return value_of(e.args[1 if value_of(e.args[0], env, arrays) else 2], env, arrays)
        case ex.Call() if e.op is LIKELY:
            return value_of(e.args[0], env, arrays)
        case ex.And():
            return value_of(e.a, env, arrays) and value_of(e.b, env, arrays)
        case ex.Select():
            return value_of(e.true_value if value_of(e.condition, env, arrays) else e.false_value, env, arrays)
        case ex.Cast():
            return value_of(e.value, env, arrays)
    return BINARY[type(e)](value_of(e.a, env, arrays), value_of(e.b, env, arrays))


BINARY = {ex.Add: operator.add, ex.Sub: operator.sub, ex.Mul: operator.mul, ex.FloorDiv: operator.floordiv,
          ex.FloorMod: operator.mod, ex.LT: operator.lt, ex.GE: operator.ge, ex.GT: operator.gt, ex.Max: max, ex.Min: min}


def reduced(e, env, arrays):
    total = [value_of(x, {}, {}) for x in e.combiner.identity_element]
    starts = [int(value_of(a.dom.min, env, arrays)) for a in e.axis]
    counts = [int(value_of(a.dom.extent, env, arrays)) for a in e.axis]
    spans = [range(start, start + count) for start, count in zip(starts, counts)]
    for point in itertools.product(*spans):
        inner = {**env, **{a.var: v for a, v in zip(e.axis, point)}}
        if value_of(e.condition, inner, arrays):
            new = [value_of(x, inner, arrays) for x in e.source]
            names = {**dict(zip(e.combiner.lhs, total)), **dict(zip(e.combiner.rhs, new))}
            total = [value_of(x, names, {}) for x in e.combiner.result]
    return total


@pytest.fixture
def compute_stages():
    """`compute_stages(s, {A: array})`: the values of every tensor that the stages compute now, in the order of the stages."""
    def run(s, inputs):
        arrays = dict(inputs)
        for stage in s.stages:
            op = stage.op
            if isinstance(op, te.PlaceholderOp) or stage.attach_type == 3:
                continue
            shape = [int(value_of(n, {}, {})) for n in op.shape]
            made = [np.empty(shape) for _ in op.body]
            for index in np.ndindex(*shape):
                env = {a.var: v for a, v in zip(op.axis, index)}
                for array, body in zip(made, op.body):
                    array[index] = value_of(body, env, arrays)
            arrays.update({op.output(v): array for v, array in enumerate(made)})
        return arrays

    return run


@pytest.fixture
def state():
    """`state(s)`: everything that a directive could change."""
    return state_of
