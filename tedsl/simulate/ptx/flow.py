"""The flow of control of a kernel: basic blocks, in an order in which threads that went apart meet as early as they can.

Blocks are numbered so that a loop is contiguous, begins with its head and comes before what follows it. A machine that
always runs the waiting threads of the lowest number lets those of both sides of a branch meet where the sides join.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tedsl.errors import DeviceError
from tedsl.record import record
from tedsl.simulate.ptx.syntax import Instruction, Kernel, Label, Symbol

BRANCH, RETURN, BARRIER, NEXT = "branch", "return", "barrier", "next"
_RETURNS = {"ret", "exit"}
_BARRIERS = {"bar", "barrier"}


@record
class Block:
    """Instructions that run one after the other, and how they end.

    end: BRANCH to `target`, RETURN, BARRIER, or NEXT; threads that do not branch or return by `last.guard`, and those that pass
    the barrier, go to `following`; -1 where there is none. Both are numbers of blocks.
    """

    instructions: tuple[Instruction, ...]
    end: str
    last: Instruction | None
    target: int = -1
    following: int = -1

    def successors(self) -> tuple[int, ...]:
        found = [self.target] if self.end == BRANCH else []
        if self.following >= 0 and not (self.end == BRANCH and self.last is not None and self.last.guard is None):
            found.append(self.following)
        return tuple(found)


def blocks_of(kernel: Kernel) -> list[Block]:
    """Returns the blocks of a kernel in the order described above; the first is where it begins."""
    written = _in_text_order(kernel)
    order = loops_together({number: block.successors() for number, block in enumerate(written)}, 0)
    places = {number: place for place, number in enumerate(order)}
    return [Block(b.instructions, b.end, b.last, places.get(b.target, -1), places.get(b.following, -1))
            for b in (written[number] for number in order)]


def _in_text_order(kernel: Kernel) -> list[Block]:
    pieces: list[tuple[list[Instruction], Instruction | None]] = [([], None)]
    labels: dict[str, int] = {}
    for item in kernel.body:
        if isinstance(item, Label):
            if pieces[-1][0]:
                pieces.append(([], None))
            labels[item.name] = len(pieces) - 1
        elif item.name == "bra" or item.name in _RETURNS or _is_barrier(item):
            pieces[-1] = (pieces[-1][0], item)
            pieces.append(([], None))
        else:
            pieces[-1][0].append(item)
    if pieces[-1] == ([], None) and len(pieces) - 1 not in labels.values():
        pieces.pop()
    return [_block(instructions, last, number, len(pieces), labels) for number, (instructions, last) in enumerate(pieces)]


def _is_barrier(item: Instruction) -> bool:
    """Whether all threads of a block meet here."""
    return item.name in _BARRIERS and "warp" not in item.parts


def _block(instructions: list[Instruction], last: Instruction | None, number: int, count: int,
           labels: Mapping[str, int]) -> Block:
    following = number + 1 if number + 1 < count else -1
    if last is None:
        return Block(tuple(instructions), NEXT if following >= 0 else RETURN, None, following=following)
    if last.name in _RETURNS:
        return Block(tuple(instructions), RETURN, last, following=following if last.guard else -1)
    if last.name == "bra":
        goal = last.operands[0]
        if not isinstance(goal, Symbol) or goal.name not in labels:
            raise DeviceError(f"the PTX text branches to a label that is not there: {last.text}")
        return Block(tuple(instructions), BRANCH, last, labels[goal.name], following if last.guard else -1)
    if last.guard is not None:
        raise DeviceError(f"the simulator takes no barrier with a predicate: {last.text} (line {last.line})")
    return Block(tuple(instructions), BARRIER, last, following=following)


def loops_together(successors: Mapping[int, Sequence[int]], start: int) -> list[int]:
    """Returns the nodes that are reached from `start`, in topological order but for the edges that go back to heads of loops.

    Each loop is contiguous, and its head is its first node.
    """
    order: list[int] = []
    work: list[int | tuple[set[int], list[int]]] = [(set(successors), [start])]
    while work:
        item = work.pop()
        if isinstance(item, int):
            order.append(item)
            continue
        inner: list[int | tuple[set[int], list[int]]] = []
        for component in _components(successors, *item):
            head = component[0]
            inner.append(head)
            if len(component) > 1:
                rest = set(component[1:])
                inner.append((rest, [one for one in successors[head] if one in rest]))
        work.extend(reversed(inner))
    return order


def _components(successors: Mapping[int, Sequence[int]], inside: set[int], roots: Sequence[int]) -> list[list[int]]:
    """The strongly connected components that are reached from `roots` without leaving `inside`, in topological order; each
    begins with the node by which it was entered. (Tarjan's algorithm, without recursion.)
    """
    found: list[list[int]] = []
    numbers: dict[int, int] = {}
    lowest: dict[int, int] = {}
    path: list[int] = []
    open_: set[int] = set()
    for root in roots:
        if root in numbers:
            continue
        visits = [(root, iter(successors[root]))]
        numbers[root] = lowest[root] = len(numbers)
        path.append(root)
        open_.add(root)
        while visits:
            node, rest = visits[-1]
            for one in rest:
                if one in inside and one not in numbers:
                    numbers[one] = lowest[one] = len(numbers)
                    path.append(one)
                    open_.add(one)
                    visits.append((one, iter(successors[one])))
                    break
                if one in open_:
                    lowest[node] = min(lowest[node], numbers[one])
            else:
                visits.pop()
                if visits:
                    lowest[visits[-1][0]] = min(lowest[visits[-1][0]], lowest[node])
                if lowest[node] == numbers[node]:
                    component = path[path.index(node):]
                    del path[-len(component):]
                    open_.difference_update(component)
                    found.append(component)
    return found[::-1]
