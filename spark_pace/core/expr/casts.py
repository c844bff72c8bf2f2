"""Conversions between types, as far as Spark and Arrow agree on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr.arithmetic import saturate
from spark_pace.core.expr.nodes import ARROW_TYPES, ExprType

_LIMIT = float(2**63)


def cast_value(value: Any, target: ExprType) -> Any:
    """`value` as `target`; null where it does not fit."""
    if target == "NULL":
        return value
    kind = ARROW_TYPES[target]
    if value.type == kind:
        return value
    if pa.types.is_floating(value.type) and target == "BIGINT":
        return _whole(value)
    if target == "DATE":
        return pc.cast(pc.floor_temporal(value, unit="day"), kind)
    return pc.cast(value, kind, safe=False)  # BIGINT to DOUBLE rounds to the nearest


def _whole(value: Any) -> Any:
    """The whole part of DOUBLEs as BIGINT; null for NaN and for what is out of range."""
    single = isinstance(value, pa.Scalar)
    column = pa.repeat(value, 1) if single else value
    floats = pc.fill_null(column, np.nan).to_numpy()
    outside = ~((np.floor(floats) <= _LIMIT) & (np.ceil(floats) >= -_LIMIT))
    result = pa.array(saturate(np.trunc(floats)), mask=outside)
    return result[0] if single else result
