"""Compiles the functions of an edge program with numba, for `graphmill.program`."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any


def compiled(shape: Any, own: dict[str, Any], wanted: list[str], is_weighted: bool) -> tuple[dict[str, Any], bool]:
    """Functions with addresses, for the names that are wanted; and whether the fold takes weights."""
    try:
        numba = import_module("numba")
    except ImportError:
        raise ImportError("programs of Python functions need numba: pip install numba") from None
    makers = _Makers(numba, shape, own)
    made = {name: getattr(makers, name)() for name in wanted}
    return made, is_weighted or makers.is_weighted


class _Makers:
    """Makes a function of C of each function of a program."""

    def __init__(self, numba: Any, shape: Any, own: dict[str, Any]) -> None:
        np = import_module("numpy")
        types = numba.types
        self.numba, self.types, self.shape, self.own = numba, types, shape, own
        sums = [*shape.sums, *(f"_sum{number}" for number in range(len(shape.sums), 4))]
        columns = [*shape.columns, *(f"_column{number}" for number in range(len(shape.columns), 4))]
        word = {name: "f8" if kind is float else "i8" for name, kind in [*shape.columns.items(), *shape.shared.items()]}
        shared = ["vertices", "arcs", "superstep", "active"]
        shared_type = np.dtype([*((name, "i8") for name in shared), *((name, "f8") for name in sums), *((name, word[name]) for name in shape.shared)])
        vertex = ["ordinal", "out_degree", "active"]
        vertex_type = np.dtype(
            [*((name, "i8") for name in vertex), *((name, "f8") for name in sums), *((name, word.get(name, "i8")) for name in columns)]
        )
        self.shared = types.CPointer(numba.from_dtype(shared_type))
        self.vertex = types.CPointer(numba.from_dtype(vertex_type))
        self.message_type = types.float64 if shape.message is float else types.int64
        self.message = types.CPointer(self.message_type)
        along = own["along"]
        self.is_weighted = along is not None and len(inspect.signature(along).parameters) > 1

    def _inner(self, function: Any) -> Any:
        return self.numba.njit(error_model="numpy")(function)

    def _outer(self, returns: Any, *arguments: Any) -> Any:
        return self.numba.cfunc(returns(*arguments), error_model="numpy")

    def begin(self) -> Any:
        carray, begin = self.numba.carray, self._inner(self.own["begin"])

        def outer(shared: Any, count: Any, vertices: Any) -> int:
            try:
                g, of = carray(shared, 1).copy()[0], carray(vertices, count)
                for i in range(count):
                    begin(of[i], g)
            except Exception:
                return -1
            return 0

        return self._outer(self.types.int32, self.shared, self.types.uint64, self.vertex)(outer)

    def before(self) -> Any:
        carray, before = self.numba.carray, self._inner(self.own["before"])

        def outer(shared: Any) -> int:
            try:
                more = before(carray(shared, 1)[0])
                if more is None:
                    return 1
                return 1 if more else 0
            except Exception:
                return -1

        return self._outer(self.types.int32, self.shared)(outer)

    def signal(self) -> Any:
        types, carray, signal = self.types, self.numba.carray, self._inner(self.own["signal"])

        def outer(shared: Any, count: Any, vertices: Any, messages: Any, sent: Any) -> int:
            try:
                g, of, to = carray(shared, 1).copy()[0], carray(vertices, count), carray(messages, count)
                bits = types.uint64(0)
                for i in range(count):
                    value = signal(of[i], g)
                    if value is not None:
                        to[i] = value
                        bits |= types.uint64(1) << types.uint64(i)
                carray(sent, 1)[0] = bits
            except Exception:
                return -1
            return 0

        words = (self.shared, types.uint64, self.vertex, self.message, types.CPointer(types.uint64))
        made = self._outer(types.int32, *words)(outer)
        self._check(signal, "signal")
        return made

    def apply(self) -> Any:
        carray, apply = self.numba.carray, self._inner(self.own["apply"])

        def outer(shared: Any, count: Any, vertices: Any, accumulators: Any) -> int:
            try:
                g, of, received = carray(shared, 1).copy()[0], carray(vertices, count), carray(accumulators, count)
                for i in range(count):
                    apply(of[i], g, received[i])
            except Exception:
                return -1
            return 0

        return self._outer(self.types.int32, self.shared, self.types.uint64, self.vertex, self.message)(outer)

    def fold(self) -> Any:
        types, carray, fold = self.types, self.numba.carray, self._folding()
        along = self._inner(self.own["along"] or _unchanged)
        words = (types.int32, self.shared, types.uint64, self.message, types.CPointer(types.float64), types.CPointer(types.uint32), self.message)
        if self.is_weighted:

            def with_weights(shared: Any, count: Any, messages: Any, weights: Any, receivers: Any, accumulators: Any) -> int:
                try:
                    sent, weight, to = carray(messages, count), carray(weights, count), carray(receivers, count)
                    sums = carray(accumulators, 1 << 62)
                    for i in range(count):
                        sums[to[i]] = fold(sums[to[i]], along(sent[i], weight[i]))
                except Exception:
                    return -1
                return 0

            made = self._outer(*words)(with_weights)
        else:

            def without_weights(shared: Any, count: Any, messages: Any, weights: Any, receivers: Any, accumulators: Any) -> int:
                try:
                    sent, to = carray(messages, count), carray(receivers, count)
                    sums = carray(accumulators, 1 << 62)
                    for i in range(count):
                        sums[to[i]] = fold(sums[to[i]], along(sent[i]))
                except Exception:
                    return -1
                return 0

            made = self._outer(*words)(without_weights)
        self._check(along, "along")
        self._check(fold, "fold")
        return made

    def merge(self) -> Any:
        carray, merge = self.numba.carray, self._inner(self.own["merge"]) if self.own["merge"] else self._folding()

        def outer(shared: Any, accumulator: Any, later: Any) -> int:
            try:
                total = carray(accumulator, 1)
                total[0] = merge(total[0], carray(later, 1)[0])
            except Exception:
                return -1
            return 0

        return self._outer(self.types.int32, self.shared, self.message, self.message)(outer)

    def _check(self, function: Any, name: str) -> None:
        """Refuses floats where messages are integers: they would be cut off."""
        if self.message_type is not self.types.int64:
            return
        for signature in function.nopython_signatures:
            returned = getattr(signature.return_type, "type", signature.return_type)
            if isinstance(returned, self.types.Float):
                raise TypeError(f"{self.shape.cls.__name__}: {name} returns a float, and messages are integers: set `message = float`, or round")

    def _folding(self) -> Any:
        combine = self.shape.cls.combine
        return self._inner(self.own["fold"] if combine is None else _COMBINE[combine])


def _unchanged(message: Any) -> Any:
    return message


def _sum(accumulator: Any, message: Any) -> Any:
    return accumulator + message


def _min(accumulator: Any, message: Any) -> Any:
    return message if message < accumulator else accumulator


def _max(accumulator: Any, message: Any) -> Any:
    return message if message > accumulator else accumulator


_COMBINE = {"sum": _sum, "min": _min, "max": _max}
