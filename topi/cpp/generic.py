"""The schedules of topi.generic that TVM has in C++."""

from topi import generic
from topi.cpp.for_target import for_target

default_schedule = for_target(generic.default_schedule, "generic.default_schedule")
schedule_extern = for_target(generic.schedule_extern, "generic.schedule_extern")
schedule_injective = for_target(generic.schedule_injective, "generic.schedule_injective")
schedule_injective_from_existing = generic.schedule_injective_from_existing
