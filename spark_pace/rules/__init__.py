"""Reads and checks rule files, and turns them into immutable rules."""

from spark_pace.rules.execution import explain, explain_as_json
from spark_pace.rules.rule_file import load_rules

__all__ = ["explain", "explain_as_json", "load_rules"]
