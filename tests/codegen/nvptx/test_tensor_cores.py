"""PTX of tensor cores: NVIDIA's assembler takes it, the fragments are registers, and what no device has is refused."""

import pytest

import tedsl
from tedsl import te, tir
from tedsl.contrib import intrinsics
from tedsl.errors import ArgumentError, LoweringError
from tests.codegen.nvptx.assembler import assemble, count
from tests.codegen.nvptx.kernels import device_code
from tests.devices.matrices import convolution, product, whole_tile
from tests.devices.test_tensor_cores import FORMS

FIRST = {"float16": "sm_70", "int8": "sm_75", "uint8": "sm_75", "bfloat16": "sm_80"}


def assembled(program, arch, folder):
    code = device_code(*program, arch)
    assert ".local" not in code.text, "fragments are registers"
    return code.text, assemble(code.text, arch, folder)[0]


@pytest.mark.parametrize("arch", ["sm_70", "sm_75", "sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize("name", FORMS)
def test_forms(name, arch, tmp_path):
    options = FORMS[name]
    m, n, k = options.get("shape", (16, 16, 16))
    program = product((m, n, 2 * k), **options)
    first = FIRST[options.get("dtype", "float16")]
    if int(arch[3:]) < int(first[3:]):
        with pytest.raises(LoweringError, match=f"{arch} has no tensor cores"):
            device_code(*program, arch)
        return
    text, _ = assembled(program, arch, tmp_path)
    assert text.count("wmma.mma") == text.count("wmma.load.a") > 0


def test_machine_code(tmp_path):
    """A tile of 4 x 4 fragments: products of 16 x 8 x 16 each, two for a fragment."""
    text, image = assembled(product((64, 64, 64), tiles=(4, 4), warps=(1, 1), step=4), "sm_80", tmp_path)
    assert text.count("wmma.mma") == 64 and text.count("wmma.load.a") == 16
    assert count(image, "HMMA", "16816", "F32") == 128 and count(image, "BAR") == 1
    text, image = assembled(product((32, 32, 32), dtype="int8", out="int32"), "sm_80", tmp_path)
    assert count(image, "IMMA") > 0
    text, image = assembled(convolution(), "sm_80", tmp_path)
    assert count(image, "HMMA") % (2 * text.count("wmma.mma")) == 0 and count(image, "LDG", "128") > 0


def test_memory_of_matrices_is_aligned():
    text = device_code(*product((16, 16, 16)), "sm_80").text
    assert text.count(".shared .align 32") == 2


def test_addresses_of_matrices_are_of_shared_memory_from_the_beginning():
    """Not of any memory, turned into that: what goes back and forth takes registers that threads may lack."""
    for program in (product((64, 64, 64), tiles=(4, 4), warps=(1, 1), step=4), convolution()):
        text = device_code(*program, "sm_80").text
        assert "wmma.load" in text and "cvta.shared" not in text and "cvta.to.shared" not in text


def test_loops_over_many_fragments_are_unrolled(tmp_path):
    assembled(product((256, 128, 64), tiles=(4, 4), warps=(2, 2)), "sm_80", tmp_path)


# --- what is refused ----------------------------------------------------------------------------------------------------

def tile(make, threads=32, scope="wmma.accumulator", dtype="float32"):
    """A block whose threads make the calls of `make(fragments, C, thread)` by ir_builder."""
    def body(outs):
        ib = tir.ir_builder.create()
        block, thread = te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.x")
        ib.scope_attr(block, "thread_extent", 1)
        ib.scope_attr(thread, "thread_extent", threads)
        fragments = ib.allocate(dtype, 512, name="F", scope=scope)
        make(ib, fragments.asobject() if make.__name__ != "element" else fragments, outs[0], thread)
        return ib.get()

    C = te.extern((16, 16), [], lambda ins, outs: body(outs), name="C", dtype="float32")
    return te.create_schedule(C.op), [C]


def fill(ib, F, shape=(16, 16, 16), number=0):
    ib.emit(tir.call_intrin("handle", "tir.tvm_fill_fragment", F, *shape, number, 0.0))


def store(ib, F, C, shape=(16, 16, 16), number=0, order="row_major"):
    ib.emit(tir.call_intrin("handle", "tir.tvm_store_matrix_sync", F, *shape,
                            number, C.access_ptr("w"), 16, order))


def filled_and_stored(ib, F, C, thread):
    fill(ib, F)
    store(ib, F, C)


@pytest.mark.parametrize("target", ["cuda -arch=sm_80", "llvm"])
def test_calls_by_hand(target):
    tedsl.build(*tile(filled_and_stored), target=target)


def refused(make, match, target="cuda -arch=sm_80", **options):
    with pytest.raises(LoweringError, match=match):
        tedsl.build(*tile(make, **options), target=target)


@pytest.mark.parametrize("target", ["cuda -arch=sm_80", "llvm"])
def test_other_rows_of_threads(target):
    for threads in (16, 64):
        refused(filled_and_stored, f"32 threads along threadIdx.x, and the kernel has {threads}", target, threads=threads)


@pytest.mark.parametrize("target", ["cuda -arch=sm_80", "llvm"])
def test_threads_that_go_apart(target):
    def some(ib, F, C, thread):
        with ib.if_scope(thread.var < 16):
            fill(ib, F)

    def others(ib, F, C, thread):
        fill(ib, F, number=thread.var // 16)

    def loops(ib, F, C, thread):
        with ib.for_range(0, thread.var):
            fill(ib, F)

    refused(some, "runs under the condition threadIdx.x.* differs among the threads of a warp", target)
    refused(others, "has the argument .*differs among the threads of a warp", target)
    refused(loops, "runs in the loop .* differs among the threads of a warp", target)


def test_shapes_and_scopes():
    def shape(ib, F, C, thread):
        fill(ib, F, (16, 16, 8))

    def two_shapes(ib, F, C, thread):
        fill(ib, F)
        store(ib, F, C, (8, 32, 16))

    def order(ib, F, C, thread):
        fill(ib, F)
        store(ib, F, C, order="rows")

    def element(ib, F, C, thread):
        fill(ib, F.asobject())
        ib.emit(C.vstore([0, 0], F[0]))

    def bits(ib, F, C, thread):
        ib.emit(tir.call_intrin("handle", "tir.tvm_bmma_sync", F, 0, F, 0, F, 0, F, 0))

    refused(shape, "no tensor core multiplies matrices of m, n, k = 16, 16, 8")
    refused(two_shapes, r"are of m, n, k = \(16, 16, 16\) elsewhere")
    refused(order, "is not an order of elements")
    refused(filled_and_stored, "has scope 'local', not one of fragments", scope="local")
    refused(filled_and_stored, "only accumulators are stored", scope="wmma.matrix_a", dtype="float16")
    refused(filled_and_stored, "holds", dtype="float64")
    refused(element, "is used alone")
    refused(bits, "products of single bits")


def test_stages_without_threads():
    """A kernel whose warps have one thread each."""
    s, args = product((16, 16, 16))
    shared = [stage for stage in s.stages if stage.scope == "shared"]
    assert len(shared) == 2
    with pytest.raises(LoweringError, match=r"the kernel has no threads there"):
        A = te.placeholder((16, 16), "float16", name="A")
        AF = te.compute((16, 16), lambda i, j: A[i, j], name="AF")
        C = te.compute((16, 16), lambda i, j: AF[i, j], name="C")
        s = te.create_schedule(C.op)
        s[AF].set_scope("wmma.accumulator")
        s[C].bind(s[C].split(C.op.axis[0], 16)[0], te.thread_axis("blockIdx.x"))
        s[AF].compute_at(s[C], s[C].leaf_iter_vars[0])
        load = te.compute((16, 16), lambda i, j: A[i, j], name="load")

        def part(ins, outs):
            return tir.Evaluate(tir.call_intrin("handle", "tir.tvm_load_matrix_sync", outs[0].data, 16, 16, 16, 0,
                                                ins[0].access_ptr("r"), 16, "row_major"))

        loads = te.decl_tensor_intrin(load.op, part,
                                       binds={A: whole_tile(A, "global"), load: whole_tile(load, "wmma.accumulator")})
        s[AF].tensorize(AF.op.axis[0], loads)
        s[C].tensorize(s[C].leaf_iter_vars[1], intrinsics.wmma_store(dtype="float16"))
        tedsl.build(s, [A, C], target="cuda")


def test_makers_check_their_arguments():
    for make, match in ((lambda: intrinsics.wmma_mma((16, 16, 8)), "no tensor core multiplies 16 x 8 by 8 x 16"),
                        (lambda: intrinsics.wmma_load_a(dtype="float32"), "no tensor core multiplies 'float32'"),
                        (lambda: intrinsics.wmma_load_b(order="rows"), "the order of elements is 'rows'"),
                        (lambda: intrinsics.wmma_store(dtype="int8"), "no accumulator is of 'int8'"),
                        (lambda: intrinsics.wmma_mma(dtype="int8", out_dtype="float32"), "added in int32, not 'float32'"),
                        (lambda: intrinsics.wmma_mma(16), "the shape is m, n, k")):
        with pytest.raises(ArgumentError, match=match):
            make()
    assert {"wmma_load_a", "wmma_load_b", "wmma_mma", "wmma_store"} <= set(intrinsics.names())


