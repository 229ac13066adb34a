"""Races: accesses to one element by threads, blocks, iterations or lanes that run at once or in any order.

`may_meet` asks whether two accesses may touch one element; `every_thread` answers the question by enumerating the threads
where the form of the indices does not decide it. `refuse_races` refuses proved races: `updates` of one element by several
threads, reads and writes of threads in the `same_statement`, `parallel_races` of iterations and blocks; `known_values`
evaluates expressions there. `lane_order` asks whether the lanes of a vector must run one after the other.
"""
