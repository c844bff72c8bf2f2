"""Rule files: YAML with positions, the expression language, the checker, frozen rules."""

from spark_pace.rules.explain import explain
from spark_pace.rules.rule_file import load_rules

__all__ = ["explain", "load_rules"]
