"""What the producer needs before it starts: the events of the year in a folder, and a job's topic.

What is there already stays as it is.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kafka.admin import KafkaAdminClient

from examples.flights.events import write_events
from examples.flights.producer import PARTITIONS
from spark_pace.errors import counted
from spark_pace.job_file import KafkaSource, read_job

BROKER_STARTS_MS = 120_000


def main() -> int:
    """``FOLDER JOB``: write the events into the folder and make the job's first topic.

    The broker may still be starting.
    """
    parser = argparse.ArgumentParser(description="Make the events and the topic of the demo.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("job", type=Path)
    arguments = parser.parse_args()
    source = read_job(arguments.job).source
    assert isinstance(source, KafkaSource)
    if not arguments.folder.exists():
        print(f"{counted(write_events(arguments.folder), 'event')} written to {arguments.folder}")
    with KafkaAdminClient(bootstrap_servers=source.servers, bootstrap_timeout_ms=BROKER_STARTS_MS) as admin:
        if source.topics[0] not in admin.list_topics():
            admin.create_topics(
                {source.topics[0]: {"num_partitions": PARTITIONS, "replication_factor": 1}},
                wait_for_metadata=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
