"""Element-wise kernels, and elements that change places.

injective.py    the loops of element-wise kernels; what changes places goes to the next two
turned.py       transposes: tiles that are turned in registers
pieces.py       pieces of memory that change places whole
memory.py       the order of memory; pages.py: how often its pages are looked up
"""

from topi.schedules.cpu.elements.injective import map_elements, schedule_injective

__all__ = ["map_elements", "schedule_injective"]
