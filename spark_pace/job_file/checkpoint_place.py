"""Where the checkpoint of a job lies: a folder of this machine, or in a store or on HDFS."""

from __future__ import annotations

import os
from collections.abc import Mapping

from spark_pace.io.files.store_path import AnyPath, StorePath
from spark_pace.io.files.store_settings import StoreSettings
from spark_pace.job_file.paths import in_store, local_path
from spark_pace.job_file.secrets import Secrets


def checkpoint_at(path: str, spark: Mapping[str, str]) -> AnyPath:
    """The place that a path or an address names.

    Args:
        path: what the job file says, with an absolute path.
        spark: the job's settings of Spark; those of `fs.s3a` reach the store, else the environment's do.

    Raises:
        SetupError: a variable of the environment that they name is missing, or nothing can lie there.
    """
    if not in_store(path):
        return local_path(path, "checkpoint")
    settings = Secrets().resolve_all(spark, "spark")
    return StorePath.of(path, StoreSettings.of(path, settings, os.environ))
