"""`ullage.share` with torch: tensors over the shared pages, and loaders whose workers share them."""

import io
import pickle
from multiprocessing.reduction import ForkingPickler

import pytest

import ullage
from ullage.errors import NotShareable

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, Dataset, TensorDataset, default_collate  # noqa: E402

DTYPES = sorted(
    (value for value in vars(torch).values() if isinstance(value, torch.dtype) and not str(value)[6:].startswith("q")),
    key=str,
)


def same(one, other):
    return one.dtype == other.dtype and one.shape == other.shape and bool(torch.equal(one, other))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype(dtype):
    try:
        tensor = torch.arange(6).reshape(2, 3).to(dtype)
        tensor.contiguous().view(torch.uint8)
    except (RuntimeError, NotImplementedError):
        pytest.skip("this torch makes no such tensor")
    if dtype.itemsize * 8 != torch.zeros(1, dtype=dtype).element_size() * 8:
        pytest.skip("packed dtype")
    shared = ullage.share([tensor, [tensor, tensor], {"x": tensor}])
    for one in (shared[0], shared[1][1], shared[2]["x"], shared.to_python()[1][0]):
        assert one.dtype == dtype and one.shape == tensor.shape
        assert torch.equal(one.view(torch.uint8), tensor.view(torch.uint8))


def test_tensors_that_are_not_plain():
    wide = torch.arange(24.0).reshape(4, 6)
    odd = [
        wide.t(),
        wide[:, ::2],
        torch.complex(wide, wide).conj(),
        torch.complex(wide, wide).conj().imag,
        torch.ones(3, requires_grad=True),
        torch.tensor(5),
        torch.zeros(0, 3),
        torch.zeros(1, 1, 1, 1, 1, 1, 1, 1),
        wide.expand(2, 4, 6),
    ]
    shared = ullage.share(odd)
    for one, other in zip(shared, odd):
        assert same(one, other.detach().resolve_conj().resolve_neg()) and not one.requires_grad


def test_lists_of_one_shape_have_no_index():
    tensors = [torch.full((80,), float(i)) for i in range(1000)]
    shared = ullage.share(tensors)
    assert shared.nbytes < 1000 * 320 + 4096
    assert all(same(one, other) for one, other in zip(shared, tensors))
    mixed = [*tensors, torch.zeros(81)]
    again = ullage.share(mixed)
    assert all(same(one, other) for one, other in zip(again, mixed))
    assert ullage.share([tensors[0], None])[1] is None


def test_a_tensor_itself():
    tensor = torch.arange(100.0)
    shared = ullage.share(tensor)
    assert isinstance(shared, ullage.Shared) and same(shared, tensor)
    handle = ForkingPickler.dumps(shared)
    assert len(handle) < 600 and same(pickle.loads(handle), tensor)
    assert type(shared + 1) is torch.Tensor and type(shared[3:]) is torch.Tensor
    assert type(shared.to_python()) is torch.Tensor and same(shared.to_python(), tensor)
    file = io.BytesIO()
    torch.save(shared + 0, file)
    shared[0] = 7.0
    assert tensor[0] == 0.0


def test_a_tensor_keeps_the_pages():
    row = ullage.share([torch.arange(1000), 1])[0]
    numpy = row[10:].numpy()
    del row
    assert numpy.sum() == sum(range(10, 1000))


@pytest.mark.parametrize(
    "make, advice",
    [
        (lambda: torch.nn.Parameter(torch.ones(1)), "detach"),
        (lambda: torch.eye(3).to_sparse(), "layout"),
        (lambda: torch.ones(2, device="meta"), "on meta"),
        (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), "dense parts"),
    ],
)
def test_tensors_that_are_refused(make, advice):
    with pytest.raises(NotShareable, match=advice):
        ullage.share([1, make()])


def test_collate_makes_batches_of_records():
    rows = [{"x": torch.full((3,), float(i)), "label": i, "text": str(i), "box": [1.0, 2.0]} for i in range(4)]
    shared = ullage.share(rows)
    mine, theirs = default_collate(list(shared)), default_collate(rows)
    assert same(mine["x"], theirs["x"]) and same(mine["label"], theirs["label"]) and mine["text"] == theirs["text"]
    assert all(same(one, other) for one, other in zip(mine["box"], theirs["box"]))


class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, at):
        row = self.rows[at]
        return row["x"] * 2, row["label"]


ROWS = [{"x": torch.full((4,), float(i)), "label": i, "name": f"row {i}"} for i in range(100)]


@pytest.mark.parametrize(
    "method, ours",
    [(method, ours) for method in ("fork", "forkserver") for ours in (True, False)]
    + [pytest.param("spawn", ours, marks=pytest.mark.thorough) for ours in (True, False)]
    + [("zygote", True)],
)
def test_loaders(method, ours):
    context = ullage.context(method) if ours else method
    data = Rows(ullage.share(ROWS))
    loader = DataLoader(data, batch_size=10, num_workers=2, multiprocessing_context=context)
    for _ in range(2):
        seen = torch.cat([labels for _, labels in loader])
        assert same(seen, torch.arange(100))


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.thorough)])
def test_a_loader_over_shared_data_itself(method):
    shared = ullage.share([{"x": row["x"], "label": row["label"]} for row in ROWS])
    loader = DataLoader(shared, batch_size=10, num_workers=1, multiprocessing_context=ullage.context(method))
    assert same(torch.cat([batch["label"] for batch in loader]), torch.arange(100))
    tensors = TensorDataset(ullage.share(torch.arange(100.0)), ullage.share(torch.arange(100)))
    loader = DataLoader(tensors, batch_size=10, num_workers=1, multiprocessing_context=ullage.context(method))
    assert same(torch.cat([one for one, _ in loader]), torch.arange(100.0))
