"""The registry of cases, in the order of the support table."""

from __future__ import annotations

from tests.runtimes.case import Case
from tests.runtimes.cases import aggregates, declared, gaps, joins, late, plans, stateless, times, types, windows

TOPICS: dict[str, list[Case]] = {
    "Stateless queries": stateless.CASES,
    "Windows": windows.CASES,
    "Aggregates": aggregates.CASES,
    "Joins": joins.CASES,
    "Types and values": types.CASES,
    "Punctuations and time": times.CASES,
    "Declared keys, clusters and values": declared.CASES,
    "Late and broken tuples": late.CASES,
    "Several queries, several stages": plans.CASES,
    "Refused": gaps.CASES,
}
CASES: dict[str, Case] = {case.name: case for cases in TOPICS.values() for case in cases}
RUNNING = {name: case for name, case in CASES.items() if not case.gaps}
SETTLED = {name: case for name, case in RUNNING.items() if not case.pending}
REFUSED = {name: case for name, case in CASES.items() if case.gaps}
assert len(CASES) == sum(map(len, TOPICS.values())), "two cases have the same name"
