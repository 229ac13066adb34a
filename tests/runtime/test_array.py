"""NDArray, devices and DLPack: memory is shared where the name says so, and copied elsewhere."""

import contextlib
import copy
import pickle

import numpy as np
import pytest

import tedsl
from tedsl import nd
from tedsl.errors import AllocationError, ArgumentError, ArgumentTypeError, DTypeError, OptionError
from tedsl.runtime.foreign import array_from_dlpack
from tests.refusing import refused


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3), (3, 0, 2)])
def test_empty_is_aligned_and_of_the_asked_kind(dtype, shape):
    made = nd.empty(shape, dtype)
    assert (made.shape, made.dtype, made.ndim) == (shape, dtype, len(shape))
    assert made._array.ctypes.data % 64 == 0 or made._array.size == 0
    assert made._array.flags.writeable and made._array.flags.c_contiguous


def test_array_copies_and_keeps_the_dtype():
    for source in (np.arange(6.0).reshape(2, 3)[:, ::-1], np.arange(3, dtype=">i4"), np.float32(2), [1, 2, 3], True):
        made = nd.array(source, nd.cpu(0))
        np.testing.assert_array_equal(made.numpy(), source)
        assert made._array.dtype == np.asarray(source).dtype.newbyteorder("=")
    data = np.zeros(3)
    made = nd.array(data)
    data[:] = 1
    assert not made.numpy().any()
    made.numpy()[:] = 5
    assert not made.asnumpy().any()


def test_what_has_no_dtype_of_ours_is_refused():
    with pytest.raises(ArgumentTypeError, match="no tedsl dtype for complex128"):
        nd.array(np.zeros(2, complex))
    with pytest.raises(ArgumentTypeError, match="masked"):
        nd.array(np.ma.masked_array([1.0]))
    with pytest.raises(ArgumentTypeError, match="wraps a numpy array, not list"):
        nd.NDArray([1.0])
    with pytest.raises(ArgumentError, match="dimension below 0"):
        nd.empty((2, -1))


def test_copies_in_and_between():
    a, b = nd.array(np.arange(6.0).reshape(2, 3)), nd.empty((2, 3), "float32")
    assert a.copyto(b) is b and b.dtype == "float32"
    np.testing.assert_array_equal(b.numpy(), a.numpy())
    b[:] = 7
    assert (b.numpy() == 7).all()
    b[:] = np.ones((2, 3))
    with pytest.raises(ArgumentError, match=r"the array has the shape \(2, 3\), what is assigned to its elements \(2, 2\)"):
        b[:] = np.ones((2, 2))
    b[1, 2] = 4
    assert b[1, 2] == 4 and b.numpy().sum() == 9 and len(b) == 2
    c = a.copyto(tedsl.cpu())
    assert c is not a and c.shape == a.shape
    with pytest.raises(ArgumentError, match=r"shape \(3,\), the array \(2, 3\)"):
        b.copyfrom(np.zeros(3))
    with pytest.raises(ArgumentTypeError, match="copyto takes"):
        a.copyto("gpu")


def test_numpy_sees_an_ndarray_as_its_memory():
    a = nd.array(np.arange(4.0))
    assert np.shares_memory(np.asarray(a), a._array)
    assert np.asarray(a, dtype="float32").dtype == np.float32
    assert not np.shares_memory(np.array(a), a._array)
    assert pickle.loads(pickle.dumps(a)).numpy().tolist() == copy.deepcopy(a).numpy().tolist() == [0, 1, 2, 3]
    assert "shape=(4,), cpu(0)" in repr(a)


def test_dlpack_both_ways_shares_memory():
    a = nd.array(np.arange(6, dtype=np.float32).reshape(2, 3))
    for other in (np.from_dlpack(a), nd.from_dlpack(a)._array, nd.from_dlpack(a.to_dlpack())._array):
        assert np.shares_memory(other, a._array) and other.tolist() == a.numpy().tolist()
    capsule = array_from_dlpack(a.to_dlpack())
    capsule[0, 0] = 42
    assert a[0, 0] == 42
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    with contextlib.suppress(BufferError):  # numpy before 2.1 does not give read-only memory away
        assert not array_from_dlpack(frozen).flags.writeable


def test_dlpack_keeps_the_memory_alive():
    capsule = np.arange(1000, dtype=np.int32).__dlpack__()
    made = array_from_dlpack(capsule)
    del capsule
    assert made.sum() == 499500


def test_devices():
    assert tedsl.cpu() == tedsl.cpu(0) == tedsl.device("llvm -mcpu=haswell") == nd.context("cpu", 0) == tedsl.device(1)
    assert (tedsl.cpu().exist, tedsl.cpu(1).exist, tedsl.cuda().exist) == (True, True, False)
    second = tedsl.cuda(1)
    assert (second.device_type, second.device_id, second.kind, str(second)) == (2, 1, "cuda", "cuda(1)")
    tedsl.cpu().sync()
    for name, number in (("opencl", 4), ("vulkan", 7), ("metal", 8), ("rocm", 10)):
        there = getattr(tedsl, name)(1)
        assert there == getattr(nd, name)(1)
        assert there == tedsl.device(name, 1) == tedsl.device(number, 1) and str(there) == f"{name}(1)" and not there.exist
    for wrong in ("tpu", "", 99, None):
        with pytest.raises(ValueError, match="there is no device kind"):
            tedsl.device(wrong)
    with pytest.raises(ArgumentError, match="the number of a device"):
        tedsl.cpu(-1)
    with pytest.raises(ArgumentError, match="no device cuda"):
        nd.empty((3,), device=tedsl.cuda())


def test_assert_allclose():
    tedsl.testing.assert_allclose(nd.array(np.ones(3)), [1, 1, 1])
    with pytest.raises(AssertionError):
        tedsl.testing.assert_allclose(np.ones(3), np.ones(3) + 1e-5)
    tedsl.testing.assert_allclose(np.ones(3), np.ones(3) + 1e-5, rtol=1e-4)
    with pytest.raises(AssertionError, match="the shapes differ"):
        tedsl.testing.assert_allclose(np.ones(3), np.ones(1))


def test_an_array_larger_than_any_memory_is_refused():
    with pytest.raises(ArgumentError, match=r"an array of shape \(9223372036854775808,\) and dtype float32 has .* bytes"):
        nd.empty((2**63,))
    with pytest.raises(DTypeError, match="an array holds numbers, one in each element, and handle is not the dtype of one"):
        nd.empty((2,), "handle")


def test_the_device_by_its_old_name():
    device = tedsl.device
    dev = device("cpu")
    assert nd.array([1.0, 2.0], ctx=dev).device == dev and nd.empty((2,), "int8", ctx=dev).shape == (2,)
    assert nd.array([1.0], dev, ctx=dev).device == dev
    for call in (lambda: nd.array([1.0], dev, ctx=device("cuda")), lambda: nd.empty((2,), device=dev, ctx=device("cpu", 1))):
        with pytest.raises(ArgumentError, match=r"device is cpu.* and ctx is"):
            call()
    with pytest.raises(ArgumentError, match=r"there is no device cuda\(0\) here(.|\n)*tedsl.sim\(0\) runs the same code"):
        nd.empty((2,), ctx=device("cuda"))


def test_shapes_of_empty_are_ints():
    with pytest.raises(ArgumentTypeError, match="made of ints"):
        tedsl.nd.empty((1.5,))


@pytest.mark.parametrize("made", [lambda: tedsl.nd.array([[1, 2], [3]]), lambda: tedsl.nd.from_dlpack(3)])
def test_arrays_that_cannot_be_made(made):
    with pytest.raises(tedsl.TedslError, match="hint"):
        made()


@pytest.mark.parametrize("use", [lambda x: x + 1, lambda x: 1 - x, lambda x: x * x, lambda x: -x, lambda x: x < 1,
                                 lambda x: x @ x, lambda x: x ** 2, lambda x: abs(x)])
def test_an_array_of_ours_has_no_operators_and_says_who_has(use):
    refused(lambda: use(nd.array([1.0, 2.0])), "an NDArray holds values for kernels", "x.numpy()", error=ArgumentTypeError)


def test_arrays_of_numpy_compute_with_arrays_of_ours():
    ours, theirs = nd.array([1.0, 2.0]), np.array([3.0, 4.0])
    assert (ours + theirs).tolist() == (theirs + ours).tolist() == [4.0, 6.0]


@pytest.mark.parametrize("name", ["reshape", "sum", "T", "astype"])
def test_methods_of_numpys_arrays_are_named(name):
    refused(lambda: getattr(nd.array([1.0]), name), f"an NDArray has no {name}", f"did you mean x.numpy().{name}?",
            error=OptionError)


def test_more_memory_than_there_is():
    refused(lambda: nd.empty((2**60,)), "has 4611686018427387904 bytes, more than are free here", error=AllocationError)
    with pytest.raises(MemoryError):
        nd.empty((2**58,), "float64")


def test_another_view_of_the_memory():
    a = nd.array(np.arange(12, dtype="float32").reshape(3, 4))
    rows = a._create_view((2, 4), relative_byte_offset=16)
    assert rows.shape == (2, 4) and rows.numpy()[0].tolist() == [4, 5, 6, 7] and a._create_view([12], "int32").dtype == "int32"
    rows[:] = 0
    assert a.numpy().sum() == 6 and nd.empty((0, 3))._create_view((3, 0)).shape == (3, 0)
    for shape, dtype, offset in [((13,), None, 0), ((3, 4), None, 4), ((1,), None, 2), ((-1,), None, 0), ((7,), "float64", 0)]:
        with pytest.raises(ArgumentError, match="does not fit an array of shape"):
            a._create_view(shape, dtype, offset)
    columns = np.zeros((3, 4), "float32")[:, :2]
    with pytest.raises(ArgumentError, match="do not follow one another"):
        nd.from_dlpack(columns)._create_view((6,))
