"""Tuning: what the searches for schedules have in common.

measure/ builds and runs candidates in processes of their own.
"""
