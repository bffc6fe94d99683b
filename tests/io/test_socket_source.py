"""Lines over real sockets on this machine."""

import os
import pickle
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from millstream.errors import SourceProblem
from millstream.io import SocketSource, open_source
from millstream.io import sockets as sockets_module
from millstream.io.contract import Limits
from tests.io.kit import Answer, schema

A = schema("a BIGINT")


class Server:
    """Accepts one connection and says what it is told to."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.peer: socket.socket | None = None
        self.accepted = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        try:
            while True:
                peer, _ = self.listener.accept()
                if self.peer is not None:
                    self.peer.close()
                self.peer, self.accepted = peer, self.accepted + 1
        except OSError:
            pass

    def say(self, text: str) -> None:
        wait_for(lambda: self.peer is not None)
        assert self.peer is not None
        self.peer.sendall(text.encode())

    def hang_up(self) -> None:
        wait_for(lambda: self.peer is not None)
        assert self.peer is not None
        self.peer.close()

    def close(self) -> None:
        self.listener.close()
        if self.peer is not None:
            self.peer.close()


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    yield one
    one.close()


def wait_for(condition: Callable[[], bool], seconds: float = 10) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.005)


def open_socket(server: Server, **options: str) -> SocketSource:
    source = open_source("S", A, {"connector": "socket", "port": str(server.port), **options}, None)
    assert isinstance(source, SocketSource)
    return source


def values(source: SocketSource, start: int, end: int) -> Answer:
    units = source.units({"units": start}, {"units": end})
    assert [unit.number for unit in units] == list(range(start, end))
    other = pickle.loads(pickle.dumps(source))  # another process
    return Answer([r for unit in pickle.loads(pickle.dumps(units)) for r in other.read(unit, 100)], A)


@pytest.mark.parametrize("spooled", [False, True])
def test_what_arrives_is_cut_into_units_and_the_end_is_seen(server: Server, tmp_path: Path, spooled: bool) -> None:
    source = open_socket(server)
    if spooled:
        source = source.hosted(str(tmp_path / "spool"), Limits())
    source.check()
    assert source.latest({"units": 0}, None) == {"units": 0} and not source.bounded
    server.say('{"a":1}\n{"a":2}\n{"a":')
    wait_for(lambda: source.latest({"units": 0}, None)["units"] == 1)
    assert values(source, 0, 1).rows == [(1,), (2,)]
    server.say('3}\nbroken\n{"a":4}')
    wait_for(lambda: source.latest({"units": 0}, None)["units"] >= 2)
    server.hang_up()
    wait_for(lambda: source.bounded)
    end = source.latest({"units": 1}, None)["units"]
    answer = values(source, 1, end)
    assert answer.rows == [(3,), (4,)] and answer.lines == [3, 5]
    assert answer.letters[0].line == 4 and answer.letters[0].file == f"127.0.0.1:{server.port}"
    assert source.finished({"units": end}) and not source.finished({"units": end - 1})
    source.close()


def test_limit_and_big_bursts(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets_module, "LINES_PER_UNIT", 10)
    monkeypatch.setattr(sockets_module, "MOST_WAITING", 50)
    source = open_socket(server, format="csv")
    source.latest({"units": 0}, None)
    server.say("".join(f"{i}\n" for i in range(1000)))
    server.hang_up()
    position, rows = 0, []
    while not source.finished({"units": position}):
        end = source.latest({"units": position}, 2)["units"]
        assert position <= end <= position + 2
        rows += values(source, position, end).rows
        position = end
    assert rows == [(i,) for i in range(1000)] and position >= 100
    source.close()


def test_a_spool_survives_the_process(server: Server, tmp_path: Path) -> None:
    spool = str(tmp_path / "spool")
    source = open_socket(server).hosted(spool, Limits())
    source.latest({"units": 0}, None)
    server.say('{"a":1}\n')
    wait_for(lambda: source.latest({"units": 0}, None)["units"] == 1)
    server.say('{"a":2}\n')
    wait_for(lambda: source.latest({"units": 1}, None)["units"] == 2)
    source.close()
    again = open_socket(server).hosted(spool, Limits())  # after a crash
    assert values(again, 0, 2).rows == [(1,), (2,)]
    assert again.latest({"units": 0}, 1) == {"units": 1}
    wait_for(lambda: server.accepted == 2)
    server.say('{"a":3}\n')
    server.hang_up()
    wait_for(lambda: again.bounded)
    assert again.latest({"units": 2}, None) == {"units": 3} and values(again, 0, 3).lines == [1, 2, 3]
    again.release({"units": 2})
    assert len([name for name in os.listdir(spool) if name.endswith(".lines")]) == 1
    with pytest.raises(SourceProblem, match="unit 0 is not kept"):
        again.units({"units": 0}, {"units": 1})
    again.close()
    third = open_socket(server).hosted(spool, Limits())  # the peer had closed: no new connection
    assert third.latest({"units": 2}, None) == {"units": 3} and third.finished({"units": 3}) and server.accepted == 2


def test_without_a_spool_units_go_when_the_position_moves_on(server: Server) -> None:
    source = open_socket(server)
    source.latest({"units": 0}, None)
    server.say('{"a":1}\n')
    wait_for(lambda: source.latest({"units": 0}, None)["units"] == 1)
    source.latest({"units": 1}, None)
    with pytest.raises(SourceProblem, match="only be read again from a spool"):
        source.units({"units": 0}, {"units": 1})
    source.close()


def test_refused_and_unknown_hosts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    source = open_source("S", A, {"connector": "socket", "port": str(port)}, None)
    source.check()
    with pytest.raises(SourceProblem, match=f"can not connect to 127.0.0.1:{port}: .*refused; start the server first"):
        source.latest(source.initial(), None)
    with pytest.raises(SourceProblem, match="no host"):
        open_source("S", A, {"connector": "socket", "port": "1", "host": "no such host"}, None).check()


def test_a_broken_connection_is_no_end(server: Server) -> None:
    source = open_socket(server)
    source.latest({"units": 0}, None)
    server.say('{"a":1}\n')
    wait_for(lambda: source.latest({"units": 0}, None)["units"] == 1)
    assert server.peer is not None
    import struct

    server.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # reset instead of a farewell
    server.peer.close()

    def broken() -> bool:
        try:
            source.latest({"units": 1}, None)
        except SourceProblem as error:
            return "broke" in str(error)
        return False

    wait_for(broken)
    assert not source.finished({"units": 1})
    source.close()
