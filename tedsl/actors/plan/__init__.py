"""Plans: which actors there are, which registers go between them, where the registers lie.

description.py: tasks, registers, plans. pipeline.py: plans made step by step. check.py: what is refused, deadlocks included.
text.py: plans as text and JSON, and back. memory.py: addresses. sharing.py: memory that
registers share in time.
"""
