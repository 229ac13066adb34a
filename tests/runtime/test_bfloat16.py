"""bfloat16 from libraries whose DLPack capsules say so, which numpy does not take."""

import ctypes

import numpy as np
import pytest

import tedsl
from tedsl import te


class Tensor:
    """A tensor of such a library: the bits of an array of uint16, and a capsule of DLPack that says bfloat16."""

    def __init__(self, bits, versioned):
        self.bits, self.versioned = bits, versioned

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, *, max_version=None):
        if max_version is not None and not self.versioned:
            raise TypeError("only the old kind")
        capsule = self.bits.__dlpack__(max_version=(1, 0)) if self.versioned else self.bits.__dlpack__()
        name, code_at = (b"dltensor_versioned", 32 + 20) if self.versioned else (b"dltensor", 20)
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        code = ctypes.c_uint8.from_address(get(capsule, name) + code_at)
        assert code.value == 1
        code.value = 4
        return capsule


def add_one():
    n = te.var("n")
    A = te.placeholder((n,), "bfloat16", name="A")
    B = te.compute((n,), lambda i: A[i] + te.const(1.0, "bfloat16"), name="B")
    return tedsl.build(te.create_schedule(B.op), [A, B])


@pytest.mark.parametrize("versioned", [False, True])
def test_any_library(versioned):
    if versioned and np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("numpy makes the old kind of capsule only")
    a, b = np.array([0x3F80, 0x4000, 0x4040], "uint16"), np.zeros(3, "uint16")
    add_one()(Tensor(a, versioned), Tensor(b, versioned))
    assert b.tolist() == [0x4000, 0x4040, 0x4080]
    assert tedsl.nd.from_dlpack(Tensor(a, versioned)).dtype in ("bfloat16", "uint16")


def test_torch():
    torch = pytest.importorskip("torch")
    a, b = torch.tensor([1.0, 2.5, -3.0], dtype=torch.bfloat16), torch.zeros(3, dtype=torch.bfloat16)
    add_one()(a, b)
    assert b.tolist() == [2.0, 3.5, -2.0]
    add_one()(torch.arange(6, dtype=torch.bfloat16)[::2], b)
    assert b.tolist() == [1.0, 3.0, 5.0]
