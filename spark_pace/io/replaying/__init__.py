"""Rules over files or tables of events without Spark: what they find, and why."""

from spark_pace.io.replaying.replay import Replayed, read_all, replay_files, replay_table, without_late

__all__ = ["Replayed", "read_all", "replay_files", "replay_table", "without_late"]
