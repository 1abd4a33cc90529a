"""Every kind of thing that a batch may be, through one loader: what arrives, to the bit.

    python batches.py METHOD NAME [NAME...]      prints a line for each kind: its name, a tab, what arrived

Not here are kinds that torch itself cannot hand over: a lambda or an open file (it waits for ever), a quantized tensor
(what arrives has no quantizer).
"""

import array
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import hashlib
import pathlib
import sys
import uuid

import numpy
import torch
from torch.utils.data import DataLoader, Dataset

Pair = collections.namedtuple("Pair", "first second")


@dataclasses.dataclass
class Sample:
    image: object
    label: object = None


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: object


class Slots:
    __slots__ = ("value",)


class Sub(torch.Tensor):
    pass


class Colour(enum.Enum):
    RED = 1


class Doubling:
    """Says itself how it is packed, and does something where it is unpacked."""

    def __init__(self, value):
        self.value = value

    def __getstate__(self):
        return {"kept": self.value}

    def __setstate__(self, state):
        self.value = state["kept"] * 2


class Reduced:
    def __init__(self, value, extra):
        self.value, self.extra = value, extra

    def __reduce__(self):
        return Reduced, (self.value, "again")


class OwnDict(dict):
    pass


class OwnList(list):
    pass


class OwnArray(numpy.ndarray):
    pass


class Circle:
    def __init__(self):
        self.me, self.tensor = self, torch.arange(5)


def with_value(one, **values):
    for name, value in values.items():
        setattr(one, name, value)
    return one


def read_only(one):
    one.setflags(write=False)
    return one


def views():
    base = torch.arange(100)
    return [base[:50], base[50:], base[::2], base.reshape(10, 10).t(), base]


def list_in_itself():
    one = [torch.ones(2)]
    one.append(one)
    return one


def random(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


F = torch.float32
KINDS = {
    # sizes and layouts
    "empty": lambda: torch.empty(0),
    "empty-with-shape": lambda: torch.empty(3, 0, 5),
    "no-dimension": lambda: torch.tensor(3.5),
    "transposed": lambda: torch.arange(24).reshape(4, 6).t(),
    "expanded": lambda: torch.tensor([1.0]).expand(100, 100),
    "flipped": lambda: torch.arange(10).flip(0),
    "diagonal": lambda: torch.arange(16.0).reshape(4, 4).diagonal(),
    "overlapping": lambda: torch.arange(9.0).as_strided((4, 3), (1, 2)),
    "channels-last": lambda: torch.arange(24.0).reshape(1, 2, 3, 4).to(memory_format=torch.channels_last),
    "channels-last-3d": lambda: torch.arange(48.0).reshape(1, 2, 3, 4, 2).to(memory_format=torch.channels_last_3d),
    "large": lambda: torch.arange(3_000_000),
    "end-of-a-large-one": lambda: torch.arange(1_000_000)[999_990:],
    "many-small": lambda: [torch.tensor(n) for n in range(1000)],
    "views-of-one": views,
    "same-three-times": lambda: (lambda one: [one, one, {"x": one}])(torch.arange(4)),
    "list-in-itself": list_in_itself,
    "in-shared-memory": lambda: torch.arange(5).share_memory_(),
    "of-numpy": lambda: torch.from_numpy(numpy.arange(6.0)),
    "of-a-buffer": lambda: torch.frombuffer(bytearray(range(64)), dtype=torch.int32),
    "odd-values": lambda: torch.tensor([float("nan"), -0.0, float("inf"), -float("inf"), 1e-45]),
    # types
    **{
        f"dtype-{kind}": (lambda kind=kind: torch.arange(9).to(getattr(torch, kind)))
        for kind in "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
    },
    "dtype-uint16": lambda: torch.arange(3).to(torch.uint16),
    "dtype-uint64": lambda: torch.arange(3).to(torch.uint64),
    "dtype-complex32": lambda: torch.ones(3, dtype=torch.complex32),
    "dtype-float8-e4m3fn": lambda: torch.ones(3).to(torch.float8_e4m3fn),
    "dtype-float8-e5m2": lambda: torch.ones(3).to(torch.float8_e5m2),
    # other tensors
    "sparse": lambda: torch.eye(4).to_sparse(),
    "sparse-uncoalesced": lambda: torch.sparse_coo_tensor(torch.tensor([[0, 0], [1, 1]]), torch.ones(2), (2, 2)),
    "sparse-rows": lambda: torch.eye(4).to_sparse_csr(),
    "sparse-columns": lambda: torch.eye(4).to_sparse_csc(),
    "sparse-blocks": lambda: torch.eye(4).to_sparse_bsr((2, 2)),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "jagged": lambda: torch.nested.nested_tensor([torch.ones(2, 2), torch.ones(3, 2)], layout=torch.jagged),
    "subclass": lambda: torch.arange(4).as_subclass(Sub),
    "subclass-with-attribute": lambda: with_value(torch.arange(6.0).as_subclass(Sub), extra="hello"),
    "parameter": lambda: torch.nn.Parameter(torch.ones(3)),
    "parameter-frozen": lambda: torch.nn.Parameter(torch.ones(3), requires_grad=False),
    "asks-for-gradients": lambda: torch.ones(3, requires_grad=True),
    "meta": lambda: torch.empty(3, device="meta"),
    "packed-sequence": lambda: torch.nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)]),
    "storage": lambda: torch.arange(5).untyped_storage(),
    "typed-storage": lambda: torch.FloatStorage([1, 2]),
    "tensor-with-attribute": lambda: with_value(torch.ones(2), note="x"),
    "module": lambda: torch.nn.Linear(2, 2).requires_grad_(False).weight.data.fill_(1),
    "state-of-a-generator": lambda: torch.Generator().manual_seed(1).get_state()[:16],
    # numpy
    "array": lambda: numpy.arange(12).reshape(3, 4),
    "array-backwards": lambda: numpy.arange(10)[::-1],
    "array-by-columns": lambda: numpy.asfortranarray(numpy.arange(6).reshape(2, 3)),
    "array-read-only": lambda: read_only(numpy.arange(4)),
    "array-of-bytes": lambda: numpy.frombuffer(bytes(range(64)), dtype=numpy.int16),
    "array-other-byte-order": lambda: numpy.arange(4, dtype=">i4"),
    "array-other-byte-order-large": lambda: numpy.arange(40_000, dtype=">f8"),
    "array-read-only-large": lambda: read_only(numpy.arange(40_000)),
    "array-of-objects": lambda: numpy.array([{"a": 1}, "x", None], dtype=object),
    "array-of-text": lambda: numpy.array(["a", "bcd"]),
    "array-of-dates": lambda: numpy.array(["2020-01-01", "2021-05-06"], dtype="datetime64[D]"),
    "array-of-records": lambda: numpy.array([(1, 2.0)], dtype=[("a", "i4"), ("b", ">f8")]),
    "array-masked": lambda: numpy.ma.array([1, 2], mask=[0, 1]),
    "array-part-of-large": lambda: numpy.arange(100_000)[5:9],
    "array-without-dimension": lambda: numpy.array(3.0),
    "array-subclass": lambda: numpy.arange(4).view(OwnArray),
    "array-empty": lambda: numpy.empty((0, 3)),
    "array-expanded": lambda: numpy.broadcast_to(numpy.arange(3), (1000, 3)),
    "number-of-numpy": lambda: numpy.float32(3),
    "same-array-twice": lambda: (lambda one: [one, one[2:], one])(numpy.arange(9)),
    # python
    "bytes": lambda: bytes(range(256)) * 400,
    "bytearray": lambda: bytearray(b"abc"),
    "large-bytearray": lambda: bytearray(b"abc") * 100_000,
    "large-int": lambda: 10**500,
    "text": lambda: "é\u2028𝄞",
    "half-a-surrogate": lambda: "\ud800x",
    "set": lambda: {1, 2},
    "frozenset": lambda: frozenset([1]),
    "decimal": lambda: decimal.Decimal("1.50"),
    "fraction": lambda: fractions.Fraction(1, 3),
    "date": lambda: datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc),
    "path": lambda: pathlib.PurePosixPath("a/b"),
    "uuid": lambda: uuid.UUID(int=5),
    "enum": lambda: Colour.RED,
    "none": lambda: None,
    "ellipsis": lambda: ...,
    "slice": lambda: slice(1, 2),
    "range": lambda: range(5),
    "complex": lambda: 1 + 2j,
    "array-of-python": lambda: array.array("d", [1, 2]),
    "ordered-dict": lambda: collections.OrderedDict(b=torch.ones(1), a=2),
    "default-dict": lambda: collections.defaultdict(list, a=[torch.ones(1)]),
    "counter": lambda: collections.Counter("abca"),
    "deque": lambda: collections.deque([torch.ones(1)], maxlen=3),
    "own-dict": lambda: with_value(OwnDict(a=torch.ones(1)), note=1),
    "own-list": lambda: with_value(OwnList([torch.ones(1)]), note=1),
    "named-tuple": lambda: Pair(torch.ones(2), "x"),
    "dataclass": lambda: Sample(torch.ones(2), [1]),
    "dataclass-frozen": lambda: Frozen(torch.ones(2)),
    "slots": lambda: with_value(Slots(), value=torch.ones(2)),
    "own-state": lambda: Doubling(torch.ones(2)),
    "own-reduction": lambda: Reduced(torch.ones(2), "first"),
    "circle": Circle,
    "deep": lambda: {"a": {"b": [(torch.ones(2), {"c": [None, 1.5]})]}},
    "exception": lambda: ValueError("x", torch.ones(1)),
    "type-of-torch": lambda: [torch.float32, torch.device("cpu"), torch.Size([1, 2]), torch.strided],
    "class": lambda: Sample,
    "function": lambda: random,
}


def digest(data):
    return hashlib.sha1(data).hexdigest()[:12]


def of_tensor(one):
    attributes = {name: value for name, value in getattr(one, "__dict__", {}).items() if not name.startswith("_")}
    said = [type(one).__name__, one.dtype, one.layout, one.device, one.requires_grad, one.is_leaf, attributes]
    if one.is_nested:
        return [*said, [describe(part.detach()) for part in one.unbind()]]
    said.append(tuple(one.shape))
    if one.layout != torch.strided:
        plain = one.detach().to_dense()
        return [*said, one.is_coalesced() if one.layout == torch.sparse_coo else None, digest(plain.numpy().tobytes())]
    if one.device.type == "meta":
        return said
    said += [one.stride(), one.is_conj(), one.is_neg(), one.is_contiguous()]
    plain = one.detach().resolve_conj().resolve_neg().contiguous()
    return [*said, digest(plain.flatten().view(torch.uint8).numpy().tobytes()) if plain.numel() else "empty"]


def of_array(one):
    flags = one.flags
    said = [type(one).__name__, one.dtype.str, one.shape, one.strides, flags.writeable, flags.f_contiguous, flags.aligned]
    return [*said, one.tolist() if one.dtype.hasobject or one.size < 20 else digest(one.tobytes())]


def describe(one, seen=None):
    """What it is, with what is in it; what comes a second time is a number."""
    seen = {} if seen is None else seen
    if id(one) in seen:
        return f"the same as {seen[id(one)]}"
    if not isinstance(one, (int, str, float, bytes, type(None))):
        seen[id(one)] = len(seen)
    if isinstance(one, torch.Tensor):
        said = of_tensor(one)
        if one.layout == torch.strided and not one.is_nested and one.device.type == "cpu" and one.numel():
            place = ("storage", one.untyped_storage().data_ptr())
            said.append(["of storage", seen.setdefault(place, len(seen)), one.storage_offset()])
        return said
    if isinstance(one, numpy.ma.MaskedArray):
        return [type(one).__name__, of_array(one.data), of_array(numpy.asarray(one.mask))]
    if isinstance(one, numpy.ndarray):
        return of_array(one)
    if isinstance(one, (torch.UntypedStorage, torch.TypedStorage)):
        return [type(one).__name__, one.tolist()[:40]]
    if isinstance(one, (bytes, bytearray)):
        return [type(one).__name__, len(one), digest(one)]
    if isinstance(one, dict):
        extra = {name: value for name, value in getattr(one, "__dict__", {}).items()}
        parts = [(describe(key, seen), describe(value, seen)) for key, value in one.items()]
        return [type(one).__name__, parts, extra, getattr(one, "default_factory", None)]
    if isinstance(one, (list, tuple, collections.deque)):
        extra = [getattr(one, "maxlen", None), getattr(one, "note", None)]
        return [type(one).__name__, len(one), [describe(part, seen) for part in one], extra]
    if isinstance(one, (set, frozenset)):
        return [type(one).__name__, sorted(one)]
    if isinstance(one, BaseException):
        return [type(one).__name__, describe(one.args, seen)]
    if isinstance(one, type) or callable(one):
        return [type(one).__name__, one.__qualname__]
    if type(one).__module__ == __name__ and not isinstance(one, enum.Enum):
        state = getattr(one, "__dict__", None) or {name: getattr(one, name) for name in one.__slots__}
        return [type(one).__name__, describe(dict(state), seen)]
    return [type(one).__name__, repr(one)]


def first(batch):
    return batch[0]


def text(one):
    return repr(describe(one)).replace(f"{__name__}.", "").replace("\t", " ").replace("\n", " ")


class Kinds(Dataset):
    def __init__(self, names):
        self.names = names

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        return KINDS[self.names[index]]()


def main():
    method, *names = sys.argv[1:]
    # A loader kills a worker that takes longer to end, and what it had in TMPDIR stays: on a busy machine 5 s go by.
    torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL = 300.0
    settings = {"batch_size": 1, "collate_fn": first, "num_workers": 1, "multiprocessing_context": method, "timeout": 300}
    for name, arrived in zip(names, DataLoader(Kinds(names), **settings)):
        print(f"{name}\t{text(arrived)}", flush=True)


if __name__ == "__main__":
    main()
