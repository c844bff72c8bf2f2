"""Random rules over rules beside the oracle: ``python -m tests.long.levels --graphs 10000``.

A graph is a few rules that read events, matches or both, in any order of the levels, with a stream that is
cut into batches. Half of them are run with all state saved and restored between two batches; every choice of
`spark_pace.ways` is set as in the differential test. Every rule's matches must be the oracle's. The short run
in CI is `tests/property/test_levels_at_random.py`. `kills.py` kills jobs of such graphs.
"""
