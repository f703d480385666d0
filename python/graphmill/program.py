"""Edge programs of one's own: classes whose functions are compiled, or are functions of C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, final

_COLUMNS_MAX = 4
_SUMS_MAX = 4
_RESERVED = ("vertex", "ordinal", "out_degree", "active", "vertices", "arcs", "superstep")


@final
class Vertex:
    """The type of a column or of a shared number that is a vertex, as the ordinal of its id; -1 is no vertex."""


class EdgeProgram:
    """A program that sends messages along the edges of a graph, pass by pass. `Graph.run` runs it.

    A subclass says what vertices have, and what they do, in functions without `self` that numba compiles (`pip install numba`):

    `begin(v, g)`
        is called for each vertex before the first pass, and sets its columns, which are 0. It may be called twice, with the same outcome.
    `signal(v, g)`
        returns the message that a vertex sends along its edges, or `None`.
    `apply(v, g, received)`
        takes what a vertex received, and changes its columns.
    `before(g)`, if there is one,
        is called before each pass. It may change the shared numbers, and ends the run if it returns `False`.
    `along(message)` or `along(message, weight)`, if there is one,
        returns what an edge makes of a message.
    `fold(accumulator, message)`, in the place of `combine`,
        takes one more message into an accumulator, in ascending order of senders. The first accumulator is `identity`.
    `merge(accumulator, later)`
        joins two accumulators of a vertex; without it `fold` does.

    `v` has the columns of a vertex and:

    `v.ordinal`
        the place of its id in ascending order of ids, from 0.
    `v.out_degree`
        the number of arcs that leave it.
    `v.active`
        `begin` and `apply` set it if the vertex is to send in the next pass. It is 0 before each call.
    a name of `sums`
        `begin` and `apply` set it to a number that is added up over all vertices.

    `g` has the shared numbers and `g.vertices`, `g.arcs`, `g.superstep` (from 1; 0 in `begin`), `g.active` (how many vertices send), and the
    sums of the pass before. Only `before` changes them.

    A vertex has received something if its accumulator is not the first one: of `combine="sum"` that is -0.0, or 0 for integers; of `"min"` and
    `"max"` the greatest or the least integer, or for floats a value beyond the infinities, so infinite messages count. `along` makes a fold of
    one's own of `"min"` and `"max"`: there the first one is an infinity.

    An integer column takes an integer: of a float it keeps the part before the point. An exception in a function ends the run with an error.

    A run ends after `iterations` passes, when no vertex sends, or when `before` says so. The bytes of the result are the same for any
    number of threads, in memory or from disk.

    A function may also be one of C: an address, a function of ctypes, or what numba's `cfunc` returns. It takes the records of 64-bit words
    that `docs/guide/python.md` describes. Such a function must be correct: a wrong access can end the process.
    """

    columns: ClassVar[Mapping[str, Any]] = {}
    """The names and types of the columns of a vertex, one to four: `float` or `"float64"`, `int` or `"int64"`, or `Vertex`."""
    shared: ClassVar[Mapping[str, Any]] = {}
    """The names and values of numbers that all vertices read: a float, an integer, or `Vertex` for an id that the instance names."""
    sums: ClassVar[Sequence[str]] = ()
    """The names of up to four sums over all vertices, which are floats."""
    message: ClassVar[Any] = float
    """The type of messages and accumulators."""
    combine: ClassVar[Literal["sum", "min", "max"] | None] = None
    """How the messages to a vertex become one."""
    identity: ClassVar[Any] = None
    """The first accumulator of a fold of one's own. A vertex whose accumulator is the same after a pass has received nothing."""
    everywhere: ClassVar[bool] = False
    """Whether all vertices send and are applied in every pass, whatever `v.active` says."""
    direction: ClassVar[Literal["forward", "backward"]] = "forward"
    """Whether messages go along the arcs, or against them."""
    result: ClassVar[str | None] = None
    """The column that is the result; by default the first."""
    weighted: ClassVar[bool] = False
    """Whether a fold of C takes the weights of edges; of functions of Python, `along` says it."""
    version: ClassVar[str] = ""
    """What tells a program of C functions from an older one: only the same program resumes from checkpoints."""

    def __init__(self, **values: Any) -> None:
        """Sets shared numbers of this run; the others have the values of the class."""
        for name in values:
            if name not in self.shared:
                raise TypeError(f"{type(self).__name__} has no shared number {name!r}; it has {', '.join(self.shared) or 'none'}")
        for name, value in self.shared.items():
            if value is Vertex and name not in values:
                raise TypeError(f"{type(self).__name__}: give the id of the vertex {name!r}")
        self.values = {**self.shared, **values}


def spec(program: EdgeProgram, iterations: int | None) -> dict[str, Any]:
    """The program, as the native module takes it."""
    shape = _Shape(program)
    functions = _functions(shape)
    words, vertices = [], []
    for place, (name, kind) in enumerate(shape.shared.items()):
        value = program.values[name]
        if kind is Vertex:
            vertices.append((place, str(value)))
            value = 0
        words.append(_word(value, kind))
    return {
        "addresses": functions.addresses,
        "columns": [(name, _name(kind)) for name, kind in shape.columns.items()],
        "result": shape.result,
        "shared": words,
        "vertices": vertices,
        "message": _name(shape.message),
        "fold": "own" if functions.folds else program.combine,
        "identity": _word(functions.identity, shape.message),
        "exact": functions.is_exact,
        "weighted": functions.is_weighted,
        "everywhere": program.everywhere,
        "against": program.direction == "backward",
        "passes": iterations,
        "known_as": {
            "program": f"{type(program).__module__}.{type(program).__qualname__}",
            "code": functions.code,
            "shared": repr(program.values),
            "iterations": str(iterations),
        },
    }


class _Shape:
    """The names and types of a program's words, which are checked."""

    def __init__(self, program: EdgeProgram) -> None:
        cls = type(program)
        self.cls = cls
        self.columns = {name: _kind(of, f"the column {name!r}") for name, of in cls.columns.items()}
        self.shared = {name: _kind_of_value(program.values[name], of, name) for name, of in cls.shared.items()}
        self.sums = tuple(cls.sums)
        self.message = _kind(cls.message, "message")
        if not 1 <= len(self.columns) <= _COLUMNS_MAX:
            raise TypeError(f"{cls.__name__}: `columns` names one to {_COLUMNS_MAX} columns, not {len(self.columns)}")
        if len(self.sums) > _SUMS_MAX:
            raise TypeError(f"{cls.__name__}: `sums` names at most {_SUMS_MAX} sums")
        names = [*self.columns, *self.shared, *self.sums]
        for name in names:
            if names.count(name) > 1 or name in _RESERVED or not name.isidentifier():
                raise TypeError(f"{cls.__name__}: {name!r} is no name for a column, a shared number or a sum, or it is there twice")
        if cls.combine not in (None, "sum", "min", "max"):
            raise TypeError(f'{cls.__name__}: `combine` is "sum", "min" or "max", not {cls.combine!r}')
        if cls.direction not in ("forward", "backward"):
            raise TypeError(f'{cls.__name__}: `direction` is "forward" or "backward", not {cls.direction!r}')
        result = next(iter(self.columns)) if cls.result is None else cls.result
        if result not in self.columns:
            raise TypeError(f"{cls.__name__}: `result` is the name of a column, not {result!r}")
        self.result = list(self.columns).index(result)


Kind = type[float] | type[int] | type[Vertex]


def _kind(of: Any, what: str) -> Kind:
    kinds: dict[Any, Kind] = {float: float, int: int, Vertex: Vertex, "float64": float, "int64": int, "vertex": Vertex}
    try:
        return kinds[of]
    except (KeyError, TypeError):
        raise TypeError(f"{what} is a float, an int or a Vertex, not {of!r}") from None


def _kind_of_value(value: Any, declared: Any, name: str) -> Kind:
    if declared is Vertex:
        return Vertex
    if isinstance(value, float) or isinstance(declared, float):
        return float
    if isinstance(value, int):
        return int
    raise TypeError(f"the shared number {name!r} is a float, an integer or a Vertex, not {value!r}")


def _name(kind: Kind) -> str:
    return {float: "float64", int: "int64", Vertex: "vertex"}[kind]


def _word(value: Any, kind: Kind) -> int:
    """The 64 bits of a number."""
    import struct

    return int.from_bytes(struct.pack("<d", value) if kind is float else struct.pack("<q", value), "little")


class _Functions:
    """The addresses of a program's functions, and what keeps them alive."""

    def __init__(self, shape: _Shape) -> None:
        import hashlib
        import inspect

        cls = shape.cls
        own: dict[str, Any] = {name: inspect.getattr_static(cls, name, None) for name in ("before", "begin", "signal", "apply", "fold", "merge", "along")}
        own = {name: of.__func__ if isinstance(of, staticmethod) else of for name, of in own.items()}
        self.own = own
        for name in ("begin", "signal", "apply", "fold", "merge", "along"):
            _refuse_stores(cls, name, own[name])
        self.kept: list[Any] = [cls]
        self.addresses: dict[str, int] = {}
        for name in ("begin", "signal", "apply"):
            if own[name] is None:
                raise TypeError(f"{cls.__name__} has no function {name!r}")
        if (own["fold"] is None) == (cls.combine is None):
            raise TypeError(f"{cls.__name__}: say how messages become one by `combine` or by a function `fold`, not both")
        self.folds = own["fold"] is not None or own["along"] is not None
        # Sums of floats depend on their order.
        self.is_exact = cls.combine in ("min", "max") or (cls.combine == "sum" and shape.message is not float)
        self.identity = _identity(shape)
        self.is_weighted = False
        digest = hashlib.sha256(cls.version.encode())
        for name, of in own.items():
            if of is not None:
                digest.update(f"{name} {_code(of)}\n".encode())
        for name in ("combine", "identity", "everywhere", "direction", "result", "columns", "shared", "sums", "message"):
            digest.update(f"{name} {getattr(cls, name)!r}\n".encode())
        self.code = digest.hexdigest()
        self._compile(shape)

    def _compile(self, shape: _Shape) -> None:
        wanted = ["begin", "signal", "apply"] + ["before"] * (self.own["before"] is not None) + ["fold", "merge"] * self.folds
        native = {name: _address(self.own[name]) for name in wanted if self.own[name] is not None}
        self.addresses = {name: address for name, address in native.items() if address is not None}
        if "fold" in self.addresses:
            if self.own["along"] is not None or "merge" not in self.addresses:
                raise TypeError(f"{shape.cls.__name__}: a fold of C has a merge of C, and does the work of `along`")
            self.is_weighted = shape.cls.weighted
        rest = [name for name in wanted if name not in self.addresses]
        if rest:
            from graphmill._numba import compiled

            made, self.is_weighted = compiled(shape, self.own, rest, self.is_weighted)
            self.kept.append(made)
            self.addresses |= {name: function.address for name, function in made.items()}


def _identity(shape: _Shape) -> Any:
    cls = shape.cls
    if cls.combine is None:
        if cls.identity is None:
            raise TypeError(f"{cls.__name__}: a fold of one's own begins with `identity`")
        return cls.identity
    if cls.identity is not None:
        raise TypeError(f"{cls.__name__}: `identity` is for a fold of one's own")
    if shape.message is float:
        return {"sum": -0.0, "min": float("inf"), "max": float("-inf")}[cls.combine]
    return {"sum": 0, "min": (1 << 63) - 1, "max": -(1 << 63)}[cls.combine]


def _refuse_stores(cls: type, name: str, function: Any) -> None:
    """Refuses a function that assigns to a field of `g` or `v` whose new value the run would not keep."""
    code = getattr(function, "__code__", None)
    if code is None:
        return
    import dis

    fixed = code.co_varnames[1:2] if name in ("begin", "apply") else code.co_varnames[: code.co_argcount]
    before: Any = None
    for instruction in dis.get_instructions(code):
        if instruction.opname == "STORE_ATTR":
            owner = before[-1] if isinstance(before, tuple) else before
            if owner in fixed:
                raise TypeError(f"{cls.__name__}: {name} sets {owner}.{instruction.argval}, which would be lost: only `before` sets numbers of all vertices, and only `begin` and `apply` columns")
        before = instruction.argval


def _address(function: Any) -> int | None:
    """The address of a function of C; `None` if it is one of Python."""
    if isinstance(function, int):
        return function
    address = getattr(function, "address", None)
    if isinstance(address, int):
        return address
    if hasattr(function, "restype"):  # of ctypes
        import ctypes

        return ctypes.cast(function, ctypes.c_void_p).value
    return None


def _code(function: Any, within: frozenset[int] = frozenset()) -> str:
    """What tells a function of Python from another one: its code, and the values and functions that it uses from around it."""
    function = getattr(function, "py_func", function)
    code = getattr(function, "__code__", None)
    if code is None or id(function) in within:
        return "native" if code is None else "itself"
    within |= {id(function)}
    names = {name for name in _names(code) if name in function.__globals__}
    used = {name: function.__globals__[name] for name in sorted(names)}
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        used[name] = cell.cell_contents
    values = [f"{name}={_value(value, within)}" for name, value in used.items()]
    return f"{_text_of(code)} {values!r}"


def _names(code: Any) -> set[str]:
    """The names that a code object and those within it look up."""
    inner = [constant for constant in code.co_consts if hasattr(constant, "co_names")]
    return {*code.co_names}.union(*map(_names, inner))


def _text_of(code: Any) -> str:
    constants = [_text_of(constant) if hasattr(constant, "co_code") else repr(constant) for constant in code.co_consts]
    return f"{code.co_code.hex()} {constants!r} {code.co_names!r}"


def _value(value: Any, within: frozenset[int]) -> str:
    """A value that a function uses from around it."""
    if hasattr(getattr(value, "py_func", value), "__code__"):
        return _code(value, within)
    # A module or a class is known by its name; an array by its bytes.
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    whole = getattr(value, "tobytes", None)
    return str(name) if name is not None else repr(value) if whole is None else whole().hex()


_KNOWN: Final[dict[tuple[Any, ...], _Functions]] = {}


def _functions(shape: _Shape) -> _Functions:
    """The functions of a class, which are compiled once for each set of types, and kept: a run may be going on."""
    key = (shape.cls, *shape.shared.items())
    if key not in _KNOWN:
        _KNOWN[key] = _Functions(shape)
    return _KNOWN[key]

