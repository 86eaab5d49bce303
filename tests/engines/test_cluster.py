"""What answers at the address of a scheduler: one, none, a stranger, somebody who says nothing."""

import socket
import threading

import pytest

from tracehunch.engines import cluster
from tracehunch.errors import TracehunchError

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.xdist_group("dask")


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    monkeypatch.setattr(cluster, "ANSWER_S", 60)  # who answers may be slow to


@pytest.fixture
def _impatient(monkeypatch, _patient):
    monkeypatch.setattr(cluster, "ANSWER_S", 0.3)


def said(address):
    with pytest.raises(TracehunchError) as caught:
        cluster._probe(address)
    return str(caught.value)


def address_of(server):
    return f"tcp://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.usefixtures("_impatient")
def test_nothing_is_there():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = address_of(server)
    assert f"scheduler {address} does not answer" in said(address)


@pytest.mark.usefixtures("_impatient")
def test_somebody_takes_connections_and_says_nothing():
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert "does not answer: nothing came for 0.3 seconds" in said(address_of(server))


def test_a_stranger_answers():
    def answer():
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            while connection.recv(65_536):  # closed before all is read, it would be reset
                pass

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer, daemon=True).start()
        assert " is none: what answers there speaks another language" in said(address_of(server))


@pytest.mark.parametrize("kind", ["Worker", "Nanny"])
def test_a_worker_is_no_scheduler(kind, monkeypatch):
    async def identity(_address):
        return {"type": kind}

    monkeypatch.setattr(cluster, "_identity", identity)
    assert f"is none: a Dask {kind.lower()} answers there" in said("tcp://127.0.0.1:1")


def test_tls_that_is_not_set_up():
    assert "is none: TLS expects a `ssl_context`" in said("tls://127.0.0.1:1")


@pytest.mark.parametrize("address", ["nonsense", "foo://127.0.0.1:1", ""])
def test_what_is_no_address(address):
    assert f"scheduler {address or repr(address)} is no address" in said(address)
