"""The first step: puts late events aside, evaluates predicates, and packs the events that each slot needs."""
