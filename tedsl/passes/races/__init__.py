"""Accesses that meet: what runs at once, or in any order, and touches one element.

`may_meet` is the question, for threads, blocks, iterations and lanes; `every_thread` answers it by looking at each thread,
where sums do not tell. `refuse_races` refuses what is shown to race: `updates` of one element by several threads, reads and
writes of threads in the `same_statement`, `parallel_races` of iterations and blocks; `known_values` evaluates what is known
there. `lane_order` asks whether the lanes of a vector must run one after the other.
"""
