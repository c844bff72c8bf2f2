"""The settings of Spark for its own files of a checkpoint in an object store."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from spark_pace.errors import UnfitError
from spark_pace.io.files.addresses import AnyPath, StorePath
from spark_pace.spark.internals import (
    RENAMING_FILE_MANAGER,
    S3A_CLASS,
    STORE_FILE_MANAGER,
    has_class,
)
from spark_pace.spark.java.settings import MANAGER, OF_S3

_S3A = "spark.hadoop.fs.s3a."
_NAMES = {
    "endpoint": "endpoint",
    "region": "endpoint.region",
    "access_key_id": "access.key",
    "secret_access_key": "secret.key",
    "session_token": "session.token",
}
# the store itself checks what is written, and each checksum would be a file more
_UNCHECKED = {"spark.sql.streaming.checkpoint.fileChecksum.enabled": "false"}
_SECRET = {"access.key", "secret.key", "session.token"}


def store_settings(checkpoint: AnyPath, given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """(more settings of Spark for a checkpoint, those of them that nobody may see); none for one on a disk.

    Args:
        checkpoint: where it lies.
        given: the job's own settings, which win.
    """
    if not isinstance(checkpoint, StorePath):
        return {}, {}
    if checkpoint.is_on_hdfs:
        return {MANAGER: RENAMING_FILE_MANAGER, **_UNCHECKED}, {}
    if not checkpoint.is_in_s3:
        return {MANAGER: RENAMING_FILE_MANAGER}, {}
    reached = {_NAMES[key]: value for key, value in checkpoint.settings.given if key in _NAMES}
    if "endpoint" in reached:  # a server of one's own: it has no names of buckets as hosts, and any region
        reached = {"path.style.access": "true", "endpoint.region": "us-east-1", **reached}
    # the reader that asks again where an answer breaks off; the newer one that reads ahead does not
    reached["input.stream.type"] = "classic"
    own = {f"{_S3A}{name}": value for name, value in reached.items() if f"{_S3A}{name}" not in given}
    secret = {key: value for key, value in own.items() if key.removeprefix(_S3A) in _SECRET}
    plain = {key: value for key, value in own.items() if key not in secret}
    return {
        MANAGER: STORE_FILE_MANAGER,
        # objects are made without looking for folders of their name first
        OF_S3: "create,mkdir",
        **_UNCHECKED,
        **plain,
    }, secret


def require_store_jars(spark: SparkSession, checkpoint: AnyPath) -> None:
    """Refuse a Spark that cannot write to the store of the checkpoint.

    Raises:
        UnfitError: it lacks jars.
    """
    if not isinstance(checkpoint, StorePath) or not checkpoint.is_in_s3:
        return
    is_ours = spark.conf.get(MANAGER, None) == STORE_FILE_MANAGER  # a job may name another one
    for name in (S3A_CLASS, STORE_FILE_MANAGER) if is_ours else (S3A_CLASS,):
        if not has_class(spark, name):
            must = "must be reached by Spark too, for a checkpoint"
            got = f"no class {name.rpartition('.')[2]}"
            do = "Fetch its jars by `python -m spark_pace.spark.java.jars s3a`"
            submitted = "with spark-submit name them as well: --jars 'jars/*.jar,jars/s3a/*.jar'"
            raise UnfitError(f"{checkpoint} — {must}; got {got}. {do}; {submitted}.")
