"""Random rules over rules beside the oracle: ``make levels GRAPHS=10000``.

A graph is a few rules that read events, matches or both, in any order of the levels, with a stream that is
cut into batches. Half of them are run with all state saved and restored between two batches; every choice of
`spark_pace.ways` is set as in the differential test. Every rule's matches must be the oracle's; in a quarter
of the graphs they must also go out with the frontier that lets them. The short runs in CI are
`tests/property/test_levels_at_random.py` and `tests/property/test_upper_frontiers.py`.
`kills.py` kills jobs of such graphs.
"""
