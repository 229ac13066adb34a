"""Recurrent layers, unrolled over the steps of the sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl.graph.onnx.call import Call
from tedsl.graph.onnx.operators.elementwise import number
from tedsl.graph.onnx.operators.shapes import to_shape
from tedsl.graph.onnx.refusal import Unsupported
from tedsl.graph.trace import ops
from tedsl.graph.value import Value
from tedsl.record import record

_FUNCTIONS: dict[str, Callable[[Value], Any]] = {"tanh": lambda x: ops.tanh(x), "sigmoid": lambda x: ops.sigmoid(x),
                                                 "relu": lambda x: ops.nn.relu(x)}
State = tuple[Value, ...]


@record(eq=False)
class Cell:
    """One direction of a layer: weights of the input and of the state, biases, functions, peepholes, all by gate."""

    hidden: int
    weights: Value
    recurrent: Value
    bias: Value | None
    recurrent_bias: Value | None
    functions: tuple[Callable[[Value], Any], ...]
    peepholes: tuple[Value, ...] = ()
    reset_after: bool = False


def _cut(value: Value, parts: int) -> list[Value]:
    """Equal parts along the last dimension."""
    made = ops.split(value, parts, len(value.shape) - 1) if parts > 1 else [value]
    return list(made)


def _product(x: Value, weights: Value, bias: Value | None) -> Any:
    return ops.nn.dense(x, weights, bias)


def _rnn_step(cell: Cell, x: Value, state: State) -> State:
    total = ops.add(_product(x, cell.weights, cell.bias), _product(state[0], cell.recurrent, cell.recurrent_bias))
    return (cell.functions[0](total),)


def _gru_step(cell: Cell, x: Value, state: State) -> State:
    f, g = cell.functions
    h = state[0]
    xz, xr, xh = _cut(_product(x, cell.weights, cell.bias), 3)
    if cell.reset_after:
        hz, hr, hh = _cut(_product(h, cell.recurrent, cell.recurrent_bias), 3)
        z, r = f(ops.add(xz, hz)), f(ops.add(xr, hr))
        new = g(ops.add(xh, ops.multiply(r, hh)))
    else:
        gates, last = ops.split(cell.recurrent, [2 * cell.hidden], 0)
        biases = [None, None] if cell.recurrent_bias is None else ops.split(cell.recurrent_bias, [2 * cell.hidden], 0)
        hz, hr = _cut(_product(h, gates, biases[0]), 2)
        z, r = f(ops.add(xz, hz)), f(ops.add(xr, hr))
        new = g(ops.add(xh, _product(ops.multiply(r, h), last, biases[1])))
    return (ops.add(ops.multiply(ops.subtract(number(1, z), z), new), ops.multiply(z, h)),)


def _lstm_step(cell: Cell, x: Value, state: State) -> State:
    f, g, out = cell.functions
    h, c = state
    total = ops.add(_product(x, cell.weights, cell.bias), _product(h, cell.recurrent, cell.recurrent_bias))
    i_in, o_in, f_in, c_in = _cut(total, 4)
    if cell.peepholes:
        i_in, f_in = ops.add(i_in, ops.multiply(cell.peepholes[0], c)), ops.add(f_in, ops.multiply(cell.peepholes[2], c))
    new = ops.add(ops.multiply(f(f_in), c), ops.multiply(f(i_in), g(c_in)))
    if cell.peepholes:
        o_in = ops.add(o_in, ops.multiply(cell.peepholes[1], new))
    return ops.multiply(f(o_in), out(new)), new


Step = Callable[[Cell, Value, State], State]
_KINDS: dict[str, tuple[Step, int, tuple[str, ...]]] = {
    "RNN": (_rnn_step, 1, ("Tanh",)), "GRU": (_gru_step, 3, ("Sigmoid", "Tanh")),
    "LSTM": (_lstm_step, 4, ("Sigmoid", "Tanh", "Tanh")),
}

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


def layer(call: Call) -> Any:
    step, gates, usual = _KINDS[call.operator]
    if call.get(4) is not None and not _whole(call):
        raise Unsupported("sequences of different lengths")
    if call.attribute("clip") is not None or call.attribute("input_forget", 0):
        raise Unsupported("clip or input_forget")
    x = call[0] if not call.attribute("layout", 0) else ops.transpose(call[0], (1, 0, 2))
    steps, batch = x.shape[0], x.shape[1]
    if not isinstance(steps, int):
        raise Unsupported(f"a symbolic number of steps ({x.spec})")
    directions = _DIRECTIONS[call.attribute("direction", "forward")]
    names = call.attribute("activations") or usual * len(directions)
    inputs = [to_shape(one, x.shape[1:]) for one in (ops.split(x, steps, 0) if steps > 1 else [x])]
    runs = []
    for number_of, backwards in enumerate(directions):
        cell = _cell(call, number_of, gates, names[number_of * len(usual):(number_of + 1) * len(usual)])
        places = (5, 6) if call.operator == "LSTM" else (5,)
        state = tuple(_initial(call, at, number_of, (batch, cell.hidden), x) for at in places)
        runs.append(_run(step, cell, inputs[::-1] if backwards else inputs, state, backwards))
    return _results(call, runs)


def _whole(call: Call) -> bool:
    return bool((call.array(4) == call[0].shape[1 if call.attribute("layout", 0) else 0]).all())


def _run(step: Step, cell: Cell, inputs: list[Value], state: State, backwards: bool) -> tuple[list[Value], State]:
    outputs = []
    for x in inputs:
        state = step(cell, x, state)
        outputs.append(state[0])
    return outputs[::-1] if backwards else outputs, state


def _cell(call: Call, direction: int, gates: int, names: tuple[str, ...]) -> Cell:
    unknown = [name for name in names if name.lower() not in _FUNCTIONS]
    if unknown:
        raise Unsupported(f"activation {unknown[0]}")
    weights, recurrent = _of(call[1], direction), _of(call[2], direction)
    hidden = call.attribute("hidden_size") or call.static_shape(2)[2]
    biases: list[Any] = [None, None]
    if call.get(3) is not None:
        biases = ops.split(_of(call[3], direction), [gates * hidden], 0)
    peepholes = tuple(_cut(_of(call[7], direction), 3)) if call.get(7) is not None else ()
    functions = tuple(_FUNCTIONS[name.lower()] for name in names)
    reset_after = bool(call.attribute("linear_before_reset", 0))
    return Cell(hidden, weights, recurrent, biases[0], biases[1], functions, peepholes, reset_after)


def _of(value: Value, direction: int) -> Any:
    """The part of one direction."""
    if value.shape[0] == 1:
        return to_shape(value, value.shape[1:])
    part = ops.strided_slice(value, [direction], [direction + 1])
    return to_shape(part, value.shape[1:])


def _initial(call: Call, at: int, direction: int, shape: tuple[Any, ...], x: Value) -> Any:
    given = call.get(at)
    if given is None:
        return ops.full(shape, str(x.dtype), 0)
    return _of(ops.transpose(given, (1, 0, 2)) if call.attribute("layout", 0) else given, direction)


def _results(call: Call, runs: list[tuple[list[Value], State]]) -> list[Value]:
    """Every output by step and direction, then the last states."""
    whole = ops.stack([ops.stack([outputs[at] for outputs, _ in runs], 0) for at in range(len(runs[0][0]))], 0)
    states = [ops.stack([state[at] for _, state in runs], 0) for at in range(len(runs[0][1]))]
    if call.attribute("layout", 0):
        whole, states = ops.transpose(whole, (2, 0, 1, 3)), [ops.transpose(state, (1, 0, 2)) for state in states]
    return [whole, *states]


OPERATORS: dict[str, Callable[[Call], Any]] = {"RNN": layer, "GRU": layer, "LSTM": layer}
