"""Folders, patterns and URLs: what may be a trace is found, what is not is counted, what fails is said."""

import gzip
import json
import os

import pytest
from tests.trace.served import served, silent

from tracehunch.trace import discover as module
from tracehunch.trace import remote, remote_folder
from tracehunch.trace.discover import Missed, discover, natural

TEXT = json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": []})


def names(found):
    return [source.shown.rsplit("/", 1)[-1] for source in found.sources]


@pytest.fixture
def folder(tmp_path):
    for name in ("rank10.json", "rank2.json", "below/rank1.json.gz"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(TEXT.encode()) if name.endswith("gz") else TEXT.encode())
    (tmp_path / "metrics.json").write_text('{"loss": 1}')
    (tmp_path / "notes.txt").write_text(TEXT)
    (tmp_path / ".rank3.json").write_text(TEXT)
    return tmp_path


def test_a_folder_is_read_with_what_is_below_it_in_the_order_of_numbers(folder):
    found = discover([folder])
    assert names(found) == ["rank1.json.gz", "rank2.json", "rank10.json"]
    assert found.missed == ()
    said = "3 of 6 files passed over as no traces: 1 JSON without a trace, 1 hidden, 1 not named *.json"
    assert [notice.message for notice in found.notices] == [said]
    assert all(source.bytes == os.stat(source.place).st_size for source in found.sources)  # noqa: PTH116  # places are strings
    assert all(os.path.isabs(source.place) for source in found.sources)  # noqa: PTH117  # places are strings


def test_thousands_of_other_files_are_counted_and_not_listed(tmp_path):
    for at in range(10_000):
        (tmp_path / f"{at}.{('log', 'json')[at % 10 == 0]}").touch()
    (tmp_path / "rank0.json").write_text(TEXT)
    found = discover([tmp_path])
    assert names(found) == ["rank0.json"]
    assert [notice.message for notice in found.notices] == [
        "10,000 of 10,001 files passed over as no traces: 1,000 empty, 9,000 not named *.json"
    ]


def test_a_file_that_is_named_is_taken_whatever_it_holds(folder):
    assert names(discover([folder / "notes.txt", str(folder / "metrics.json")])) == [
        "metrics.json",
        "notes.txt",
    ]


def test_patterns(folder):
    assert names(discover([f"{folder}/rank*.json"])) == ["rank2.json", "rank10.json"]
    assert names(discover([f"{folder}/**/rank1*"])) == ["rank1.json.gz", "rank10.json"]
    assert names(discover([f"{folder}/bel*"])) == ["rank1.json.gz"]  # a folder matches
    assert discover([f"{folder}/*.zip"]).missed[0].what == "no file matches"
    (folder / "rank[0].json").write_text(TEXT)
    assert names(discover([f"{folder}/rank[0].json"])) == ["rank[0].json"]  # a name before a pattern


def test_a_folder_whose_name_looks_like_a_pattern_is_taken_by_name(tmp_path):
    for name in ("run [1]*", "run 1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rank0.json").write_text(TEXT)
    [source] = discover([f"{tmp_path}/run [1]*/*.json"]).sources
    assert source.place == str(tmp_path / "run [1]*" / "rank0.json")
    [source] = discover([f"{tmp_path}/run [1]/*.json"]).sources  # there is no such folder: a pattern
    assert source.place == str(tmp_path / "run 1" / "rank0.json")


def test_the_same_file_twice_is_read_once(folder):
    (folder / "again.json").symlink_to(folder / "rank2.json")
    found = discover([folder, folder / "rank2.json"])
    assert len(found.sources) == 3
    assert "named more than once" in found.notices[-1].message


def test_links_that_lead_in_a_circle_end(folder):
    (folder / "below" / "up").symlink_to(folder)
    (folder / "other").symlink_to(folder / "below")
    assert len(discover([folder]).sources) == 3


def test_a_link_to_itself_costs_only_itself(folder):
    (folder / "circle").symlink_to("circle")
    (folder / "rank5.json").symlink_to("rank5.json")
    found = discover([folder])
    assert names(found) == ["rank1.json.gz", "rank2.json", "rank10.json"]
    assert {one.shown.rsplit("/", 1)[-1] for one in found.missed} == {"circle", "rank5.json"}


def test_what_is_not_there_is_said_and_the_rest_goes_on(folder):
    (folder / "rank4.json").symlink_to("nowhere")
    os.mkfifo(folder / "rank5.json")
    found = discover([folder, folder / "none.json", folder / "rank5.json", "-", ""])
    assert len(found.sources) == 3
    assert [(one.shown.removeprefix(str(folder)), one.what) for one in found.missed] == [
        ("/rank4.json", "cannot be opened"),
        ("/none.json", "cannot be opened"),
        ("/rank5.json", "is no regular file"),
        ("-", "standard input is not read here"),
        ("''", "the path is empty"),
    ]


def test_places_that_may_not_be_read(folder, monkeypatch):
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("below"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(module.os, "scandir", refuse)  # to root nothing is forbidden
    found = discover([folder])
    assert names(found) == ["rank2.json", "rank10.json"]
    assert found.missed == (Missed(str(folder / "below"), "the folder cannot be read", "permission denied"),)


def test_many_failures_of_one_kind_are_counted(tmp_path):
    found = discover([tmp_path / f"rank{at}.json" for at in range(30)])
    assert len(found.missed) == 8
    assert [(notice.message, notice.lossy) for notice in found.notices] == [
        ("cannot be opened (there is no such file): 22 more", True)
    ]


def test_names_of_any_kind(tmp_path):
    for name in ("a\x1b[31m\n.json", "b%s 'q\" é.json", os.fsdecode(b"c\xff.json")):
        (tmp_path / name).write_text(TEXT)
    found = discover([tmp_path])
    assert len(found.sources) == 3
    assert all(source.shown.encode() and "\x1b" not in source.shown for source in found.sources)
    assert all(os.path.exists(source.place) for source in found.sources)  # noqa: PTH110  # places are strings


def test_numbers_in_names_are_numbers():
    assert sorted(["r10", "r9", "r", "r9a2", "r9a10", "9"], key=natural) == [
        "9",
        "r",
        "r9",
        "r9a2",
        "r9a10",
        "r10",
    ]
    assert natural("9" * 5000)


def test_a_file_url_is_a_path(folder):
    assert names(discover([folder.as_uri(), (folder / "metrics.json").as_uri()])) == [
        "rank1.json.gz", "metrics.json", "rank2.json", "rank10.json",
    ]  # fmt: skip


def test_folders_patterns_and_files_behind_urls(folder):
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    for path in folder.rglob("*.*"):
        system.pipe(f"/job/{path.relative_to(folder)}", path.read_bytes())
    try:
        found = discover(["memory://job"])
        assert names(found) == ["rank1.json.gz", "rank2.json", "rank10.json"]
        assert found.sources[0].place == "memory:///job/below/rank1.json.gz"
        assert found.notices[0].message.startswith("3 of 6 files passed over")
        assert names(discover(["memory://job/rank*.json"])) == ["rank2.json", "rank10.json"]
        assert names(discover(["memory://job/metrics.json"])) == ["metrics.json"]
        assert discover(["memory://job/none"]).missed[0].why.startswith("there is no such file")
    finally:
        system.rm("/job", recursive=True)


def test_a_folder_behind_http(folder):
    pytest.importorskip("fsspec")
    with served(folder) as url:
        found = discover([url])
        assert names(found) == ["rank1.json.gz", "rank2.json", "rank10.json"]
        assert found.notices[0].message.startswith("3 of 6 files passed over")
        sizes = [(folder / one.shown.removeprefix(url)).stat().st_size for one in found.sources]
        assert [one.bytes for one in found.sources] == sizes
        assert names(discover([f"{url}rank*.json"])) == ["rank2.json", "rank10.json"]
        assert names(discover([url + "rank2.json"])) == ["rank2.json"]
        assert [one.why.split(";")[0] for one in discover([url + "none.json"]).missed] == [
            "there is no such file"
        ]


class Pages:
    """Answers as fsspec does for pages: one below fails, one links back and elsewhere."""

    def ls(self, page, *, detail):
        assert not detail
        if page.endswith("bad/"):
            raise PermissionError(page)
        if page.endswith("rank9/"):
            return [page + "rank9.json", "http://h/job/", "http://other/x.json"]
        return [page + "rank1.json", page + "?C=N;O=D", page + "bad/", page + "rank9/"]


def test_pages_below_a_page_are_followed_and_one_that_fails_is_left_to_the_reader():
    linked = list(remote_folder._linked(Pages(), "http://h/job/"))
    assert sorted(linked) == ["http://h/job/bad", "http://h/job/rank1.json", "http://h/job/rank9/rank9.json"]


def test_a_url_that_does_not_answer_is_said_and_the_rest_goes_on(folder, monkeypatch):
    pytest.importorskip("fsspec")
    monkeypatch.setattr(remote, "PATIENCE_S", 0.3)
    with silent() as url:
        found = discover([url, folder])
    assert len(found.sources) == 3
    assert found.missed == (
        Missed(url, "does not answer", "nothing came for 0.3 seconds; check the URL and the network"),
    )


def test_a_url_of_an_unknown_kind():
    pytest.importorskip("fsspec")
    assert discover(["nosuch://a/b"]).missed[0].what == "nosuch:// cannot be read here"
