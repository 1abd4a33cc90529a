"""What memory the agent sees behind objects of Arrow and Pillow, which tell neither Python nor its collector of it."""

import gc
import sys

import pytest

import agent_parts
import receiver

ROWS = 100_000


@pytest.fixture
def part():
    return agent_parts.common(receiver.library()).load


@pytest.fixture
def arrow():
    return pytest.importorskip("pyarrow")


def table_of(arrow, number=0):
    return arrow.table({"number": arrow.array(range(number, number + ROWS), arrow.int64())})


def test_a_slice_of_a_table_keeps_the_whole_and_shows_its_own_rows(part, arrow):
    libraries, table = part("libraries"), table_of(arrow)
    (places, shown), whole = (libraries.memory_of(one, type(one)) for one in (table.slice(10, 100), table))
    assert sum(places.values()) == table.get_total_buffer_size() >= 8 * ROWS and shown == 800
    assert whole == (places, 8 * ROWS)
    for one in (table.to_batches()[0], table["number"], table["number"].chunk(0)):
        assert libraries.memory_of(one, type(one))[0] == places


def test_what_lies_in_a_mapped_file_is_not_the_process_own(part, arrow, tmp_path):
    libraries, table = part("libraries"), table_of(arrow)
    with arrow.ipc.new_stream(str(tmp_path / "numbers.arrow"), table.schema) as stream:
        stream.write_table(table)
    mapped = arrow.ipc.open_stream(arrow.memory_map(str(tmp_path / "numbers.arrow"))).read_all()
    read = arrow.ipc.open_stream((tmp_path / "numbers.arrow").read_bytes()).read_all()
    assert libraries.memory_of(mapped, type(mapped)) is None
    assert libraries.memory_of(read, type(read))[1] >= 8 * ROWS
    # Of a table of both, what is its own; to ask for what it shows would read the file.
    for both in (
        arrow.concat_tables([table_of(arrow), mapped]),
        arrow.concat_tables([mapped, table_of(arrow)]),
        mapped.add_column(0, "own", table_of(arrow)["number"]),
        mapped.append_column("own", table_of(arrow)["number"]),
    ):
        places, shown = libraries.memory_of(both, type(both))
        assert sum(places.values()) == shown == pytest.approx(8 * ROWS, rel=0.1)


@pytest.mark.parametrize("first", [True, False])
def test_columns_that_are_added_weigh_beside_those_that_are_shared(part, arrow, first):
    base, kept = table_of(arrow), []
    for number in range(12):
        place = 0 if first else 1
        kept.append(
            base.slice(number, ROWS // 2).add_column(
                place, "own", table_of(arrow, number)["number"].slice(0, ROWS // 2)
            )
        )
    found = part("contents").Contents().into(kept, list)
    assert found["bytes"] == pytest.approx(13 * 8 * ROWS, rel=0.25)
    whole = sum(part("weigh").weigh(kept).values())
    assert whole == pytest.approx(13 * 8 * ROWS, rel=0.25)


def test_dictionaries_that_batches_share_weigh_once(part, arrow):
    words = arrow.array([f"{number:0100}" for number in range(20_000)])
    indices = [arrow.array([number % 20_000] * 1000, arrow.int32()) for number in range(20)]
    batches = [
        arrow.record_batch({"word": arrow.DictionaryArray.from_arrays(one, words), "number": one}) for one in indices
    ]
    found = part("contents").Contents().into(batches, list)
    assert found["bytes"] == pytest.approx(words.get_total_buffer_size(), rel=0.25)


def test_of_nothing_and_of_a_program_s_own_types_nothing_is_said(part, arrow):
    class ImagingCore:
        size, mode = (640, 480), "RGB"

    class Table:
        def get_total_buffer_size(self):
            raise SystemExit

    libraries = part("libraries")
    empty = arrow.table({"number": arrow.chunked_array([], arrow.int64())})
    for one in (ImagingCore(), Table(), empty, arrow.table({}), [], "text"):
        assert libraries.memory_of(one, type(one)) is None


def test_kept_slices_weigh_the_tables_that_they_keep_once_each(part, arrow):
    kept = []
    for number in range(12):
        table = table_of(arrow, number)
        kept += [table.slice(start, 100) for start in range(0, 1000, 100)]
    found = part("contents").Contents().into(kept, list)
    assert found["bytes"] == pytest.approx(12 * 8 * ROWS, rel=0.25) and found["views"] == 1.0
    assert found["own_bytes"] < 0.1 * found["bytes"] and found["element"] == "pyarrow.lib.Table"


def test_what_lies_beside_tables_in_a_tuple_stands_for_none(part, arrow):
    kept = [(table_of(arrow, 2 * number), table_of(arrow, 2 * number + 1), "name", 3, "path") for number in range(12)]
    found = part("contents").Contents().into(kept, list)
    assert found["bytes"] == pytest.approx(24 * 8 * ROWS, rel=0.25) and found["own_bytes"] > 0.8 * found["bytes"]


def test_more_than_its_parts_no_list_of_them_weighs(part, arrow):
    words = arrow.array([f"{number:0100}" for number in range(20_000)])
    one = arrow.array([0] * 1000, arrow.int32())
    batches = [arrow.record_batch({"word": arrow.DictionaryArray.from_arrays(one, words)}) for _ in range(1000)]
    for kept in (batches, [("name", batch) for batch in batches]):
        shards = {"train": kept, "test": []}
        assert sum(part("weigh").weigh(kept).values()) == pytest.approx(words.get_total_buffer_size(), rel=0.25)
        assert part("contents").Contents().into(shards, dict)["bytes"] < 2 * words.get_total_buffer_size()


def test_of_very_many_columns_nothing_is_said(part, arrow):
    libraries, wide = part("libraries"), arrow.table({str(number): [0.5] * 10 for number in range(400)})
    assert libraries.memory_of(wide, type(wide)) is None
    many = arrow.chunked_array([[1.0]] * 400)
    assert libraries.memory_of(many, type(many)) is None


def test_batches_of_one_table_weigh_it_once(part, arrow):
    batches = table_of(arrow).to_batches(max_chunksize=100)
    assert sum(part("weigh").weigh(batches).values()) == pytest.approx(8 * ROWS, rel=0.2)
    tables = [table_of(arrow, number) for number in range(100)]
    assert sum(part("weigh").weigh(tables).values()) == pytest.approx(100 * 8 * ROWS, rel=0.2)


def test_columns_of_nothing_do_not_make_all_tables_one(part, arrow):
    libraries = part("libraries")
    columns = {"none": [None] * ROWS, "empty": [""] * ROWS, "number": list(range(ROWS))}
    told = [libraries.memory_of(one, type(one)) for one in (arrow.table(columns), arrow.table(columns))]
    assert not set(told[0][0]) & set(told[1][0]) and told[0][1] == told[1][1] > 8 * ROWS
    chunked = arrow.concat_tables([table_of(arrow).slice(0, 0), table_of(arrow)])
    assert libraries.memory_of(chunked, type(chunked))[1] >= 8 * ROWS


def test_a_program_with_an_extension_type_of_its_own_is_asked_nothing(part, arrow):
    libraries = part("libraries")
    table = table_of(arrow)
    assert libraries.memory_of(table, type(table)) is not None

    class Own(arrow.ExtensionType):
        def __arrow_ext_serialize__(self):
            raise SystemExit

    libraries._learn()
    assert libraries.memory_of(table, type(table)) is None
    del Own
    gc.collect()


def test_a_list_of_images_weighs_their_pixels(part):
    image = pytest.importorskip("PIL.Image")
    kept = [{"image": image.new(mode, (640, 480))} for mode in ("RGB", "L") for _ in range(8)]
    kept.append({"image": image.new("RGB", (0, 480))})
    pixels = 8 * 640 * 480 * (4 + 1)
    assert sum(part("weigh").weigh(kept).values()) == pytest.approx(pixels, rel=0.02)
    assert part("contents").Contents().into(kept, list)["bytes"] == pytest.approx(pixels, rel=0.02)
    assert "PIL" in sys.modules
