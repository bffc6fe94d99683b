"""Editions of a running program: the user's process writes each new one for the source, which brings it to the workers with the tuples."""

from __future__ import annotations

import os
import pickle
import re
from dataclasses import dataclass
from functools import lru_cache

from millstream.runtime.spark.wire import Shipment

_NAME = re.compile(r"edition-(\d+)")


@dataclass(frozen=True)
class Editions:
    """A directory on the driver's host with a file for each. A micro-batch runs under the edition that its offset names."""

    path: str | None
    """None where there will be no other than the first."""

    def publish(self, shipment: Shipment) -> None:
        assert self.path is not None
        name = os.path.join(self.path, f"edition-{shipment.edition}")
        with open(name + ".new", "wb") as file:
            pickle.dump(shipment, file)
        os.replace(name + ".new", name)

    def newest(self, shipped: Shipment) -> Shipment:
        """The last one, or what the query was started with."""
        if self.path is None:
            return shipped
        found = [int(match[1]) for name in os.listdir(self.path) if (match := _NAME.fullmatch(name))]
        return self.get(max(found, default=shipped.edition), shipped)

    def get(self, edition: int, shipped: Shipment) -> Shipment:
        if edition == shipped.edition or self.path is None:
            return shipped
        return _read(os.path.join(self.path, f"edition-{edition}"))


@lru_cache(maxsize=2)
def _read(name: str) -> Shipment:
    with open(name, "rb") as file:
        found: Shipment = pickle.load(file)
    return found
