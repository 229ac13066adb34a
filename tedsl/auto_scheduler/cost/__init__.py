"""What a schedule may cost, without running it.

`footprint.py`: elements that an index takes; `features.py`: what a nest of loops does, as numbers; `estimate.py`: seconds by
the model of the machine; `model.py`: corrections learned from what was measured.
"""
