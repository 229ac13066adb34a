"""Inside of `with` a device topi.generic's schedules are those of the device: programs of TVM 0.6 schedule by these names."""

import tedsl
import topi
from tedsl import te


def test_generic_schedules_bind_threads_on_devices():
    A, W = te.placeholder((1, 4, 8, 8), name="A"), te.placeholder((4, 4, 3, 3), name="W")
    with tedsl.target.Target("cuda"):
        C = topi.nn.relu(topi.nn.conv2d(A, W, 1, 1, 1))
        s = topi.generic.schedule_conv2d_nchw([C])
        assert "blockIdx.x" in str(tedsl.lower(s, [A, W, C], simple_mode=True))
    assert "threadIdx" not in str(tedsl.lower(topi.generic.schedule_conv2d_nchw([C]), [A, W, C], simple_mode=True))
