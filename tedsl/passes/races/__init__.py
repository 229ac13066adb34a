"""Accesses that meet: what runs at once, or in any order, and touches one element.

`may_meet` is the question, for threads, blocks, iterations and lanes; `every_thread` answers it by looking at each thread,
where sums do not tell. `refuse_races` refuses what is shown to race: `updates` of one element, accesses in the `same_statement`,
`parallel_races` (iterations and blocks); `known_values` evaluates what is known there.
"""
