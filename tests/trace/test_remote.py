"""Traces behind URLs are read as files are, and what goes wrong is one clear error without secrets."""

import sys
import time

import pytest
from tests.trace.served import odd, served, silent

from tracehunch.errors import ReadError
from tracehunch.trace import read, remote
from tracehunch.trace.source import load


def test_a_url_is_read_as_the_file_is(h200):
    pytest.importorskip("fsspec")
    folder = h200 / "seeds"
    with served(folder) as url:
        trace = read(f"{url}naive.json.gz?signature=secret")
        assert load(f"{url}naive.json.gz") == (
            memoryview((folder / "naive.json.gz").read_bytes()),
            "naive.json.gz",
        )
    assert trace.label == "naive.json.gz"
    assert trace.n_events == read(folder / "naive.json.gz").n_events


def test_a_url_of_a_file_needs_no_package(h200, monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    assert read((h200 / "seeds" / "naive.json.gz").as_uri()).label == "naive.json.gz"


def test_without_fsspec_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ReadError, match=r"needs the package fsspec.*pip install 'tracehunch\[remote\]'"):
        read("s3://bucket/trace.json")


def test_a_protocol_whose_package_is_missing_is_named(monkeypatch):
    pytest.importorskip("fsspec")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(ReadError, match="package s3fs: it is not installed; pip install s3fs"):
        read("s3://bucket/trace.json")


def test_errors_hold_no_password_and_no_signature():
    pytest.importorskip("fsspec")
    with pytest.raises(ReadError) as caught:
        read("http://me:password@127.0.0.1:1/trace.json?X-Signature=secret")
    assert "127.0.0.1:1/trace.json" in str(caught.value)
    assert "password" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_what_the_server_does_not_have(tmp_path):
    pytest.importorskip("fsspec")
    with served(tmp_path) as url, pytest.raises(ReadError, match="there is no such file"):
        read(url + "none.json")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("401", r"access was denied \(401\); check the credentials"),
        ("403", r"access was denied \(403\); check the credentials"),
        ("404", "cannot be opened: there is no such file; check the URL"),
        ("503", "the server says 503 Service Unavailable; check the URL"),
        ("503/404", "the server says 503 Service Unavailable; check the URL"),  # no answer's number
        ("again", "it redirects without end; check the URL"),
        ("again/:404", "it redirects without end; check the URL"),
        ("half", "cannot be read: the server's answer ended early"),
    ],
)
def test_what_a_server_answers_instead(kind, said):
    pytest.importorskip("fsspec")
    with odd() as url, pytest.raises(ReadError, match=said):
        read(f"{url}{kind}/rank0.json")


def test_many_calls_are_answered_in_their_order_and_a_failure_is_one_answer():
    def fails():
        raise PermissionError("a")

    one, two, three = remote.ask_all([("x://a", lambda: 1), ("x://b", fails), ("x://c", lambda: 3)])
    assert (one, three) == (1, 3)
    assert isinstance(two, ReadError)
    assert two.why == "access was denied"
    assert remote.ask_all([]) == []


def test_a_server_that_says_nothing(monkeypatch):
    pytest.importorskip("fsspec")
    monkeypatch.setattr(remote, "PATIENCE_S", 0.3)
    with silent() as url, pytest.raises(ReadError, match="does not answer"):
        read(url)


def test_a_slow_answer_is_waited_for_while_something_comes(monkeypatch):
    monkeypatch.setattr(remote, "PATIENCE_S", 0.05)
    heard = iter(range(1000))

    def slow():
        time.sleep(0.3)
        return "all"

    assert remote.ask("x://y", slow, heard=lambda: next(heard)) == "all"


def test_what_is_a_url_and_what_is_not():
    assert all(map(remote.is_url, ["s3://b/x", "hf://datasets/a/b", "zip://a::s3://b", "HTTPS://x/y"]))
    assert not any(map(remote.is_url, ["C:\\x", "C:/x", "a/b.json", "/a:b", "", "x:y"]))


def test_names_of_urls():
    assert remote.name_of("https://host/a/rank1.json.gz?x=1") == "rank1.json.gz"
    assert remote.name_of("zip://inner/rank2.json::s3://b/all.zip") == "rank2.json"
    assert remote.name_of("simplecache::s3://b/rank3.json") == "rank3.json"
    assert remote.shown_url("https://u:p@host/a\x1b.json?x=1") == "https://host/a\\x1b.json"
