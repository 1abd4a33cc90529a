"""Recordings get to storage and back as they are, each into a folder of its own, with a verdict that still counts."""

import json
import os

import pytest

from ullage import _fleet_store as store
from ullage.errors import Error

HOST = "n1"


@pytest.fixture(autouse=True)
def host(monkeypatch):
    monkeypatch.setattr("platform.node", lambda: HOST)


def recording(home, name, **facts):
    folder = home / name
    folder.mkdir(parents=True)
    run = {"run": name, "started_unix": 7.25, "recorder": None, "job": None, "node": None, "rank": None, **facts}
    for file, text in {
        "verdict.json": "{}",
        "run.json": json.dumps(run),
        "ticks-000001.parquet": "ticks",
        "tails.zst": "tails",
        "now.json": "{}",
        "run.json.tmp": " ",
    }.items():
        (folder / file).write_text(text)
    return folder


def below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    "value, folder",
    [
        ("4711_3", "4711_3"),
        ("../../etc", "..%2F..%2Fetc"),
        ("a=b%c", "a%3Db%25c"),
        ("x\ny\x7f\x85", "x%0Ay%7F%C2%85"),
        ("-", "%2D"),
        ("", "-"),
        (None, "-"),
        (3, "3"),
    ],
)
def test_values_are_encoded_as_the_command_does(value, folder):
    assert store._encoded(value) == folder


def test_long_values_are_cut_and_stay_apart():
    names = [store._encoded("/" * 199 + end) for end in "ab"]
    assert names[0] != names[1] and all(len(name.encode()) < 230 and "~" in name for name in names)


def test_without_pyarrow_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    recording(tmp_path, "a")
    with pytest.raises(Error, match=r"pip install ullage\[fleet\]"):
        store.push(tmp_path, "file:///nowhere")
    with pytest.raises(Error, match="no recording"):
        store.push(tmp_path / "none", "file:///nowhere")


@pytest.fixture(params=["file", "s3"])
def url(request, tmp_path, monkeypatch):
    """An empty place: a folder, or a bucket of a real server of moto's."""
    pytest.importorskip("pyarrow")
    if request.param == "file":
        yield f"file://{tmp_path}/storage"
        return
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0)
    server.start()
    _, port = server.get_host_and_port()
    for name, value in {
        "AWS_ACCESS_KEY_ID": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    options = f"scheme=http&endpoint_override=127.0.0.1%3A{port}&region=us-east-1&allow_bucket_creation=true"
    yield f"s3://bucket/{tmp_path.name}?{options}"
    server.stop()


def test_recordings_come_back_as_they_were(tmp_path, url):
    home, back = tmp_path / "home", tmp_path / "back"
    one = recording(home, "a", job="7", node="n064", rank=3, attempt=2)
    recording(home, "b")
    recording(home, "c", started_unix=8.5)
    pushed = store.push(home, url)
    wanted = [
        "job=7/node=n064/rank=3/attempt=2",
        f"job=-/node={HOST}/rank=-/attempt=0",
        f"job=-/node={HOST}/rank=-/attempt=1",
    ]
    assert [place.partition("job=")[2] for place in pushed] == [place.partition("job=")[2] for place in wanted]
    assert store.push(home, url) == pushed, "each has its folder"
    pulled = store.pull(url, back)
    assert sorted(os.path.relpath(place, back) for place in pulled) == sorted(wanted)
    names = ["run.json", "tails.zst", "ticks-000001.parquet", "verdict.json"]
    assert below(back) == sorted(f"{place}/{name}" for place in wanted for name in names)
    for name in names:
        assert (back / wanted[0] / name).read_text() == (one / name).read_text()
    times = [(back / wanted[0] / name).stat().st_mtime_ns for name in ("run.json", "verdict.json")]
    assert times[0] <= times[1]
    assert (back / wanted[0] / "run.json").stat().st_mode & 0o777 == 0o600


def test_what_was_merged_away_goes(tmp_path, url):
    home, back = tmp_path / "home", tmp_path / "back"
    folder = recording(home, "a")
    (place,) = store.push(folder, url)
    store.pull(url, back)
    (folder / "ticks-000002.parquet").write_text("more")
    (folder / "ticks-000001.parquet").unlink()
    (folder / "tails.zst").unlink()
    assert store.push(folder, url) == [place]
    (pulled,) = store.pull(url, back)
    assert sorted(os.listdir(pulled)) == ["run.json", "ticks-000002.parquet", "verdict.json"]


def test_a_fleet_keeps_its_folders(tmp_path, url):
    fleet, back = tmp_path / "fleet", tmp_path / "back"
    for attempt in (0, 1):
        recording(fleet, f"job=7/node=a%2Fb/rank=-/attempt={attempt}", started_unix=float(attempt), job="7", node="a/b")
    store.push(fleet, url)
    store.pull(url, back)
    assert [path for path in below(back) if path.endswith("run.json")] == [
        f"job=7/node=a%2Fb/rank=-/attempt={attempt}/run.json" for attempt in (0, 1)
    ]


def test_a_place_without_recordings_says_so(tmp_path, url):
    with pytest.raises(Error, match="no recording"):
        store.pull(url, tmp_path)
