"""Lines from a TCP connection, cut into numbered units that can be read again."""

from __future__ import annotations

import io
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from millstream.errors import SourceProblem, is_full
from millstream.io.contract import DAY, NO_LIMITS, Limits, Position, Reading, Unit
from millstream.io.read.base import LineReader
from millstream.io.staging import sync_directory

LINES_PER_UNIT = 10_000
MOST_WAITING = 1_000_000
"""Lines waiting to be taken; beyond this we stop receiving, and the peer feels it."""
LONGEST_LINE = 16 << 20
CLOSED = "closed"


class SocketSource:
    """Connects when first asked for data; when the peer closes, the stream ends.

    With a spool directory each unit is on disk before a position names it, so it can be read in any
    process and again after a crash. Without one a unit carries its lines, kept here until the position moves on.
    """

    def __init__(self, name: str, host: str, port: int, reader: LineReader, spool: str | None = None, limits: Limits = NO_LIMITS) -> None:
        self.name, self.host, self.port, self.reader, self.spool = name, host, port, reader, spool
        self.limits = limits
        self._start()

    def _start(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[bytes] = []
        self._units: dict[int, tuple[int, bytes | str]] = {}  # number -> first line, and the lines or the file that holds them
        self._next_unit, self._next_line = 0, 1
        self._socket: socket.socket | None = None
        self._closed = False
        self._failure: str | None = None
        self._found = False

    def hosted(self, directory: str, limits: Limits) -> SocketSource:
        """With a spool in this directory."""
        return SocketSource(self.name, self.host, self.port, self.reader, directory, limits)

    @property
    def bounded(self) -> bool:
        """True once the peer has closed."""
        return self._closed

    def check(self) -> None:
        """Look up the host only: a server that takes one connection must not spend it on a check."""
        try:
            socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise SourceProblem(f"stream {self.name}: no host {self.host}: {error.strerror}", hint="check `host`") from error

    def initial(self) -> Position:
        return {"units": 0}

    def _recall(self) -> None:
        """Find the units an earlier process left in the spool."""
        if self._found or self.spool is None:
            return
        self._found = True
        try:
            os.makedirs(self.spool, exist_ok=True)
            for file in sorted(os.listdir(self.spool)):
                if file == CLOSED:
                    self._closed = True
                elif file.endswith(".lines"):
                    number, first, count = (int(part) for part in file[:-6].split("-"))
                    self._units[number] = first, os.path.join(self.spool, file)
                    self._next_unit, self._next_line = number + 1, first + count
        except OSError as error:
            raise SourceProblem(f"stream {self.name}: can not use the spool {self.spool}: {error.strerror}") from error

    def _connect(self) -> None:
        self._recall()
        if self._socket is not None or self._closed:
            return
        try:
            self._socket = socket.create_connection((self.host, self.port), timeout=10)
            self._socket.settimeout(None)
        except OSError as error:
            why = error.strerror or str(error)
            hint = "start the server first, or check `host` and `port`"
            raise SourceProblem(
                f"stream {self.name}: can not connect to {self.host}:{self.port}: {why}",
                hint=hint,
                passing=True,
            ) from error
        threading.Thread(
            target=self._receive, args=(self._socket,), name=f"socket {self.name}", daemon=True
        ).start()

    def _receive(self, connection: socket.socket) -> None:
        rest = b""
        failure = None
        try:
            while chunk := connection.recv(1 << 16):
                *lines, rest = (rest + chunk).split(b"\n")
                if len(rest) > LONGEST_LINE:
                    failure = f"a line is longer than {LONGEST_LINE >> 20} MB"
                    break
                with self._changed:
                    self._waiting.extend(lines)
                    self._changed.notify_all()
                    while len(self._waiting) >= MOST_WAITING and self._socket is not None:
                        self._changed.wait(1.0)
        except OSError as error:
            failure = error.strerror or str(error)
        with self._changed:
            if self._socket is None:
                return  # closed by us
            if rest and failure is None:
                self._waiting.append(rest)
            self._failure = failure
            self._closed = failure is None
            self._changed.notify_all()

    def latest(self, start: Position, limit: int | None) -> Position:
        self._connect()
        first = int(start["units"])
        with self._changed:
            if self.spool is None:
                for number in [n for n in self._units if n < first]:
                    del self._units[number]
            self._next_unit = max(self._next_unit, first)
            most = None if limit is None else first + limit
            size = min(LINES_PER_UNIT, self.limits.tuples or LINES_PER_UNIT)
            while self._waiting and (most is None or self._next_unit < most):
                lines, self._waiting = self._waiting[:size], self._waiting[size:]
                self._keep(lines)
            self._changed.notify_all()
            if self._failure is not None and not self._waiting and first >= self._next_unit:
                said = f"stream {self.name}: the connection to {self.host}:{self.port} broke: {self._failure}"
                raise SourceProblem(said, hint="run again", passing=True)
            if self._closed and self.spool is not None and not self._waiting:
                self._write(os.path.join(self.spool, CLOSED), b"")
            end = self._next_unit if most is None else max(first, min(most, self._next_unit))
            return {"units": first + self.limits.fitting(self._size(number) for number in range(first, end))}

    def _size(self, number: int) -> tuple[int, int | None]:
        """Bytes and lines of a unit."""
        if number not in self._units:
            return 0, 0  # let go
        line, kept = self._units[number]
        after = self._units[number + 1][0] if number + 1 in self._units else self._next_line
        return len(kept) if isinstance(kept, bytes) else os.path.getsize(kept), after - line

    def _keep(self, lines: list[bytes]) -> None:
        text = b"\n".join(lines) + b"\n"
        number, first = self._next_unit, self._next_line
        kept: bytes | str = text
        if self.spool is not None:
            kept = os.path.join(self.spool, f"{number:010d}-{first}-{len(lines)}.lines")
            self._write(kept, text)
        self._units[number] = first, kept
        self._next_unit, self._next_line = number + 1, first + len(lines)

    def _write(self, path: str, text: bytes) -> None:
        if os.path.exists(path):
            return
        try:
            with open(path + ".tmp", "wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(path + ".tmp", path)
            sync_directory(os.path.dirname(path))
        except OSError as error:
            raise SourceProblem(
                f"stream {self.name}: can not write the spool {path}: {error.strerror}",
                passing=is_full(error),
            ) from error

    def units(self, start: Position, end: Position) -> list[Unit]:
        self._recall()
        units = []
        for number in range(int(start["units"]), int(end["units"])):
            if number not in self._units:
                hint = "a socket can only be read again from a spool" if self.spool is None else None
                raise SourceProblem(f"stream {self.name}: unit {number} is not kept any more", hint=hint)
            first, kept = self._units[number]
            units.append(Unit(number, {"first": first, "file" if isinstance(kept, str) else "lines": kept}))
        return units

    def read(self, unit: Unit, batch_size: int) -> Iterator[Reading]:
        where = f"{self.host}:{self.port}"
        text = unit.detail.get("lines")
        if text is None:
            try:
                with open(unit.detail["file"], "rb") as file:
                    text = file.read()
            except OSError as error:
                raise SourceProblem(f"stream {self.name}: can not read the spool {unit.detail['file']}: {error.strerror}") from error
        yield from self.reader.read(io.BytesIO(text), where, batch_size, unit.detail["first"])

    def arrived(self, unit: Unit) -> int | None:
        return None

    @property
    def ahead(self) -> int | None:
        """Lines that come over a wire hold the present, in the zone of the sender's clock."""
        return DAY

    def finished(self, position: Position) -> bool:
        self._recall()
        with self._changed:
            return self._closed and not self._waiting and int(position["units"]) >= self._next_unit

    def release(self, position: Position) -> None:
        """Let go of the units before this position; the last one stays to say where numbering goes on."""
        with self._changed:
            for number in [n for n in self._units if n < min(int(position["units"]), self._next_unit - 1)]:
                kept = self._units.pop(number)[1]
                if isinstance(kept, str) and os.path.exists(kept):
                    os.unlink(kept)

    def close(self) -> None:
        with self._changed:
            connection, self._socket = self._socket, None
            self._changed.notify_all()
        if connection is not None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def __getstate__(self) -> dict[str, Any]:
        return {key: getattr(self, key) for key in ("name", "host", "port", "reader", "spool", "limits")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()
