"""The core beside the oracle, whichever ways it takes: ``python -m tests.long.differential --pairs 100000``.

A pair is a rule and a stream. Rules are drawn of every form, in every context; most streams are made so that
the rule has a match in them (`streams.py`). Each pair is run in one batch, or cut into batches between which
all state is saved and restored, while every choice of `spark_pace.ways` is set to its own answer, to never,
to always, or to one that changes (`choices.py`). Each batch must give what the oracle says can be released by
then. `table.py` counts which ways were taken in pairs with a match, for each form of rule, and names the
cells that cannot be filled, with the reason; all others must be. The run of `make test-long` aims pairs at
those that are left (`aims.py`).
"""
