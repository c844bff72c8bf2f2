"""Conversions between types, as far as Spark and Arrow agree on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import decimals
from spark_pace.core.expr.arithmetic import saturate
from spark_pace.core.expr.nodes import ARROW_TYPES, ExprType

_LIMIT = float(2**63)


def cast_value(value: Any, target: ExprType) -> Any:
    """Convert `value` to `target`; null for values that do not fit."""
    if target == "NULL":
        return value
    kind = ARROW_TYPES[target]
    if value.type == kind:
        return value
    if pa.types.is_floating(value.type) and target == "BIGINT":
        return _whole(value)
    if target == "DATE":
        return pc.cast(pc.floor_temporal(value, unit="day"), kind)
    if pa.types.is_decimal(value.type) or pa.types.is_decimal(kind):
        return _decimal(value, kind)
    return pc.cast(value, kind, safe=False)  # BIGINT to DOUBLE rounds to the nearest


def _decimal(value: Any, kind: pa.DataType) -> Any:
    """BIGINTs or DECIMALs as a DECIMAL, or DECIMALs as BIGINTs, texts, or the nearest DOUBLEs."""
    if pa.types.is_decimal(kind):
        return decimals.to_decimal(value, kind)
    if pa.types.is_integer(kind):
        return decimals.to_whole(value)
    if pa.types.is_string(kind):
        return decimals.to_text(value)
    # Arrow's own cast from DECIMAL to DOUBLE does not always give the nearest one
    return pc.cast(pc.cast(value, pa.string()), kind)


def _whole(value: Any) -> Any:
    """The whole part of DOUBLEs as BIGINT; null for NaN and for what is out of range."""
    single = isinstance(value, pa.Scalar)
    column = pa.repeat(value, 1) if single else value
    floats = pc.fill_null(column, np.nan).to_numpy()
    outside = ~((np.floor(floats) <= _LIMIT) & (np.ceil(floats) >= -_LIMIT))
    result = pa.array(saturate(np.trunc(floats)), mask=outside)
    return result[0] if single else result
