"""The tags that TVM knows: names of devices and boards, and what each stands for.

The compute capabilities are those of NVIDIA's list at https://developer.nvidia.com/cuda-gpus, the instances those of
https://aws.amazon.com/ec2/instance-types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_NVIDIA = {
    "sm_50": "geforce-gtx-750-ti geforce-gtx-750",
    "sm_52": "tesla-m60 tesla-m40 geforce-gtx-titan-x geforce-gtx-980-ti geforce-gtx-980 geforce-gtx-970 geforce-gtx-960",
    "sm_53": "jetson-nano jetson-tx1",
    "sm_60": "nvidia-p100 tesla-p100",
    "sm_61": "tesla-p40 tesla-p4 nvidia-titan-xp nvidia-titan-x geforce-gtx-1080-ti geforce-gtx-1080 geforce-gtx-1070-ti "
             "geforce-gtx-1070 geforce-gtx-1060 geforce-gtx-1050-ti geforce-gtx-1050",
    "sm_62": "jetson-tx2",
    "sm_70": "nvidia-v100 tesla-v100 nvidia-titan-v",
    "sm_72": "jetson-agx-xavier jetson-xavier-nx",
    "sm_75": "nvidia-t4 tesla-t4 nvidia-titan-rtx geforce-rtx-2080-ti geforce-rtx-2080 geforce-rtx-2070 geforce-rtx-2060 "
             "geforce-gtx-1660-ti geforce-gtx-1660 geforce-gtx-1650-ti geforce-gtx-1650",
    "sm_80": "nvidia-a100 nvidia-a30",
    "sm_86": "nvidia-a40 nvidia-a10 nvidia-a10g geforce-rtx-3090-ti geforce-rtx-3090 geforce-rtx-3080-ti geforce-rtx-3080 "
             "geforce-rtx-3070-ti geforce-rtx-3070 geforce-rtx-3060-ti geforce-rtx-3060 geforce-rtx-3050",
    "sm_87": "jetson-agx-orin-32gb jetson-agx-orin-64gb",
    "sm_89": "nvidia-l4 nvidia-l40 geforce-rtx-4090 geforce-rtx-4080 geforce-rtx-4070-ti geforce-rtx-4070 geforce-rtx-4060-ti "
             "geforce-rtx-4060",
    "sm_90a": "nvidia-h100",
}
_BLOCK = {"max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "thread_warp_size": 32,
          "registers_per_block": 65536}
_PI = {"kind": "llvm", "mcpu": "cortex-a72", "mattr": ["+neon"], "num-cores": 4}
_C5 = {"large": 1, "xlarge": 2, "2xlarge": 4, "4xlarge": 8, "9xlarge": 18, "12xlarge": 24, "18xlarge": 36, "24xlarge": 48}


def _tags() -> Iterator[tuple[str, Mapping[str, Any]]]:
    for arch, names in _NVIDIA.items():
        for name in names.split():
            yield f"nvidia/{name}", {"kind": "cuda", "arch": arch, **_BLOCK}
    yield "raspberry-pi/4b-aarch64", {**_PI, "mtriple": "aarch64-linux-gnu"}
    yield "raspberry-pi/4b-aarch32", {**_PI, "mtriple": "armv8l-linux-gnueabihf", "mfloat-abi": "hard"}
    for size, cores in _C5.items():
        yield f"aws/cpu/c5.{size}", {"kind": "llvm", "mcpu": "skylake-avx512" if cores < 24 else "cascadelake",
                                     "num-cores": cores}
    for chip in ("m1", "m2"):
        yield f"apple/{chip}-gpu", {"kind": "metal", "max_threads_per_block": 1024, "thread_warp_size": 32}


KNOWN: Mapping[str, Mapping[str, Any]] = dict(_tags())
