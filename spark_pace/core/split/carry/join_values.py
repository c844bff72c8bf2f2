"""Join values (`core/match/method.py`): events are kept and matched by them, as others are by partition key.

A unit of a rule with join values still numbers the whole stream of the rule, and knows which selections of it
are resolved (`whole_stream.py`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import Ints


def join_values(values: pa.Array) -> tuple[pa.Array, Ints]:
    """The join values of n events.

    Returns:
        texts: string[k], the distinct ones, null's included; owner: int64[n], the index of each event's text.
    """
    encoded = values.dictionary_encode(null_encoding="encode")
    distinct = encoded.dictionary
    if pa.types.is_timestamp(distinct.type):
        distinct = distinct.cast(pa.int64())
    texts = pc.fill_null(pc.binary_join_element_wise("=", distinct.cast(pa.string()), ""), "null")
    return texts, encoded.indices.to_numpy().astype(np.int64)


def without_candidates(mask: npt.NDArray[np.uint16], values: pa.Array, bits: int) -> npt.NDArray[np.uint16]:
    """The masks of events, but where the value is null: bit 0 alone if the mask has one of `bits`, else 0.

    Null equals nothing, so such an event is in no candidate, but it opens a selection if it has one of the
    bits of initiators.
    """
    if not values.null_count:
        return mask
    null = pc.is_null(values).to_numpy(zero_copy_only=False)
    return np.where(null, (mask & np.uint16(bits) != 0).astype(np.uint16), mask)
