"""CSV: cells are split by Arrow where the quotes are regular and by hand where not; `values` turns them into values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from millstream.core.types import Int64s
from millstream.errors import SourceProblem
from millstream.io.contract import DeadLetter, Reading
from millstream.io.read.base import Raw, broken, pieces
from millstream.io.read.csv_records import Cell, layout, record_at
from millstream.io.read.values import convert, is_bytes, is_text

CHUNK = 4 << 20
LONGEST = 16 << 20
"""A quote that is not closed within this many bytes is taken for a stray one."""
Content = Callable[[int], bytes]
BLANK: tuple[Cell, ...] = ((b"", False),)


@dataclass(frozen=True)
class CsvReader:
    """Columns are matched by the header's names, or by order without a header; `null_value` unquoted is null."""

    stream: str
    schema: pa.Schema
    header: bool = True
    delimiter: str = ","
    quote: str = '"'
    null_value: str = ""
    careful_only: bool = False  # for tests: never take the fast path

    def read(self, raw: Raw, file: str, batch_size: int, first_line: int = 1) -> Iterator[Reading]:
        """Take as many whole records as the text holds, then read more."""
        task = _Task(self, file, list(range(len(self.schema))), len(self.schema))
        text, line, head, last = b"", first_line, self.header, False
        while not last:
            more = raw.read(CHUNK)
            if not text and line == first_line:
                more = more.removeprefix(b"\xef\xbb\xbf")
            text, last = text + more, not more
            if last and text and not text.endswith(b"\n"):
                text += b"\n"
            while head and text:
                record = record_at(text, 0, self.delimiter.encode(), self.quote.encode() or None, last)
                if record is None:
                    break
                line += text.count(b"\n", 0, record.end)
                text = text[record.end :]
                if record.cells != BLANK:
                    task.header([cell.decode("utf-8", "replace") for cell, _ in record.cells])
                    head = False
            if head:
                continue
            used = 0
            for part in task.parts(text, line, last):
                used += part.size
                line += part.newlines
                yield from pieces(part.batch, part.lines, part.letters, file, batch_size)
            text = text[used:]

    def head(self, raw: Raw) -> bytes:
        """The text of a file up to the end of its header, which a stretch further down needs; nothing without a header."""
        text, at, last = b"", 0, False
        while self.header and not last:
            more = raw.read(CHUNK)
            text, last = text + more, not more
            start = at or (3 if text.startswith(b"\xef\xbb\xbf") else 0)
            while (record := record_at(text, start, self.delimiter.encode(), self.quote.encode() or None, last)) is not None:
                if record.cells != BLANK:
                    return text[: record.end]
                if record.end >= len(text):
                    break
                start = record.end
            at = start
        return b""


@dataclass(frozen=True)
class _Part:
    size: int
    newlines: int
    batch: pa.RecordBatch
    lines: Int64s
    letters: list[DeadLetter]


@dataclass
class _Task:
    """Reading one file: which field of a record each column comes from."""

    reader: CsvReader
    file: str
    fields: list[int]
    width: int

    def header(self, names: list[str]) -> None:
        plain = [name.strip().lower() for name in names]
        self.fields, self.width = [], len(names)
        for column in self.reader.schema.names:
            count = plain.count(column.lower())
            if count != 1:
                problem = "no column" if count == 0 else "more than one column"
                there = ", ".join(f"`{n.strip()}`" for n in names[:12])
                hint = f"its header has {there}; header = false reads columns by order"
                if not all(n.isprintable() for n in names):
                    hint = "its header is no text in UTF-8, as csv is; check the option `format`"
                raise SourceProblem(f"{self.file} has {problem} `{column}`", hint=hint)
            self.fields.append(plain.index(column.lower()))

    def parts(self, text: bytes, line: int, last: bool) -> Iterator[_Part]:
        if not text:
            return
        quote = ord(self.reader.quote) if self.reader.quote else None
        found = layout(text, ord(self.reader.delimiter), quote)
        cut = found.cut
        if cut and not self.reader.careful_only:
            filled = found.ends > found.starts if self.width > 1 else np.ones(found.starts.size, bool)
            starts, lines = found.starts[filled], line + found.lines[filled]
            block = text if cut == len(text) else text[:cut]
            columns = self._split(block, int(starts.size))
            if columns is not None:
                ends = found.ends[filled]
                yield self._part(columns, lines, cut, block.count(b"\n"), [], lambda i: block[starts[i] : ends[i]])
            else:
                yield self._careful(block, line, True)
            line += block.count(b"\n")
            text = text[cut:]
        stuck = len(text) > LONGEST
        if stuck and not last:
            text = text[: text.rfind(b"\n") + 1]
            if not text:
                raise SourceProblem(f"{self.file}: line {line} is longer than {LONGEST >> 20} MB", hint="is this a text file?")
        if text and (not found.regular or last or stuck or self.reader.careful_only):
            yield self._careful(text, line, last or stuck)

    def _split(self, block: bytes, count: int) -> list[pa.Array] | None:
        """The cells as strings by Arrow; None when it does not see the same records."""
        r = self.reader
        if count == 0:
            return [pa.array([], pa.string()) for _ in self.fields]
        if block.startswith(b"\xef\xbb\xbf"):
            return None  # Arrow would take it for the beginning of a file
        try:
            table = pa.csv.read_csv(
                pa.BufferReader(block),
                read_options=pa.csv.ReadOptions(
                    use_threads=False, block_size=len(block) + 1, column_names=[str(i) for i in range(self.width)]
                ),
                parse_options=pa.csv.ParseOptions(
                    delimiter=r.delimiter, quote_char=r.quote or False, newlines_in_values=True, ignore_empty_lines=self.width > 1
                ),
                convert_options=pa.csv.ConvertOptions(
                    include_columns=[str(i) for i in dict.fromkeys(self.fields)],
                    column_types={str(i): pa.string() for i in self.fields},
                    null_values=[r.null_value], strings_can_be_null=True, quoted_strings_can_be_null=False,
                ),
            )  # fmt: skip
        except pa.ArrowInvalid:
            return None
        if table.num_rows != count:
            return None
        return [table.column(str(i)).combine_chunks() if table.num_rows else pa.array([], pa.string()) for i in self.fields]

    def _careful(self, text: bytes, first: int, force: bool) -> _Part:
        r = self.reader
        delimiter, quote = r.delimiter.encode(), r.quote.encode() or None
        letters: list[DeadLetter] = []
        rows: list[list[str | None]] = []
        lines: list[int] = []
        raw: list[bytes] = []
        at, line = 0, first
        while at < len(text):
            record = record_at(text, at, delimiter, quote, force)
            if record is None:
                break
            content = text[at : record.end]
            reason = record.reason
            blank = record.cells == BLANK and self.width > 1
            if reason is None and len(record.cells) != self.width and not blank:
                reason = f"{len(record.cells)} fields where {self.width} are expected"
            if reason is None and not blank:
                try:
                    content.decode("utf-8")
                    rows.append([self._cell(record.cells[i]) for i in self.fields])
                    lines.append(line)
                    raw.append(content)
                except UnicodeDecodeError as error:
                    reason = f"not UTF-8 at byte {error.start + 1} of the line"
            if reason is not None:
                letters.append(broken(r.stream, self.file, line, reason, content))
            line += content.count(b"\n")
            at = record.end
        columns = [pa.array([row[i] for row in rows], pa.string()) for i in range(len(self.fields))]
        return self._part(columns, np.array(lines, dtype=np.int64), at, line - first, letters, raw.__getitem__)

    def _cell(self, cell: Cell) -> str | None:
        text = cell[0].decode("utf-8")
        return None if not cell[1] and text == self.reader.null_value else text

    def _part(self, cells: list[pa.Array], lines: Int64s, size: int, newlines: int, letters: list[DeadLetter], content: Content) -> _Part:
        wrong: dict[int, str] = {}
        columns = []
        for field, texts in zip(self.reader.schema, cells, strict=True):
            if not (is_text(field.type) or is_bytes(field.type)):
                same = pc.equal(texts, self.reader.null_value)
                if pc.any(same).as_py() and convert(pa.array([self.reader.null_value]), field.type)[1]:
                    texts = pc.if_else(same, None, texts)  # a quoted null_value is null too, where it can be nothing else
            values, bad = convert(texts, field.type)
            for index, reason in bad:
                wrong.setdefault(index, f"column `{field.name}`: {reason}")
            columns.append(values)
        batch = pa.RecordBatch.from_arrays(columns, schema=self.reader.schema)
        if wrong:
            letters = letters + [broken(self.reader.stream, self.file, int(lines[i]), why, content(i)) for i, why in wrong.items()]
            letters.sort(key=lambda letter: letter.line or 0)
            keep = np.ones(len(lines), dtype=bool)
            keep[list(wrong)] = False
            batch, lines = batch.filter(pa.array(keep)), lines[keep]
        return _Part(size, newlines, batch, lines, letters)
