"""Names for tests of programs: comparisons of results, and targets and parameters of tests for pytest."""

import sys

from tedsl.absent import answer_in
from tedsl.testing.before_after import CompareBeforeAfter
from tedsl.testing.callbacks import (
    ErrorTest,
    context_test,
    device_test,
    echo,
    identity_after,
    nop,
    object_use_count,
    skip_if_32bit,
    skip_if_wheel_test,
    slow,
    terminate_self,
    test_check_eq_callback,
    test_raise_error_callback,
    test_wrap_callback,
)
from tedsl.testing.comparing import (
    assert_allclose,
    assert_prim_expr_equal,
    check_bool_expr_is_true,
    check_int_constraints_trans_consistency,
    check_numerical_grads,
)
from tedsl.testing.parameters import fixture, parameter, parameters
from tedsl.testing.requires import (
    requires_aarch64,
    requires_aarch64_sme,
    requires_aarch64_sve,
    requires_adreno_opencl,
    requires_arm_dot,
    requires_arm_fp16,
    requires_cascadelake,
    requires_cmsisnn,
    requires_corstone300,
    requires_cublas,
    requires_cuda,
    requires_cudagraph,
    requires_cudnn,
    requires_ethosn,
    requires_ethosu,
    requires_gpu,
    requires_hexagon,
    requires_libtorch,
    requires_llvm,
    requires_matrixcore,
    requires_metal,
    requires_micro,
    requires_mps,
    requires_multi_gpu,
    requires_nccl,
    requires_nvcc_version,
    requires_nvptx,
    requires_opencl,
    requires_openclml,
    requires_package,
    requires_rocm,
    requires_rpc,
    requires_skylake_avx512,
    requires_tensorcore,
    requires_vitis_ai,
    requires_vulkan,
    requires_wasm,
    requires_x86,
    requires_x86_amx,
    requires_x86_avx512,
    requires_x86_vnni,
)
from tedsl.testing.targets import (
    device_enabled,
    enabled_targets,
    exclude_targets,
    known_failing_targets,
    main,
    parametrize_targets,
    uses_gpu,
)

utils = sys.modules[__name__]  # the module in which later versions of TVM have these names

__all__ = [
    "CompareBeforeAfter", "ErrorTest", "context_test", "device_test", "echo", "identity_after", "nop", "object_use_count",
    "skip_if_32bit", "skip_if_wheel_test", "slow", "terminate_self", "test_check_eq_callback", "test_raise_error_callback",
    "test_wrap_callback",
    "assert_allclose", "assert_prim_expr_equal", "check_bool_expr_is_true", "check_numerical_grads", "device_enabled",
    "check_int_constraints_trans_consistency", "exclude_targets", "known_failing_targets",
    "enabled_targets", "fixture", "main", "parameter", "parameters", "parametrize_targets", "requires_aarch64",
    "requires_aarch64_sme", "requires_aarch64_sve", "requires_adreno_opencl", "requires_arm_dot", "requires_arm_fp16",
    "requires_cascadelake", "requires_cmsisnn", "requires_corstone300", "requires_cublas", "requires_cuda",
    "requires_cudagraph", "requires_cudnn", "requires_ethosn", "requires_ethosu", "requires_gpu", "requires_hexagon",
    "requires_libtorch", "requires_llvm", "requires_matrixcore", "requires_metal", "requires_micro", "requires_mps",
    "requires_multi_gpu", "requires_nccl", "requires_nvcc_version", "requires_nvptx", "requires_opencl",
    "requires_openclml", "requires_package", "requires_rocm", "requires_rpc", "requires_skylake_avx512",
    "requires_tensorcore", "requires_vitis_ai", "requires_vulkan", "requires_wasm", "requires_x86", "requires_x86_amx",
    "requires_x86_avx512", "requires_x86_vnni", "uses_gpu", "utils",
]

answer_in(globals())
