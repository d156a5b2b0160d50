"""The graph of a BERT sentence encoder in ONNX, whose weights stay in the safetensors file they came in.

Pure: bytes out of a header and a few numbers.  The package registries have all-MiniLM-L6-v2 as safetensors and not as
ONNX; the graph is small, and ONNX can point into any file, so it is written here, in the few kinds of protobuf fields
that it needs, and nothing is converted, copied or downloaded.

In: ``ids`` and ``positions`` (int64) and ``mask`` (float, 1 for a token and 0 for padding).  Out: ``vectors``, the mean
over the tokens of each text, at unit length.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import sqrt
from struct import pack

from commonplace.model.values import Value

IR_VERSION, OPSET = 9, 20  # 20 is the first with Gelu
FLOAT, INT64 = 1, 7
VARINT, BYTES, FIXED32 = 0, 2, 5
ATTRIBUTE_FLOAT, ATTRIBUTE_INT, ATTRIBUTE_INTS = 1, 2, 7
EXTERNAL = 1
FAR = -10_000.0  # added to the score of padding, so that nothing of it is attended to


class Tensor(Value):
    """Where a tensor lies in its file."""

    shape: tuple[int, ...]
    offset: int  #: from the beginning of the file
    length: int


class Shape(Value):
    """What the weights do not say."""

    layers: int
    heads: int
    epsilon: float


def graph(tensors: Mapping[str, Tensor], shape: Shape, *, file: str) -> bytes:
    """A model, as ONNX keeps it, of the tensors in a file beside it."""
    return _Graph(tensors, shape, file).model()


class _Graph:
    """Nodes and tensors while they are put together."""

    def __init__(self, tensors: Mapping[str, Tensor], shape: Shape, file: str) -> None:
        self.tensors, self.shape, self.file = tensors, shape, file
        self.nodes: list[bytes] = []
        self.initializers: list[bytes] = []
        self.used: set[str] = set()

    def model(self) -> bytes:
        self._pooled(self._encoded())
        inputs = [_info("ids", INT64, "b", "n"), _info("positions", INT64, "n"), _info("mask", FLOAT, "b", "n")]
        body = _many(1, self.nodes) + _field(2, b"sentence encoder") + _many(5, self.initializers)
        body += _many(11, inputs) + _field(12, _info("vectors", FLOAT, "b", "w"))
        return _number(1, IR_VERSION) + _field(7, body) + _field(8, _number(2, OPSET))

    def _encoded(self) -> str:
        words = self._node("Gather", [self._weight("embeddings.word_embeddings.weight"), "ids"])
        places = self._node("Gather", [self._weight("embeddings.position_embeddings.weight"), "positions"])
        sort = self._node("Gather", [self._weight("embeddings.token_type_embeddings.weight"), self._ints("first", 0)])
        x = self._node("Add", [self._node("Add", [words, places]), sort])
        x = self._norm(x, "embeddings.LayerNorm")
        hidden = self._node("Mul", [self._node("Sub", [self._float("one", 1.0), "mask"]), self._float("far", FAR)])
        hidden = self._node("Unsqueeze", [hidden, self._ints("heads and rows", 1, 2)])
        for layer in range(self.shape.layers):
            x = self._layer(x, hidden, f"encoder.layer.{layer}.")
        return x

    def _layer(self, x: str, hidden: str, at: str) -> str:
        attended = self._attention(x, hidden, f"{at}attention.")
        x = self._node("Add", [self._dense(attended, f"{at}attention.output.dense"), x])
        x = self._norm(x, f"{at}attention.output.LayerNorm")
        inner = self._node("Gelu", [self._dense(x, f"{at}intermediate.dense")])
        return self._norm(self._node("Add", [self._dense(inner, f"{at}output.dense"), x]), f"{at}output.LayerNorm")

    def _attention(self, x: str, hidden: str, at: str) -> str:
        size = self._width() // self.shape.heads
        cut = self._ints("cut into heads", 0, 0, self.shape.heads, size)
        parts = [self._node("Reshape", [self._dense(x, f"{at}self.{part}"), cut]) for part in ("query", "key", "value")]
        turns = ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3))
        query, key, value = [self._turned(part, turn) for part, turn in zip(parts, turns, strict=True)]
        scores = self._node("Mul", [self._node("MatMul", [query, key]), self._float("scale", 1 / sqrt(size))])
        weights = self._node("Softmax", [self._node("Add", [scores, hidden])], _integer("axis", -1))
        joined = self._turned(self._node("MatMul", [weights, value]), (0, 2, 1, 3))
        return self._node("Reshape", [joined, self._ints("join heads", 0, 0, self._width())])

    def _pooled(self, x: str) -> None:
        tokens = self._ints("tokens", 1)
        weights = self._node("Unsqueeze", ["mask", self._ints("last", 2)])
        total = self._node("ReduceSum", [self._node("Mul", [x, weights]), tokens], _integer("keepdims", 0))
        count = self._node("ReduceSum", ["mask", tokens], _integer("keepdims", 1))
        mean = self._node("Div", [total, count])
        self._node("LpNormalization", [mean], _integer("axis", -1), _integer("p", 2), output="vectors")

    def _dense(self, x: str, name: str) -> str:
        weight = self._turned(self._weight(f"{name}.weight"), (1, 0))  # folded when the model is loaded
        return self._node("Add", [self._node("MatMul", [x, weight]), self._weight(f"{name}.bias")])

    def _norm(self, x: str, name: str) -> str:
        inputs = [x, self._weight(f"{name}.weight"), self._weight(f"{name}.bias")]
        return self._node("LayerNormalization", inputs, _integer("axis", -1), _real("epsilon", self.shape.epsilon))

    def _turned(self, x: str, order: tuple[int, ...]) -> str:
        return self._node("Transpose", [x], _integers("perm", order))

    def _width(self) -> int:
        return self.tensors["embeddings.word_embeddings.weight"].shape[1]

    def _node(self, kind: str, inputs: Iterable[str], *attributes: bytes, output: str = "") -> str:
        output = output or f"x{len(self.nodes)}"
        body = _many(1, [name.encode() for name in inputs]) + _field(2, output.encode()) + _field(4, kind.encode())
        self.nodes.append(body + _many(5, attributes))
        return output

    def _weight(self, name: str) -> str:
        """A tensor that stays where it is."""
        if name not in self.used:
            tensor = self.tensors[name]
            where = {"location": self.file, "offset": str(tensor.offset), "length": str(tensor.length)}
            body = _dims(tensor.shape) + _number(2, FLOAT) + _field(8, name.encode())
            body += _many(13, [_field(1, key.encode()) + _field(2, value.encode()) for key, value in where.items()])
            self._put(name, body + _number(14, EXTERNAL))
        return name

    def _float(self, name: str, value: float) -> str:
        return self._put(name, _number(2, FLOAT) + _field(8, name.encode()) + _field(9, pack("<f", value)))

    def _ints(self, name: str, *values: int) -> str:
        body = _dims((len(values),)) + _number(2, INT64) + _field(8, name.encode())
        return self._put(name, body + _field(9, pack(f"<{len(values)}q", *values)))

    def _put(self, name: str, body: bytes) -> str:
        if name not in self.used:
            self.used.add(name)
            self.initializers.append(body)
        return name


def _varint(number: int) -> bytes:
    """Seven bits to a byte; a negative number as its 64 bits."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:  # noqa: PLR2004
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | VARINT) + _varint(value)


def _field(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | BYTES) + _varint(len(value)) + value


def _many(field: int, values: Iterable[bytes]) -> bytes:
    return b"".join(_field(field, value) for value in values)


def _dims(shape: tuple[int, ...]) -> bytes:
    return b"".join(_number(1, size) for size in shape)


def _integer(name: str, value: int) -> bytes:
    return _field(1, name.encode()) + _number(3, value) + _number(20, ATTRIBUTE_INT)


def _integers(name: str, values: tuple[int, ...]) -> bytes:
    return _field(1, name.encode()) + b"".join(_number(8, value) for value in values) + _number(20, ATTRIBUTE_INTS)


def _real(name: str, value: float) -> bytes:
    bits = _varint(2 << 3 | FIXED32) + pack("<f", value)
    return _field(1, name.encode()) + bits + _number(20, ATTRIBUTE_FLOAT)


def _info(name: str, kind: int, *sizes: str) -> bytes:
    """What goes in or out: its name, its sort of number, its sizes by name."""
    shape = _many(1, [_field(2, size.encode()) for size in sizes])
    return _field(1, name.encode()) + _field(2, _field(1, _number(1, kind) + _field(2, shape)))
