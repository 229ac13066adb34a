"""LiftAttrScope, CombineContextCall and LowerDeviceStorageAccessInfo on functions written by hand."""

import types

import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentTypeError, LoweringError
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.walk.visitor import post_order

T = tir.transform
KEY = "coproc_uop_scope"
CORE = te.thread_axis((0, 1), "core")


def after(step, *given):
    """The body that `step` makes of the statements of an ir_builder, with parameters."""
    ib, *params = given
    return step(IRModule({"main": PrimFunc(params, ib.get())}))["main"].body



# --- LiftAttrScope ------------------------------------------------------------------------------------------------------------

def stores(ib, array, *values, scope=True):
    """Stores in a scope of their own, under an attribute of each value that is not None."""
    for place, value in enumerate(values):
        with ib.new_scope():
            if scope and value is not None:
                ib.scope_attr(CORE, KEY, value)
            array[place] = float(place)


def attributes(body):
    """The statements under each attribute, outer ones first."""
    return [node for node in reversed(list(post_order(body))) if isinstance(node, tir.AttrStmt) and node.attr_key == KEY]


def test_an_attribute_of_all_statements_is_written_once_inside_of_the_allocation():
    ib, n = tir.ir_builder.create(), te.var("n")
    A = ib.allocate("float32", n, name="A")
    with ib.for_range(0, n, "i") as i:
        with ib.for_range(0, 4, "j"):
            ib.scope_attr(CORE, KEY, 1)
            A[i] = 1.0
        with ib.if_scope(i == 0):
            stores(ib, A, 1, 1)
    body = after(T.LiftAttrScope(KEY), ib, n)
    assert isinstance(body, tir.Allocate) and isinstance(body.body, tir.AttrStmt) and body.body.node is CORE
    assert isinstance(body.body.body, tir.For) and len(attributes(body)) == 1


@pytest.mark.parametrize("values, runs", [
    ([None, 1, 1], [None, 1]), ([1, 1, None], [1, None]), ([1, 2, 2], [1, 2]), ([1, None, 1], [1, None, 1]), ([2, 1], [2, 1])])
def test_neighbours_share_an_attribute(values, runs):
    ib, n = tir.ir_builder.create(), te.var("n")
    A = ib.pointer("float32", name="A")
    with ib.for_range(0, n, "i"):
        stores(ib, A, *values)
    loop = after(T.LiftAttrScope(KEY), ib, n)
    assert isinstance(loop, tir.For) and [getattr(part, "value", None) for part in map(attribute, loop.body)] == runs


def attribute(stmt):
    return stmt.value if isinstance(stmt, tir.AttrStmt) else None


def test_branches_share_an_attribute_that_both_have():
    def branches(then, other):
        ib, n = tir.ir_builder.create(), te.var("n")
        A = ib.pointer("float32", name="A")
        with ib.if_scope(n > 3):
            stores(ib, A, then)
        with ib.else_scope():
            stores(ib, A, other)
        return after(T.LiftAttrScope(KEY), ib, n)

    assert isinstance(branches(1, 1), tir.AttrStmt) and len(attributes(branches(1, 1))) == 1
    for then, other, count in ((1, 2, 2), (1, None, 1), (None, 1, 1), (None, None, 0)):
        body = branches(then, other)
        assert isinstance(body, tir.IfThenElse) and len(attributes(body)) == count


def test_an_attribute_stays_inside_of_what_binds_its_value():
    ib, n = tir.ir_builder.create(), te.var("n")
    A = ib.pointer("float32", name="A")
    with ib.for_range(0, n, "i"), ib.for_range(0, 4, "j") as j, ib.for_range(0, 4, "k"):
        ib.scope_attr(CORE, KEY, j + 1)
        A[j] = 1.0
    body = after(T.LiftAttrScope(KEY), ib, n)
    assert isinstance(body.body.body, tir.AttrStmt) and isinstance(body.body.body.body, tir.For)
    other = T.LiftAttrScope("another")(IRModule({"main": PrimFunc([n], body)}))["main"].body
    assert other is body
    with pytest.raises(ArgumentTypeError, match=r"the key of an attribute, not 3"):
        T.LiftAttrScope(3)


# --- CombineContextCall ---------------------------------------------------------------------------------------------------

def context(kind, number):
    return tir.call_intrin("handle", "tir.tvm_thread_context", tir.call_extern("handle", "context", kind, number))


def use(ib, kind, *numbers):
    for number in numbers:
        ib.emit(tir.call_extern("int32", "run", context(kind, number)))


def contexts(body):
    return [node for node in post_order(body) if isinstance(node, tir.Call) and node.args and "context" in str(node.args[0])
            and node.op.name == "tir.call_extern" and node.dtype == "handle"]


def test_each_context_is_taken_once_in_front():
    ib, kind, n = tir.ir_builder.create(), te.var("kind"), te.var("n")
    with ib.for_range(0, n, "i"):
        use(ib, kind, 0)
        with ib.for_range(0, 10, "j"):
            use(ib, kind, 1, 0)
    body = after(T.CombineContextCall(), ib, kind, n)
    assert isinstance(body, tir.LetStmt) and isinstance(body.body, tir.LetStmt) and isinstance(body.body.body, tir.For)
    assert (body.var.dtype, body.var.name, body.value.args[2].value) == ("handle", "context_cache", 0)
    assert len(contexts(body)) == 2 and "tvm_thread_context" not in str(body)


def test_threads_have_contexts_of_their_own():
    ib, kind, n = tir.ir_builder.create(), te.var("kind"), te.var("n")
    use(ib, kind, 0)
    with ib.for_range(0, n, "i", kind="parallel") as i:
        use(ib, kind, 0, 0, i)
    body = after(T.CombineContextCall(), ib, kind, n)
    inner = body.body[1]
    assert isinstance(inner, tir.LetStmt) and inner.var is not body.var and isinstance(inner.body, tir.For)
    assert str(inner.body).count("tvm_thread_context") == 1, "the context of an iteration stays in it"
    plain = PrimFunc([n], tir.Evaluate(n))
    assert T.CombineContextCall()(IRModule({"main": plain}))["main"] is plain
    lowered = T.LowerIntrin()(IRModule({"main": PrimFunc([kind, n], inner)}))["main"]
    assert "tvm_thread_context" not in str(lowered)


# --- LowerDeviceStorageAccessInfo ---------------------------------------------------------------------------------------

def tagged(scope):
    ib = tir.ir_builder.create()
    A = tir.decl_buffer((8,), "int8", name="A")
    S = ib.allocate("int8", 8, name="S", scope=scope)
    whole = tir.decl_buffer((8,), "int8", data=S.asobject(), scope=scope)
    ib.emit(tir.call_extern("int32", "f", whole.access_ptr("r", offset=4), A.access_ptr("w", content_lanes=4, offset=4)))
    func = PrimFunc([A], ib.get())
    return T.LowerDeviceStorageAccessInfo()(IRModule({"main": func}))["main"].body


@pytest.mark.parametrize("tag, head, kind", [("none", None, tir.Evaluate), ("let", "inputs", tir.LetStmt)])
def test_memory_of_a_tag_is_what_the_program_says(tag, head, kind):
    address = head and tir.call_extern("handle", head)
    tedsl.register_func(f"tvm.info.mem.local.test_{tag}", lambda: types.SimpleNamespace(head_address=address), override=True)
    body = tagged(f"local.test_{tag}")
    assert isinstance(body, kind) and (head is None or body.value.args[0].value == head)
    assert isinstance(tagged("local"), tir.Allocate) and isinstance(tagged("local.unknown"), tir.Allocate)


def test_pointers_are_addresses_of_elements():
    call = tagged("local").body.value
    assert [arg.op.name for arg in call.args[1:]] == ["tir.address_of"] * 2
    assert [arg.args[0].index.value for arg in call.args[1:]] == [4, 4]


def test_an_address_that_is_none():
    tedsl.register_func("tvm.info.mem.local.test_wrong", lambda: types.SimpleNamespace(head_address=3), override=True)
    with pytest.raises(LoweringError, match="the head_address of the memory of S is 3, not an address"):
        tagged("local.test_wrong")
