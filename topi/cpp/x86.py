"""The schedules of topi.x86 that TVM has in C++."""

from topi import generic, x86
from topi.cpp.for_target import for_target

default_schedule = for_target(generic.default_schedule, "x86.default_schedule")
schedule_binarize_pack = for_target(x86.schedule_binarize_pack, "x86.schedule_binarize_pack")
schedule_binary_dense = for_target(x86.schedule_binary_dense, "x86.schedule_binary_dense")
schedule_injective = for_target(x86.schedule_injective, "x86.schedule_injective")
schedule_injective_from_existing = x86.schedule_injective_from_existing
