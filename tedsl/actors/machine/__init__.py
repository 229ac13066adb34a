"""Actors as machines without threads or clocks: messages in, acts and messages out.

actor.py: the machine. kinds.py: the table of kinds: when an actor takes and gives registers.
clock.py: runs by a virtual clock. lifetimes.py: when registers are in use.
"""
