"""The same files in a folder and in a bucket or on HDFS, and what the bucket's server is asked for."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import obstore
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from obstore.store import S3Store
from pyspark.sql import SparkSession

from examples.cluster.store_server import StoreServer
from spark_pace.io.files.addresses import AnyPath, StorePath, StoreSettings
from spark_pace.job_file import JobSpec, read_job
from spark_pace.spark.java.launch import store_settings
from tests.spark.jobs import Event
from tests.support.hdfs_server import HdfsServer

FOLDER = "days/of may"
_OF_HADOOP = "spark.hadoop."


@dataclass
class Pair(ABC):
    """A folder, and another place with the same files."""

    folder: Path
    address: str
    settings: StoreSettings

    @abstractmethod
    def put_at(self, path: str, content: bytes) -> None:
        """Write a file below `base`."""

    @abstractmethod
    def remove_at(self, path: str) -> None:
        """Remove it."""

    @property
    def base(self) -> str:
        """The address, without `FOLDER`."""
        return self.address.removesuffix(f"/{FOLDER}")

    def put(self, name: str, content: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self.put_at(f"{FOLDER}/{name}", content)

    def remove(self, name: str) -> None:
        (self.folder / name).unlink()
        self.remove_at(f"{FOLDER}/{name}")

    def places(self) -> tuple[AnyPath, AnyPath]:
        return self.folder, StorePath.of(self.address, self.settings)


@dataclass
class Both(Pair):
    """A folder and a prefix in a bucket with the same files."""

    bucket: S3Store
    server: StoreServer

    def put_at(self, path: str, content: bytes) -> None:
        obstore.put(self.bucket, path, content)

    def remove_at(self, path: str) -> None:
        obstore.delete(self.bucket, path)

    def asked(self, of: Callable[[], object]) -> list[str]:
        """The requests that something makes for the bucket, without its name."""
        before = len(self.server.requests())
        of()
        name = re.compile(rf"/{self.base.partition('://')[2]}(?![^/?])/?")
        made = self.server.requests()[before:]
        return [f"{method} {name.sub('', path, 1)}" for method, path in made if name.match(path)]


@dataclass
class OnHdfs(Pair):
    """A folder of this machine and one of HDFS with the same files."""

    server: HdfsServer

    def put_at(self, path: str, content: bytes) -> None:
        self.server.put(self._path(path), content)

    def remove_at(self, path: str) -> None:
        self.server.client.delete(self._path(path))

    def _path(self, path: str) -> str:
        return f"{self.base.removeprefix(self.server.address)}/{path}"


@dataclass(frozen=True)
class Kept:
    """Where a job keeps its tables and its checkpoint.

    Attributes:
        files: the folder with `out` and `checkpoint`: the job's own, or the one that is a bucket.
        store: the server of the bucket; None for the job's own folder.
    """

    files: Path
    store: StoreServer | None = None

    @classmethod
    def in_store(cls, store: StoreServer, name: str) -> Kept:
        """A new bucket that is called as the end of a name."""
        bucket = name[-40:].replace("_", "-").strip("-")
        store.bucket(bucket)
        return cls(store.data / bucket, store)

    @property
    def address(self) -> str:
        """Of the bucket."""
        return f"s3a://{self.files.name}"

    def for_job(self, job_file: Path) -> JobSpec:
        """Let a job file, as `make_job` writes it, name this place."""
        if self.store is not None:
            text = job_file.read_text()
            for name in ("sink: {kind: delta, path: ", "checkpoint: "):
                assert text.count(f"\n{name}") == 1
                text = text.replace(f"\n{name}", f"\n{name}{self.address}/")
            job_file.write_text(text)
        return read_job(job_file)

    def copied(self, job: Path) -> Kept:
        """A copy, for a copy of the job's folder."""
        if self.store is None:
            return Kept(job)
        copy = Kept.in_store(self.store, job.parent.name + job.name)
        shutil.copytree(self.files, copy.files, dirs_exist_ok=True)
        return copy


def reach(spark: SparkSession, environment: Mapping[str, str]) -> None:
    """Tell the session of these tests how to reach a store: one that runs takes no settings of jobs."""
    place = StorePath.of("s3a://any", StoreSettings.of("s3a://any", {}, environment))
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[union-attr]
    for key, value in store_settings(place).items():
        if key.startswith(_OF_HADOOP):
            hadoop.set(key.removeprefix(_OF_HADOOP), value)


def lines(events: list[Event]) -> bytes:
    return "\n".join(map(json.dumps, events)).encode()


def in_form(events: list[Event], form: str, folder: Path) -> bytes:
    """The events as the content of a file."""
    path = folder / f".scratch.{form}"
    rows = pa.Table.from_pylist(events)
    if form == "parquet":
        time = rows["t"].cast(pa.timestamp("us"))
        pyarrow.parquet.write_table(rows.set_column(0, "t", time), path)
        return path.read_bytes()
    if form.startswith("csv"):
        pyarrow.csv.write_csv(rows, path)
    text = path.read_bytes() if form.startswith("csv") else lines(events)
    if form.endswith("zst"):
        return pa.compress(text, "zstd", asbytes=True)  # type: ignore[no-any-return]
    return gzip.compress(text) if form.endswith("gz") else text
