"""Join values (`core/match/method.py`) as texts. They group the events of a carry in place of partition keys.

A unit of a rule with join values still numbers the whole stream of the rule, and keeps track of its resolved
selections (`whole_stream.py`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import Ints


def join_values(values: pa.Array) -> tuple[pa.Array, Ints]:
    """Convert the join values of n events to texts.

    Returns:
        texts: string[k], the distinct texts, with one for null; owner: int64[n], the index of each event's
            text.
    """
    encoded = values.dictionary_encode(null_encoding="encode")
    distinct = encoded.dictionary
    if pa.types.is_timestamp(distinct.type):
        distinct = distinct.cast(pa.int64())
    texts = pc.fill_null(pc.binary_join_element_wise("=", distinct.cast(pa.string()), ""), "null")
    return texts, encoded.indices.to_numpy().astype(np.int64)


def without_candidates(mask: npt.NDArray[np.uint16], values: pa.Array, bits: int) -> npt.NDArray[np.uint16]:
    """The masks of events; if the value is null, only bit 0 if the mask has one of `bits`, else 0.

    Null equals nothing, so such an event is in no candidate, but it opens a selection if it has one of
    `bits`, those of initiators.
    """
    if not values.null_count:
        return mask
    null = pc.is_null(values).to_numpy(zero_copy_only=False)
    return np.where(null, (mask & np.uint16(bits) != 0).astype(np.uint16), mask)
