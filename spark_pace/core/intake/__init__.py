"""The first step: put late events aside, evaluate predicates, and pack what each slot needs."""
