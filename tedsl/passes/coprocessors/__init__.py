"""Passes on attributes and calls of accelerators that take instructions from the processor: TVM has them for VTA.

`lift_attributes` joins the scopes of an attribute, `combine_contexts` takes the context of a thread once, `lower_access_info`
writes pointers as addresses.
"""
