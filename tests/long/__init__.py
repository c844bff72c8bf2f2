"""What can run for as long as you like, each part by a command of its own.

- `browser` (`make browser`) opens pages with matches and pages of jobs in Chromium. No part of it is in CI,
  which has no browser; `tests/unit/io/test_timeline.py` checks what the pages are given.
- `chaos` (`make chaos`) kills a job on Kafka again and again, and compares its tables with those of an
  undisturbed run. `tests/integration/test_kills.py` is a short round of it. With `ALL=1` the job has alerts,
  rules that come and go, a clock, counters and a page; of that there is no short round, for it takes minutes.
- `differential` (`make differential`) compares the core with the oracle on random rules and streams,
  while every choice of a way is set. `differential/test_table.py` is a short run of it.
- `fuzz` (`make fuzz`) gives random inputs to every reader of what others wrote, and keeps its findings in
  `fuzz/corpus`. `fuzz/test_corpus.py` is a short round of it.
- `levels` (`make levels`) compares random rules over rules with the oracle, and kills jobs of
  them (`make kills`). `tests/property/test_levels_at_random.py` is a short run of the first, a test of
  `tests/integration/test_kills.py` a short round of the second.
- `row_patterns` (`make row-patterns`) compares random clauses of MATCH_RECOGNIZE with their oracle.
  `tests/property/test_row_patterns_at_random.py` is a short run of it.
- `soak` (`make soak`) keeps a job under load, and looks for losses and for memory that grows.
  `tests/integration/test_soak.py` is a short round of it.
- `store_kills` (`make store-kills`) kills the flights job with everything in a store, while requests fail,
  and compares its rows with the core's. `tests/integration/test_checkpoints_in_stores.py` has a short round.

`make test` runs the short rounds, but for those with the mark `long`, which `make test-long` runs: the soak,
the killed jobs of `levels` and of `store_kills`, the full table of `differential`, and longer rounds of
`fuzz` and `row_patterns`.
"""
