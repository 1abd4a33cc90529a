"""A part of tests/batches_side_by_side.py: what arrives through the arena is what torch would hand over."""

import pathlib
import sys

import pytest

pytest.importorskip("torch")
np = pytest.importorskip("numpy")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tests"))

import batches_side_by_side as side  # noqa: E402

from ullage import _pickling  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(("method", "each"), [("fork", 1), pytest.param("spawn", 3, marks=pytest.mark.thorough)])
def test_batches_and_datasets_arrive_as_torch_hands_them_over(method, each):
    names = list(side.KINDS)[::each]
    count, differences = side.compare(method, names)
    assert count >= len(names) and differences == []


def test_a_seeded_difference_is_found(monkeypatch):
    def _array(number, dtype, shape, order):
        return side.read_only(np.zeros(shape, dtype))

    _array.__module__, _array.__qualname__ = "ullage._pickling", "_array"
    monkeypatch.setattr(_pickling, "_array", _array)
    _, differences = side.compare("fork", ["numpy f8", "numpy, empty"], {})
    assert [line.partition("\n")[0] for line in differences] == [
        "fork, batch, numpy f8: flags",
        "fork, batch, numpy f8: values",
    ]


def test_what_may_differ_stands_in_the_guide():
    guide = side.GUIDE.read_text()
    assert [words for words in side.ALLOWED.values() if words not in guide] == []
