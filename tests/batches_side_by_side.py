"""Every kind of batch and dataset through torch's transport and through the arena, side by side, aspect by aspect.

    python tests/batches_side_by_side.py [--methods fork,spawn,forkserver,zygote] [--kinds WORD]

A kind is a function that makes an object. As a batch it is made in a worker and described here; as a part of a dataset
it is made here and described in a worker. One loader carries all kinds. A difference is a defect, unless it stands in
ALLOWED with a sentence of docs/guide/arena.md that says it. The zygote is compared with spawn.
"""

import argparse
import array
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import pathlib
import pickle
import sys
import tempfile
import uuid
import warnings

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import ullage

GUIDE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "guide" / "arena.md"
METHODS = ("fork", "spawn", "forkserver", "zygote")

# (kind or *, aspect): where the two ways differ on purpose, and the words of the guide that say so.
ALLOWED = {
    ("*", "is_shared"): "`tensor.is_shared()` is False for a received tensor",
    ("*", "owndata"): "`flags.owndata` is False",
    ("*", "storage bytes"): "A view sends only the bytes it covers, not its whole storage.",
    ("conj", "*"): "Conjugate and negative bits and attributes of tensors arrive.",
    ("neg", "*"): "Conjugate and negative bits and attributes of tensors arrive.",
    ("tensor with attributes", "*"): "Conjugate and negative bits and attributes of tensors arrive.",
    ("buffer", "*"): "Conjugate and negative bits and attributes of tensors arrive.",
    ("quantized*", "*"): "Quantized, sparse and nested tensors travel as their parts.",
    ("one tensor in two batches", "*"): "A worker that reuses one buffer sends the contents of that moment.",
}

Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Sample:
    image: object
    label: object = None


class Colour(enum.Enum):
    RED = 1


class Plain:
    def __init__(self):
        self.tensor, self.array, self.me = torch.arange(5.0), np.arange(3000), self


class Stateful:
    def __init__(self, tensor=None):
        self.tensor = tensor

    def __getstate__(self):
        return {"kept": self.tensor}

    def __setstate__(self, state):
        self.tensor = state["kept"] * 2


class Reduced:
    def __init__(self, *parts):
        self.parts = parts

    def __reduce__(self):
        return Reduced, (*self.parts, len(self.parts))


class ByProtocol:
    """Gives something else to each protocol."""

    def __init__(self, said):
        self.said = said

    def __reduce_ex__(self, protocol):
        return ByProtocol, (pickle.PickleBuffer(b"x" * 9000) if protocol >= 5 else protocol,)


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value=None):
        self.value = value


class DictOf(dict):
    pass


class ListOf(list):
    pass


class Tagged(torch.Tensor):
    pass


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))
        self.register_buffer("seen", torch.arange(3))


class Failed(Exception):
    def __init__(self, number, tensor):
        super().__init__(number)
        self.tensor = tensor


def raising(error):
    raise error


def tagged():
    tensor = torch.arange(6.0).as_subclass(Tagged)
    tensor.extra = "text"
    return tensor


def noted():
    tensor = torch.arange(6.0)
    tensor.note = {"a": torch.ones(2)}
    return tensor


def read_only(made):
    made.flags.writeable = False
    return made


def itself():
    made = [torch.ones(2)]
    made.append(made)
    return made


def masked():
    return np.ma.array(np.arange(2000.0), mask=np.arange(2000) % 3 == 0, fill_value=-1)


def mapped():
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(range(256)) * 40)
        file.flush()
        return np.memmap(file.name, dtype=">i2", mode="r")


def shared_parts():
    base = torch.arange(5000.0)
    return [base[:3000], base[1000:], base, base.reshape(50, 100).t(), base.untyped_storage()]


def twice(made):
    return [made, {"again": made}, (made,)]


def with_pil(make):
    from PIL import Image

    return make(Image.fromarray((np.arange(48 * 64 * 3) % 251).astype("uint8").reshape(48, 64, 3)))


def with_pandas(make):
    import pandas

    columns = {"a": np.arange(3000), "b": np.arange(3000) / 7, "c": ["x", "yy", "zzz"] * 1000}
    return make(pandas.DataFrame(columns, index=pandas.RangeIndex(5, 3005)))


def numpy_like(dtype):
    return np.arange(3000).astype(dtype)


FLOATS, INTEGERS = torch.arange(24.0), torch.arange(24)
KINDS = {
    **{
        f"dtype {one}": functools.partial(lambda one: torch.arange(3000).remainder(2).to(one), one)
        for one in (
            torch.bool,
            torch.uint8,
            torch.int8,
            torch.int16,
            torch.int32,
            torch.int64,
            torch.uint16,
            torch.uint32,
            torch.uint64,
            torch.float16,
            torch.bfloat16,
            torch.float32,
            torch.float64,
            torch.complex64,
            torch.complex128,
            torch.float8_e4m3fn,
            torch.float8_e5m2,
        )
    },
    "empty": lambda: torch.empty(0),
    "empty of three dimensions": lambda: torch.empty(3, 0, 5),
    "no dimension": lambda: torch.tensor(3.5),
    "transposed": lambda: FLOATS.reshape(4, 6).t(),
    "strided": lambda: INTEGERS[1::3],
    "expanded": lambda: torch.tensor([1.0]).expand(50, 60),
    "channels last": lambda: FLOATS.reshape(1, 2, 3, 4).to(memory_format=torch.channels_last),
    "view of the end": lambda: torch.arange(100_000)[99_990:],
    "special numbers": lambda: torch.tensor([float("nan"), -0.0, float("inf"), 1e-45]),
    "conj": lambda: (torch.ones(3) + 2j).conj(),
    "neg": lambda: (torch.ones(3) + 2j).conj().imag,
    "large": lambda: torch.arange(300_000),
    # Not more: torch sends a fork server one descriptor a storage, and 256 at most.
    "many": lambda: [torch.tensor(n) for n in range(60)],
    "sparse": lambda: torch.eye(4).to_sparse(),
    "sparse, uncoalesced": lambda: torch.sparse_coo_tensor([[0, 0], [1, 1]], torch.ones(2), (2, 2)),
    "csr": lambda: torch.eye(4).to_sparse_csr(),
    "csc": lambda: torch.eye(4).to_sparse_csc(),
    "bsr": lambda: torch.eye(4).to_sparse_bsr((2, 2)),
    "quantized": lambda: torch.quantize_per_tensor(torch.arange(9.0), 0.1, 3, torch.qint8),
    "quantized by channel": lambda: torch.quantize_per_channel(
        torch.ones(2, 3), torch.tensor([0.1, 0.2]), torch.tensor([0, 1]), 0, torch.quint8
    ),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "jagged": lambda: torch.nested.nested_tensor([torch.ones(2, 2), torch.ones(3, 2)], layout=torch.jagged),
    "meta": lambda: torch.empty(3, device="meta"),
    "subclass": lambda: torch.arange(4.0).as_subclass(Tagged),
    "subclass with attributes": tagged,
    "tensor with attributes": noted,
    "parameter": lambda: torch.nn.Parameter(torch.ones(3)),
    "buffer": lambda: torch.nn.Buffer(torch.ones(3)) if hasattr(torch.nn, "Buffer") else None,
    "requires grad": lambda: torch.ones(3, requires_grad=True),
    "module": lambda: dict(Module().state_dict()),
    "module itself": Module,
    "storage": lambda: torch.arange(5).untyped_storage(),
    "typed storage": lambda: torch.storage.TypedStorage([1, 2], dtype=torch.float32),
    "shared storage": shared_parts,
    "the same tensor": lambda: twice(torch.arange(4000)),
    "the same array": lambda: twice(np.arange(4000)),
    "the same list": lambda: twice([1, 2]),
    "shared by the user": lambda: torch.arange(5).share_memory_(),
    "packed sequence": lambda: torch.nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)]),
    "generator's state": lambda: torch.Generator().manual_seed(3).get_state(),
    "dtype, device, size": lambda: [torch.float32, torch.device("cpu"), torch.Size([1, 2]), torch.strided],
    **{
        f"numpy {one}": functools.partial(numpy_like, one)
        for one in (
            "u1",
            "f2",
            "i4",
            ">i4",
            "f8",
            ">f8",
            "c16",
            "?",
            "U7",
            "S5",
            "M8[s]",
            "m8[ms]",
            "O",
            ">M8[D]",
            "longdouble",
        )
    },
    "numpy, small": lambda: np.arange(3, dtype=">i2"),
    "numpy, empty": lambda: np.zeros((0, 4)),
    "numpy, no dimension": lambda: np.array(7.5),
    "numpy scalar": lambda: [np.float32(3), np.int64(-1), np.datetime64("2020-01-01"), np.str_("x"), np.bool_(True)],
    "numpy, big-endian scalar": lambda: np.array(5, ">i4")[()],
    "numpy, structured": lambda: np.zeros(600, dtype=[("a", "i4"), ("b", "f8", (2,)), ("c", "U3")]),
    "numpy, structured big-endian": lambda: np.ones(600, dtype=[("a", ">i4"), ("b", "<f8")]),
    "numpy, aligned": lambda: np.ones(600, dtype=np.dtype([("a", "i1"), ("b", "f8")], align=True)),
    "numpy record": lambda: np.rec.array([(1, 2.0)] * 600, dtype=[("a", "i4"), ("b", "f8")]),
    "numpy, objects": lambda: np.array([{"a": 1}, "x", None], dtype=object),
    "numpy, Fortran": lambda: np.asfortranarray(np.arange(6000.0).reshape(60, 100)),
    "numpy, read-only": lambda: read_only(np.arange(4000)),
    "numpy, read-only and small": lambda: read_only(np.arange(4)),
    "numpy, read-only Fortran": lambda: read_only(np.asfortranarray(np.ones((60, 100)))),
    "numpy from bytes": lambda: np.frombuffer(bytes(9000), "u1"),
    "numpy, read-only big-endian": lambda: np.frombuffer(bytes(9000), ">u2"),
    "numpy, strided": lambda: np.arange(9000)[::3],
    "numpy, backwards": lambda: np.arange(3000)[::-1],
    "numpy, broadcast": lambda: np.broadcast_to(np.arange(1000.0), (3, 1000)),
    "numpy, view": lambda: np.arange(100_000)[5:9000],
    "numpy, transposed": lambda: np.arange(6000).reshape(10, 20, 30).transpose(2, 0, 1),
    "numpy, masked": masked,
    "numpy, mapped": mapped,
    "numpy matrix": lambda: np.matrix(np.arange(6000).reshape(60, 100)),
    "numpy of a tensor": lambda: torch.arange(3000).numpy(),
    "numpy generator": lambda: np.random.default_rng(3).bit_generator.state,
    "bytes": lambda: b"x" * 100_000,
    "bytearray": lambda: bytearray(b"abc" * 5000),
    "array.array": lambda: array.array("d", range(2000)),
    "large integer": lambda: 10**500,
    "text": lambda: ["é\U0001f600", "\ud800x", "x" * 70_000],
    "complex, float, bool": lambda: [1j, float("nan"), -0.0, True, None, ...],
    "set": lambda: {1, 2, "x"},
    "frozenset": lambda: frozenset([1, (2, 3)]),
    "namedtuple": lambda: Point(torch.ones(2), "x"),
    "dataclass": lambda: Sample(torch.ones(2000), [np.ones(2000)]),
    "OrderedDict": lambda: collections.OrderedDict(b=torch.ones(1), a=2),
    "defaultdict": lambda: collections.defaultdict(list, a=[torch.ones(1)]),
    "Counter": lambda: collections.Counter("aab"),
    "deque": lambda: collections.deque([torch.ones(1), 2], maxlen=5),
    "subclass of dict": lambda: DictOf(a=torch.ones(1)),
    "subclass of list": lambda: ListOf([torch.ones(1)]),
    "list in itself": itself,
    "object": lambda: Plain(),
    "object with a state": lambda: Stateful(torch.ones(2)),
    "object with a reducer": lambda: Reduced(torch.ones(2), np.ones(3000)),
    "object that asks for the protocol": lambda: ByProtocol("made"),
    "object with slots": lambda: Slotted(torch.ones(3)),
    "decimal, date, fraction, uuid": lambda: [
        decimal.Decimal("1.5"),
        datetime.datetime(2020, 1, 2, 3),
        fractions.Fraction(1, 3),
        uuid.UUID(int=5),
    ],
    "enum, slice, range": lambda: [Colour.RED, slice(1, 2), range(5), functools.partial(int, base=2)],
    "path, type, function": lambda: [pathlib.PurePosixPath("a/b"), dict, len, Sample, raising],
    "exception": lambda: ValueError("x", 3),
    "PIL image": lambda: with_pil(lambda image: image),
    "PIL image as an array": lambda: with_pil(np.asarray),
    "pandas": lambda: with_pandas(lambda frame: frame),
    "pandas, an array": lambda: with_pandas(lambda frame: frame["b"].to_numpy()),
    "one tensor in two batches": lambda: AGAIN,
    "one tensor in two batches, changed": lambda: AGAIN.add_(1),
}
AGAIN = torch.zeros(3)
# As batches only: what a worker raises.
RAISED = {
    "ValueError raised": lambda: raising(ValueError("no such sample")),
    "KeyError raised": lambda: raising(KeyError("x\ny")),
    "own error raised": lambda: raising(Failed(3, torch.ones(2))),
    "StopIteration raised": lambda: raising(StopIteration(3)),
    "OSError raised": lambda: raising(FileNotFoundError(2, "gone", "file")),
}


def made(name):
    """The object of a kind, or why this machine makes none."""
    try:
        return {**KINDS, **RAISED}[name]()
    except (ImportError, TypeError, NotImplementedError) as missing:
        if name in RAISED:
            raise
        return f"not made: {type(missing).__name__}"


class Batches(Dataset):
    def __init__(self, names):
        self.names = names

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        return made(self.names[index])


class Held(Dataset):
    """Its items lie in it, and are described where they have arrived."""

    def __init__(self, names):
        self.items = [made(name) for name in names]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return described(self.items[index])


def as_it_is(item):
    return item


def described(item):
    """Pairs of (aspect, value) of all that can be seen of an object."""
    told, seen, storages = [], {}, {}

    def number(table, key):
        return table.setdefault(key, len(table))

    def storage(one):
        told.append(("alias", number(storages, (one.data_ptr(), one.nbytes()) if one.nbytes() else id(one))))
        told.append(("is_shared", one.is_shared()))
        told.append(("storage bytes", one.nbytes()))

    def tensor(x):
        told.append(("tensor", (str(x.dtype), str(x.layout), str(x.device), x.requires_grad, x.is_leaf, x.is_nested)))
        if x.device.type == "meta":
            told.append(("shape", tuple(x.shape)))
        elif x.is_nested:
            for part in x.unbind():
                tensor(part.detach().clone())
        elif x.is_quantized:
            told.append(("quantized", (x.shape, str(x.qscheme()), x.int_repr().tolist(), x.dequantize().tolist())))
        elif x.layout is not torch.strided:
            coalesced = x.is_coalesced() if x.layout is torch.sparse_coo else None
            told.append(("sparse", (x.shape, coalesced, x.detach().to_dense().tolist())))
        else:
            told.append(("strides", (tuple(x.shape), x.stride() if x.numel() else (), x.is_contiguous())))
            if x.dtype.is_complex or x.is_floating_point():
                told.append(("bits", (x.is_conj() if x.dtype.is_complex else False, x.is_neg())))
            plain = x.detach().resolve_conj().resolve_neg().contiguous()
            told.append(("values", plain.reshape(-1).view(torch.uint8).numpy().tobytes() if x.numel() else b""))
            storage(x.untyped_storage())
        for name, value in getattr(x, "__dict__", {}).items():
            if not name.startswith("_"):
                told.append(("attribute", name))
                walk(value)

    def numpy(x):
        flags = x.flags
        told.append(
            ("dtype", (x.dtype.str, str(x.dtype.descr if x.dtype.fields else x.dtype), x.dtype.isalignedstruct))
        )
        told.append(("strides", (x.shape, x.strides if x.size else ())))
        told.append(("flags", (flags.writeable, flags.c_contiguous, flags.f_contiguous, flags.aligned)))
        told.append(("owndata", flags.owndata or x.base is not None and type(x.base) is not np.ndarray))
        padded = x.dtype.hasobject or x.dtype.fields or x.dtype.char == "g"
        told.append(("values", repr(x.tolist()) if padded else np.ndarray.tobytes(np.asarray(x))))
        if isinstance(x, np.ma.MaskedArray):
            told.append(("mask", (np.ma.getmaskarray(x).tolist(), float(x.fill_value))))

    def walk(x):
        told.append(("type", f"{type(x).__module__}.{type(x).__qualname__}"))
        if isinstance(x, (list, dict, set, torch.Tensor, np.ndarray)) or hasattr(x, "__dict__"):
            if id(x) in seen:
                told.append(("same", seen[id(x)][0]))
                return
            seen[id(x)] = len(seen), x
        if isinstance(x, torch.Tensor):
            tensor(x)
        elif isinstance(x, torch.UntypedStorage):
            told.append(("values", bytes(x.tolist())))
            storage(x)
        elif isinstance(x, torch.storage.TypedStorage):
            told.append(("values", (str(x.dtype), x.tolist())))
        elif isinstance(x, np.ndarray):
            numpy(x)
        elif isinstance(x, collections.defaultdict):
            told.append(("factory", repr(x.default_factory)))
            walk(list(x.items()))
        elif isinstance(x, dict):
            for key, value in x.items():
                walk(key)
                walk(value)
        elif isinstance(x, (list, tuple, collections.deque)):
            told.append(("length", (len(x), getattr(x, "maxlen", None))))
            for part in x:
                walk(part)
        elif isinstance(x, (set, frozenset)):
            told.append(("items", sorted(map(repr, x))))
        elif isinstance(x, BaseException):
            told.append(("error", str(x).replace("\r", "")))
            walk(list(x.args))
        elif type(x).__module__.startswith("pandas."):
            told.append(("values", (repr(x), str(x.dtypes), repr(x.index))))
        elif type(x).__module__.startswith("PIL."):
            told.append(("values", (x.mode, x.size, x.tobytes())))
        elif isinstance(x, Slotted):
            walk(x.value)
        elif hasattr(x, "__dict__") and type(x).__module__ in ("__main__", "__mp_main__", __name__):
            walk({key: value for key, value in vars(x).items() if not callable(value)})
        else:
            told.append(("value", getattr(x, "__qualname__", None) or repr(x)))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        walk(item)
    # The trainer's own module has another name in a worker.
    return [(aspect, value.replace("__mp_main__", "__main__") if aspect == "type" else value) for aspect, value in told]


def run(dataset, context, describe):
    """What each item is, or how it failed; and the warnings on the way."""
    got, kept = [], []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        batches = iter(
            DataLoader(
                dataset,
                batch_size=None,
                collate_fn=as_it_is,
                num_workers=1,
                multiprocessing_context=context,
                timeout=120,
            )
        )
        for _ in range(len(dataset)):
            try:
                kept.append(next(batches))
                got.append(describe(kept[-1]))
            except StopIteration:
                got.append([("error", "StopIteration")])
            except Exception as error:
                got.append([("error", type(error).__name__), ("text", str(error).strip().rpartition("\n")[2])])
        del batches
    told = sorted(
        {(one.category.__name__, str(one.message)) for one in warned if "multi-threaded" not in str(one.message)}
    )
    return got, told


def is_allowed(kind, aspect):
    def fits(pattern, word):
        return pattern == word or pattern.endswith("*") and word.startswith(pattern[:-1])

    return any(fits(one, kind) and fits(other, aspect) for one, other in ALLOWED)


def differences(kind, torchs, ours):
    """Aspects in which the two differ, but for those that may."""
    names = [aspect for aspect, _ in torchs]
    if names != [aspect for aspect, _ in ours]:
        return [] if is_allowed(kind, "what there is") else [("what there is", torchs, ours)]
    return [
        (aspect, one, other)
        for (aspect, one), (_, other) in zip(torchs, ours)
        if one != other and not is_allowed(kind, aspect)
    ]


def compare(method, names, raised=RAISED):
    """How many kinds were compared, and a line for each difference."""
    stock = "spawn" if method == "zygote" else method
    lines, count = [], 0
    ways = [("batch", Batches([*names, *raised]), described)]
    if method != "fork":
        ways.append(("dataset", Held(names), as_it_is))
    for way, dataset, describe in ways:
        kinds = [*names, *raised] if way == "batch" else names
        theirs, they_warned = run(dataset, stock, describe)
        ours, we_warned = run(
            dataset, ullage.context(method, stock) if method == "zygote" else ullage.context(method), describe
        )
        count += len(kinds)
        for kind, one, other in zip(kinds, theirs, ours):
            for aspect, a, b in differences(kind, one, other):
                lines.append(f"{method}, {way}, {kind}: {aspect}\n    torch  {str(a)[:300]}\n    ullage {str(b)[:300]}")
        for warning in sorted({*we_warned} - {*they_warned}):
            lines.append(f"{method}, {way}: a warning that torch does not give: {warning}")
    return count, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--methods", default=",".join(METHODS), help="start methods, by commas")
    parser.add_argument("--kinds", default="", help="only kinds with this in their name")
    args = parser.parse_args()
    guide = GUIDE.read_text()
    missing = [words for words in ALLOWED.values() if words not in guide]
    for words in missing:
        print(f"not in {GUIDE.name}: {words!r}")
    names = [name for name in KINDS if args.kinds in name]
    raised = [name for name in RAISED if args.kinds in name]
    wrong, total = len(missing), 0
    for method in args.methods.split(","):
        count, lines = compare(method, names, raised)
        for line in lines:
            print(line)
        print(f"{method:11} {count} kinds compared, {len(lines)} differences", flush=True)
        wrong, total = wrong + len(lines), total + count
    print(f"{len(names) + len(raised)} kinds, {total} comparisons, {wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
