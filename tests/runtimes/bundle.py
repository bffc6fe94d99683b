"""Puts several pipelines into one, each with streams, tables and sinks of its own, so that Spark runs them as one streaming query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from millstream.pipeline import Pipeline
from millstream.plan import nodes
from millstream.plan.catalog import Stream


def bundle(pipelines: Mapping[str, Pipeline]) -> Pipeline:
    """The queries of all; stream `Bid` of the pipeline `q1` becomes `q1.Bid`, and so do tables and sinks."""
    whole = Pipeline()
    for owner, pipeline in pipelines.items():
        for relation in pipeline.catalog.relations:
            if isinstance(relation, Stream):
                name = f"{owner}.{relation.name}"
                whole.catalog.relations.add(name, replace(relation, name=name))
        for query in pipeline.queries:
            renamed = _renamed(query.input, owner)
            whole.queries.append(nodes.Insert(renamed, replace(query.sink, name=f"{owner}.{query.sink.name}")))
    return whole


def _renamed(node: nodes.Node, owner: str) -> nodes.Node:
    if isinstance(node, nodes.Scan):
        return nodes.Scan(replace(node.stream, name=f"{owner}.{node.stream.name}"))
    if isinstance(node, nodes.TableScan):
        return nodes.TableScan(replace(node.table, name=f"{owner}.{node.table.name}"))
    inputs = [_renamed(child, owner) for child in node.inputs]
    return node.with_inputs(inputs) if inputs else node
