"""Rules, and the plan that says what each step does for them: immutable values that all steps read."""
