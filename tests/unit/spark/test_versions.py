"""What the version of PySpark decides."""

from __future__ import annotations

import pytest

from spark_pace.errors import SetupError
from spark_pace.spark.internals import require_fitting_pyarrow


def test_an_older_spark_needs_an_older_pyarrow() -> None:
    with pytest.raises(SetupError) as raised:
        require_fitting_pyarrow("4.1.3", "26.0.1")
    must = "pyarrow — must be older than 26 for Spark 4.1.3; got 26.0.1."
    assert str(raised.value) == f"{must} `pip install 'pyarrow<26'` mends it."


@pytest.mark.parametrize(("spark", "pyarrow"), [("4.0.2", "25.0.1"), ("4.2.0", "26.0.1"), ("4.3.0", "27.1")])
def test_others_fit(spark: str, pyarrow: str) -> None:
    require_fitting_pyarrow(spark, pyarrow)
