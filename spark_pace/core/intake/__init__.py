"""The first step: put aside what is no event on time, evaluate predicates, and pack what each slot needs."""
