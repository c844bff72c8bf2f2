"""Rule files: YAML with positions, the expression language, the checker, frozen rules."""

from spark_pace.rules.explain import explain
from spark_pace.rules.rule_file import load_rules
from spark_pace.rules.spark_sql import to_spark_filter

__all__ = ["explain", "load_rules", "to_spark_filter"]
