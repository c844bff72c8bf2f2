"""The text of keys."""

from __future__ import annotations

import datetime

import pyarrow as pa

from spark_pace.core.intake.keys import key_text, key_texts


def test_a_key_is_the_compact_json_object_of_its_columns() -> None:
    assert key_text(["plate", "lane"], ["Ä-1", 2]) == '{"plate":"Ä-1","lane":2}'


def test_times_and_dates_are_iso_8601() -> None:
    values = [datetime.datetime(2013, 1, 1, 5, 17), datetime.date(2013, 1, 2)]
    assert key_text(["t", "d"], values) == '{"t":"2013-01-01T05:17:00","d":"2013-01-02"}'


def test_null_is_a_key_like_others() -> None:
    texts = key_texts(["x"], [pa.array([1, None, 1, None])])
    assert texts.to_pylist() == ['{"x":1}', '{"x":null}', '{"x":1}', '{"x":null}']


def test_minus_zero_is_the_key_zero() -> None:
    assert len(set(key_texts(["x"], [pa.array([0.0, -0.0])]).to_pylist())) == 1


def test_every_combination_of_several_columns_is_its_own_key() -> None:
    texts = key_texts(["x", "y"], [pa.array(["a", "a", "b", "b"]), pa.array([1, 2, 1, 1])])
    assert texts.to_pylist() == ['{"x":"a","y":1}', '{"x":"a","y":2}', '{"x":"b","y":1}', '{"x":"b","y":1}']
    assert len(texts.dictionary) == 3


def test_no_rows_have_no_keys() -> None:
    assert key_texts(["x"], [pa.array([], pa.string())]).to_pylist() == []
