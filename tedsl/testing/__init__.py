"""What tests of programs use: names only. Comparing results; targets and parameters of tests for pytest."""

from tedsl.testing.comparing import (
    assert_allclose,
    assert_prim_expr_equal,
    check_bool_expr_is_true,
    check_numerical_grads,
)
from tedsl.testing.parameters import fixture, parameter, parameters
from tedsl.testing.targets import (
    device_enabled,
    enabled_targets,
    main,
    parametrize_targets,
    requires_cuda,
    requires_gpu,
    requires_llvm,
    requires_metal,
    requires_opencl,
    requires_rocm,
    requires_vulkan,
    uses_gpu,
)

__all__ = ["assert_allclose", "assert_prim_expr_equal", "check_bool_expr_is_true", "check_numerical_grads", "device_enabled",
           "enabled_targets", "fixture", "main", "parameter", "parameters", "parametrize_targets", "requires_cuda",
           "requires_gpu", "requires_llvm", "requires_metal", "requires_opencl", "requires_rocm", "requires_vulkan", "uses_gpu"]
