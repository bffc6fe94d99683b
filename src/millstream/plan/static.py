"""Static sub-plans (tables, filtered or projected) are computed once, before a query runs."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from millstream.errors import UnsupportedProblem
from millstream.expressions import compile_expression, predicate_mask
from millstream.plan import nodes
from millstream.plan.catalog import Table


def rows_of(node: nodes.Node, read: Callable[[Table], pa.Table]) -> pa.Table:
    """The rows of a plan that reads no stream."""
    match node:
        case nodes.TableScan(table):
            return read(table)
        case nodes.Filter(input, predicate):
            batch = _batch(rows_of(input, read))
            return pa.Table.from_batches([batch.filter(pa.array(predicate_mask(compile_expression(predicate, batch.schema), batch)))])
        case nodes.Project(input, columns):
            batch = _batch(rows_of(input, read))
            arrays = [compile_expression(e, batch.schema).evaluate(batch) for _, e in columns]
            return pa.Table.from_arrays(arrays, schema=node.schema)
        case nodes.Union(members):
            return pa.concat_tables([rows_of(m, read) for m in members])
    raise UnsupportedProblem("a table can only be filtered and projected before it is joined")


def _batch(table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([c.combine_chunks() for c in table.columns], schema=table.schema)
