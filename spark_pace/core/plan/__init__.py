"""Rules, and the plan that says what each step does for them: frozen values that every step reads."""
