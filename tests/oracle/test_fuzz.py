"""The fuzzer counts its cases, and tells how to repeat one that fails."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

from tests.oracle import fuzz
from tests.oracle.cases import ALL


def test_cases_go_round_robin_over_families_kinds_and_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[str, str]] = []
    rounds = 2 * len(ALL) * 4
    clock = iter([0.0, *range(rounds), rounds + 1, rounds + 1])
    kinds = dict.fromkeys(fuzz.KINDS, lambda family, host, seed: seen.append((family, host)))
    with patch.object(fuzz, "KINDS", kinds), patch.object(fuzz.time, "monotonic", lambda: next(clock)):
        assert fuzz.main(["--minutes", str(rounds / 60)]) == 0
    assert set(seen) == {(family, host) for family in ALL for host in fuzz.HOSTS}
    out = capsys.readouterr().out.splitlines()
    assert [line.split() for line in out[1:-1]] == [[family, *"2222"] for family in ALL]
    assert f"{rounds} cases in" in out[-1] and out[-1].endswith("0 failed")


def test_a_failure_prints_the_command_that_repeats_it(capsys: pytest.CaptureFixture[str]) -> None:
    def wrong(family: str, host: str, seed: int) -> None:
        assert seed % 2, f"seed {seed} is even"

    with (
        patch.object(fuzz, "KINDS", {"answer": wrong}),
        patch.object(fuzz.secrets, "randbits", lambda bits: 42),
    ):
        assert fuzz.fuzz(0.0005, ["scan"], ["answer"], ["process"]) == 1
        out = capsys.readouterr().out
        command = next(line for line in out.splitlines() if line.startswith("repeat: "))
        assert "FAILED: AssertionError: seed 42 is even" in out
        assert (
            command
            == "repeat: python -m tests.oracle.fuzz --family scan --kind answer --host process --seed 42"
        )
        assert fuzz.main(command.split()[4:]) == 1
        assert fuzz.main([*command.split()[4:-1], "43"]) == 0


def test_a_case_that_never_ends_fails() -> None:
    def endless(*_: Any) -> None:
        while True:
            pass

    with patch.object(fuzz, "KINDS", {"answer": endless}), patch.object(fuzz, "LIMIT", 1):
        assert isinstance(fuzz.failure("answer", "scan", "process", 1), TimeoutError)


@pytest.mark.parametrize("kind", fuzz.KINDS)
@pytest.mark.parametrize("host", fuzz.HOSTS)
def test_each_kind_runs_on_each_host(kind: str, host: str) -> None:
    assert fuzz.failure(kind, "window", host, 1) is None
