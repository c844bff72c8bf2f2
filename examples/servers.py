"""Fetches the jars of servers, for the demos and the tests: of Kafka, of one that speaks S3, of HDFS.

They lie in folders beside the jars of jobs, each fetched once: ``python -m examples.servers broker``.
"""

from __future__ import annotations

import argparse
import re
import sys
import zipfile
from pathlib import Path

from spark_pace.spark.java.jars import (
    JAR_DIRECTORY,
    SCALA,
    hadoop_version,
    of_pyspark,
    pyspark_jars,
    resolved,
    told,
)

BROKER_JARS = JAR_DIRECTORY / "kafka"
STORE_JARS = JAR_DIRECTORY / "store"
HDFS_JARS = JAR_DIRECTORY / "hdfs"
KAFKA_VERSION = "4.1.1"  # the broker's version; the connector brings its own client

# without it a broker prints nothing when it fails
_BROKER_LOGGING = "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3"

# a server that keeps objects in a folder; and what it needs for that, without clients of other stores
_STORE = ("org.gaul:s3proxy:4.1.0", "jakarta.servlet:jakarta.servlet-api:6.0.0")
_OF_OTHER_STORES = (
    *("azure-core-http-jdk-httpclient", "azure-identity", "azure-storage-blob", "azure-storage-blob-batch"),
    *("apache-client", "apache5-client", "netty-nio-client", "sts", "url-connection-client"),
    *("google-cloud-storage", "grpc-context", "openstack4j-core", "openstack4j-okhttp", "sshd-sftp"),
    *("jcl-over-slf4j", "jetty-ee10-servlet", "jimfs", "opentelemetry-exporter-prometheus"),
    *("opentelemetry-sdk", "opentelemetry-semconv", "prometheus-metrics-exposition-textformats"),
)

# a name node and a data node in one process, of the Hadoop that PySpark brings, whose client it needs too
_HDFS = "org.apache.hadoop:hadoop-client-minicluster"
# folders that the web server of a name node looks for when it starts, by reading the jar to its end
_OF_ITS_WEB_SERVER = re.compile(r"org/apache/hadoop/hdfs/(?:.*/)?web/resources/")

_OF_HADOOP = (
    *("hadoop-client-api", "hadoop-client-runtime", "slf4j-api", "log4j-slf4j2-impl", "log4j-api"),
    *("log4j-core", "jcl-over-slf4j"),
)


def fetch_broker() -> list[str]:
    """Fetch the jars of a Kafka broker; return their paths.

    Raises:
        SetupError: Java is missing, or Ivy could not reach a repository.
    """
    return resolved(
        (f"org.apache.kafka:kafka_{SCALA}:{KAFKA_VERSION}", _BROKER_LOGGING), BROKER_JARS, ("jar", "bundle")
    )


def fetch_store() -> list[str]:
    """Fetch the jars of a server that speaks S3; return their paths.

    Raises:
        SetupError: Java is missing, or Ivy could not reach a repository.
    """
    return resolved(_STORE, STORE_JARS, ("jar", "bundle"), _OF_OTHER_STORES)


def fetch_hdfs() -> list[str]:
    """Fetch the jars of a server of HDFS, beside PySpark's; return their paths.

    Raises:
        SetupError: Java is missing, or Ivy could not reach a repository.
    """
    jars = resolved((f"{_HDFS}:{hadoop_version()}",), HDFS_JARS, ("jar", "bundle"), of_pyspark())
    for jar in jars:
        _let_load_quickly(Path(jar))
    return jars


def hadoop_jars() -> list[str]:
    """The jars of PySpark that a server of HDFS needs: Hadoop's client, and what it logs by."""
    return [str(jar) for name in _OF_HADOOP for jar in pyspark_jars().glob(f"{name}-[0-9]*.jar")]


def _let_load_quickly(jar: Path) -> None:
    """Write a jar anew, without compression and without what a server would look for in all of it."""
    quick = jar.with_suffix(".quick")
    with zipfile.ZipFile(jar) as packed, zipfile.ZipFile(quick, "w") as unpacked:
        for entry in packed.infolist():
            if not _OF_ITS_WEB_SERVER.fullmatch(entry.filename):
                unpacked.writestr(entry.filename, packed.read(entry))
    quick.replace(jar)


FETCHED = {"broker": fetch_broker, "store": fetch_store, "hdfs": fetch_hdfs}


def main() -> int:
    """Fetch the jars of the server that the argument names; print a failure as one line."""
    parser = argparse.ArgumentParser(description="Fetch the jars of a server for demos and tests.")
    parser.add_argument("whose", choices=FETCHED)
    return told(FETCHED[parser.parse_args().whose])


if __name__ == "__main__":
    sys.exit(main())
