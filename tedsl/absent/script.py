"""Not part of tedsl: see `tedsl/absent/__init__.py`."""

from tedsl.absent import refuse

refuse(__name__)
