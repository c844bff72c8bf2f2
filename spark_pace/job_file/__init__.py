"""Reads job files, which say where events come from, where matches go, and how the job runs."""

from spark_pace.job_file.checkpoint_settings import as_planned, planned_settings
from spark_pace.job_file.reader import check_files, is_job, read_job, rules_in
from spark_pace.job_file.spec import (
    Clock,
    DeltaSource,
    Endpoint,
    Events,
    FilesSource,
    Format,
    JobSpec,
    KafkaFormat,
    KafkaSource,
    Page,
)

__all__ = [
    "Clock",
    "DeltaSource",
    "Endpoint",
    "Events",
    "FilesSource",
    "Format",
    "JobSpec",
    "KafkaFormat",
    "KafkaSource",
    "Page",
    "as_planned",
    "check_files",
    "is_job",
    "planned_settings",
    "read_job",
    "rules_in",
]
