"""Reads job files, which say where events come from, where matches go, and how the job runs."""

from spark_pace.job_file.events import Clock, Events
from spark_pace.job_file.reader import JobFile, check_files, read_job, rules_in, rules_of
from spark_pace.job_file.source import DeltaSource, FilesSource, Format, KafkaFormat, KafkaSource
from spark_pace.job_file.spec import Endpoint, JobSpec, Page, Parallelism, as_planned, planned_settings

__all__ = [
    "Clock",
    "DeltaSource",
    "Endpoint",
    "Events",
    "FilesSource",
    "Format",
    "JobFile",
    "JobSpec",
    "KafkaFormat",
    "KafkaSource",
    "Page",
    "Parallelism",
    "as_planned",
    "check_files",
    "planned_settings",
    "read_job",
    "rules_in",
    "rules_of",
]
