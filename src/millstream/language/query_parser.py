"""Reads queries: SQL with windows after streams, and chains such as `FROM A UNION ALL B`."""

from __future__ import annotations

from itertools import takewhile
from typing import Any, cast

from sqlglot import exp
from sqlglot.tokens import TokenType

from millstream.errors import SyntaxProblem, UnsupportedProblem
from millstream.language.places import WRITTEN
from millstream.language.window import KEY, StreamWindow, window_of
from millstream.language.window_parser import KINDS, WindowParser

_QUERY_STARTS = {TokenType.SELECT, TokenType.VALUES, TokenType.WITH, TokenType.FROM, TokenType.TABLE, TokenType.SENTINEL}

_AROUND_CALLS = (exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


class QueryParser(WindowParser):
    """Windows hang under `stream_window` on the Table, Subquery or Select they follow."""

    def _parse_table(
        self,
        schema: bool = False,
        joins: bool = False,
        alias_tokens: Any = None,
        parse_bracket: bool = False,
        is_db_reference: bool = False,
        parse_partition: bool = False,
        consume_pipe: bool = False,
    ) -> exp.Expr | None:
        if schema or is_db_reference:
            return super()._parse_table(schema=schema, is_db_reference=is_db_reference, parse_partition=parse_partition)
        this = self._parse_windowed(alias_tokens, parse_bracket, consume_pipe)
        operands = [this]
        while self._match_chain():
            operands.append(self._parse_windowed(alias_tokens, parse_bracket, consume_pipe))
        if len(operands) > 1:
            this = self._build_chain(operands)
        if joins and this:
            for join in self._parse_joins(alias_tokens=alias_tokens):
                this.append("joins", join)
        return this

    def _parse_windowed(self, alias_tokens: Any, parse_bracket: bool, consume_pipe: bool) -> exp.Expr | None:
        """One table or subquery with its window before or after its alias."""
        if self._match_text_seq("SEQ", advance=False) and self._next.token_type == TokenType.L_PAREN:
            raise UnsupportedProblem(
                "SEQ patterns are not supported yet", place=self.place(), hint="join the streams on a window and compare their timestamps"
            )
        self._refuse_window_first()
        this = super()._parse_table(alias_tokens=alias_tokens, parse_bracket=parse_bracket, consume_pipe=consume_pipe)
        place = self.place()
        window = self._parse_stream_window()
        if window is None or this is None:
            return _unwrapped(this)
        if not isinstance(this, (exp.Table, exp.Subquery)):
            raise SyntaxProblem("a window can not stand here", place=place, hint="it stands after a stream or a subquery")
        this.set(KEY, window)
        if not this.args.get("alias"):
            this.set("alias", self._parse_table_alias(alias_tokens=alias_tokens))
        if self._at_window():
            raise SyntaxProblem("a stream has one window", place=self.place(), hint="put both into one pair of brackets")
        return _unwrapped(this)

    def _refuse_window_first(self) -> None:
        """`FROM [RANGE 10 SECONDS] Bid` and `FROM Bid (RANGE 10 SECONDS)`."""
        opening = self._curr
        if self._next and self._next.token_type == TokenType.L_PAREN:
            rest = self._tokens[self._index + 2 :]
            inside = [t.text for t in takewhile(lambda token: token.token_type != TokenType.R_PAREN, rest)]
            if inside and inside[0].lower() in KINDS:
                hint = f"write {opening.text} [{' '.join(inside)}]"
                raise SyntaxProblem("a window stands in brackets", place=self.place(self._next), hint=hint)
        if self._parse_stream_window() is None:
            return
        written, name = self._find_sql(opening, self._prev), self._curr.text if self._curr else ""
        hint = f"write {name if name.isidentifier() else 'A'} {written}"
        raise SyntaxProblem("a window stands behind its stream", place=self.place(opening), hint=hint)

    def _match_chain(self) -> bool:
        """Step over UNION [ALL] when a name follows, not a query: then it joins streams, not selects."""
        if self._curr.token_type != TokenType.UNION:
            return False
        index = self._index + 1
        following = self._tokens[index:]
        all_ = bool(following) and following[0].token_type == TokenType.ALL
        distinct = bool(following) and following[0].token_type == TokenType.DISTINCT
        named = next((token for token in following[all_ or distinct :] if token.token_type != TokenType.L_PAREN), None)
        if named is None or named.token_type in _QUERY_STARTS:
            return False
        if not named.text[:1].isidentifier() and named.token_type != TokenType.IDENTIFIER:
            return False
        if distinct:
            raise SyntaxProblem(
                "a union of streams keeps duplicates", place=self.place(following[0]), hint="write SELECT DISTINCT ... FROM A UNION ALL B"
            )
        self._advance(1 + all_)
        return True

    def _build_chain(self, operands: list[Any]) -> exp.Subquery:
        """`A UNION B [w] AS x` as `(SELECT * FROM A UNION ALL SELECT * FROM B) [w] AS x`, a bag union as in the papers."""
        last = operands[-1]
        window, alias = last.args.pop(KEY, None), last.args.pop("alias", None)
        for operand in operands[:-1]:
            if inner := window_of(operand):
                raise SyntaxProblem(
                    "a window inside a union of streams",
                    place=self._window_place(inner),
                    hint="put it after the last stream, where it applies to the whole union",
                )
        union: Any = _select_all(operands[0])
        for operand in operands[1:]:
            union = exp.Union(this=union, expression=_select_all(operand), distinct=False)
        chain = exp.Subquery(this=union)
        chain.set("alias", alias)
        chain.set(KEY, window)
        return chain

    def _parse_join(self, skip_join_token: bool = False, parse_bracket: bool = False, alias_tokens: Any = None) -> exp.Join | None:
        """sqlglot lets a comma or an ON stand with nothing after it; we do not."""
        if self._match(TokenType.COMMA):
            return self.expression(exp.Join(this=self._parse_table(alias_tokens=alias_tokens), kind="CROSS"))
        join = super()._parse_join(skip_join_token, parse_bracket, alias_tokens)
        if join is not None and self._prev.token_type in (TokenType.ON, TokenType.USING):
            self.raise_error("Required condition")
        return join

    def _parse_csv(self, parse_method: Any, sep: TokenType = TokenType.COMMA) -> list[Any]:
        index = self._index
        members = super()._parse_csv(parse_method, sep)
        if self._index > index and self._prev.token_type == sep == TokenType.COMMA:
            self.raise_error("Required member")
        return members

    def _parse_function_call(self, *arguments: Any, **named: Any) -> exp.Expr | None:
        """sqlglot forgets how a function was spelled, and where some of them stand."""
        token = self._curr
        call = super()._parse_function_call(*arguments, **named)
        function: Any = call
        while isinstance(function, _AROUND_CALLS):
            function = function.this
        if isinstance(function, exp.Func) and token and WRITTEN not in function.meta:
            function.meta[WRITTEN] = token.text
            if isinstance(function, (exp.AggFunc, exp.Exists)) and not function.meta.get("line"):
                function.update_positions(token)
        return call

    # The select list

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        """A window after the select list travels as its last member until the Select it belongs to exists."""
        projections, exclude = super()._parse_projections()
        if not projections:
            self.raise_error("Required select list")
        window = self._parse_stream_window()
        if window is not None:
            projections.append(window)
        return projections, exclude

    def _parse_query_modifiers(self, this: Any) -> Any:
        if isinstance(this, exp.Select) and this.expressions and isinstance(this.expressions[-1], StreamWindow):
            window = this.expressions[-1]
            window.pop()
            if not this.args.get("from_"):
                raise SyntaxProblem(
                    "a window without FROM", place=self._window_place(window), hint="add FROM and the streams it applies to"
                )
            this.set(KEY, window)
        this = super()._parse_query_modifiers(this)
        group = this.args.get("group") if this else None
        if group and not any(group.args.values()):
            self.raise_error("Required group columns")
        return this


def _select_all(table: Any) -> exp.Query:
    if isinstance(table, exp.Subquery) and table.args.keys() <= {"this"} and isinstance(table.this, exp.Union):
        return cast(exp.Query, table.this)
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=table))


def _unwrapped(this: Any) -> exp.Expr | None:
    """`((A UNION B)) [w] AS x` without the idle parentheses; those that hold a join or a query of their own stay."""
    while isinstance(this, exp.Subquery) and isinstance(this.this, (exp.Table, exp.Subquery)):
        if _present(this) - {"this", "alias", KEY}:
            break
        inner = this.this
        clash = _present(this) & _present(inner) - {"this"}
        if clash or (inner.args.get("alias") and this.args.get(KEY)) or _present(inner) & {"joins", "laterals"}:
            break
        for key in ("alias", KEY):
            if this.args.get(key):
                inner.set(key, this.args[key])
        inner.pop()
        this = inner
    return cast(exp.Expr | None, this)


def _present(node: Any) -> set[str]:
    return {key for key, value in node.args.items() if value}
