"""Makes lines of text UTF-8, so that no byte of a line can keep it from being matched."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_NEXT = r"[\x80-\xbf]"
_UTF8 = (  # matches bytes that are UTF-8
    rf"\A(?:[\x00-\x7f]|[\xc2-\xdf]{_NEXT}|\xe0[\xa0-\xbf]{_NEXT}|[\xe1-\xec\xee\xef]{_NEXT}{{2}}"
    rf"|\xed[\x80-\x9f]{_NEXT}|\xf0[\x90-\xbf]{_NEXT}{{2}}|[\xf1-\xf3]{_NEXT}{{3}}|\xf4[\x80-\x8f]{_NEXT}{{2}})*\z"
)


def in_utf8(lines: pa.BinaryArray) -> pa.BinaryArray:
    """The lines with U+FFFD in place of bytes that are not UTF-8, as Spark and Python replace them."""
    try:
        lines.view(pa.string()).validate(full=True)
    except pa.ArrowInvalid:
        wrong = pc.invert(pc.match_substring_regex(lines, _UTF8))
        texts = (line.decode("utf-8", "replace").encode() for line in lines.filter(wrong).to_pylist())
        return pc.replace_with_mask(lines, wrong, pa.array(texts, pa.binary()))
    return lines
