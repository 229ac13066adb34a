"""The directives, one file each. Each checks everything before it changes the schedule.

places/ holds those that say where a stage is computed, storage/ those about the memory of a stage, reductions/ those that
part a reduction.
"""
