"""The settings of `events` that a checkpoint fixes for its life: the state of every rule rests on them.

To which source a checkpoint belongs is said in `spark_pace.spark.sources.input`.
"""

from __future__ import annotations

from spark_pace.job_file.spec import JobSpec


def event_settings(spec: JobSpec) -> dict[str, str]:
    """The job's settings for events that a checkpoint fixes: their names and their values as text."""
    schema, order = spec.events.schema, spec.events.order
    types = {field.name: field.type for field in schema.fields}
    return {
        "event_time": f"{schema.event_time} in {schema.time_unit}" if schema.time_unit else schema.event_time,
        "ordering": "sources" if order.by_source else "watermark",
        "source_column": spec.events.source_column or "none",
        "deduplicate_on": ", ".join(f"{name} {types[name]}" for name in order.deduplicate_on) or "none",
    }
