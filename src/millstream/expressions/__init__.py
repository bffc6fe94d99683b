"""Scalar Spark SQL expressions, compiled into typed functions over Arrow record batches; the same on both runtimes."""

from millstream.expressions.compile import Compiled, compile_expression, fold_constant
from millstream.expressions.guard import as_mask, evaluate_guarded, guarded_mask, predicate_mask
from millstream.expressions.monotone import Monotone, monotone
from millstream.expressions.names import name_of, type_of

__all__ = [
    "Compiled",
    "Monotone",
    "as_mask",
    "compile_expression",
    "evaluate_guarded",
    "fold_constant",
    "guarded_mask",
    "monotone",
    "name_of",
    "predicate_mask",
    "type_of",
]
