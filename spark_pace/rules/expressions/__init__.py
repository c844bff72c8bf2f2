"""The expression language of rules: from text to the checked trees of `spark_pace.core.expr`."""
