"""The dialect `millstream`: Spark SQL with stream windows, read and printed."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator
from sqlglot.tokens import TokenType

from millstream.language.statement_parser import StatementParser
from millstream.language.window import KEY, StreamWindow, window_of, window_sql


class QueryGenerator(SparkGenerator):
    """Prints windows back; `query.sql(dialect="millstream")` parses to the same query."""

    TRANSFORMS: ClassVar[dict[Any, Any]] = {
        **SparkGenerator.TRANSFORMS,
        StreamWindow: lambda self, window: window_sql(window, self.sql(window, "attribute")),
    }

    def table_parts(self, expression: exp.Table) -> str:
        return super().table_parts(expression) + self._window(expression)

    def wrap(self, expression: exp.Expr | str) -> str:
        return super().wrap(expression) + (self._window(expression) if isinstance(expression, exp.Subquery) else "")

    def from_sql(self, expression: exp.From) -> str:
        window = self._window(expression.parent) if isinstance(expression.parent, exp.Select) else ""
        return window + super().from_sql(expression)

    def _window(self, expression: Any) -> str:
        return f" {self.sql(expression, KEY)}" if window_of(expression) else ""


class Millstream(Spark):
    """Registered with sqlglot under the name `millstream`."""

    class Tokenizer(Spark.Tokenizer):
        # Nothing falls back to a command that is passed on unread.
        COMMANDS: ClassVar[set[TokenType]] = set()

    Parser = StatementParser
    Generator = QueryGenerator
