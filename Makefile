# Everything a newcomer runs. `make demo` and `make test` set up what they need: .venv/ and jars/ in this directory.
# Re-runs are fast: .venv/.ready and jars/.ready say that a step is done.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.10 python; do \
	$$p -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 14))' 2>/dev/null && echo $$p && break; done)

COMPILED := spark_pace/cli/kernels.py $(addprefix spark_pace/core/match/row_patterns/,compiled.py match_so_far.py tested_search.py) $(wildcard spark_pace/core/match/compiled/*.py spark_pace/machine_code/*.py spark_pace/io/text/scan*.py)

# jars are fetched and their archive is made while searches are compiled
MAKEFLAGS += --jobs=3

.DEFAULT_GOAL := help
.PHONY: help setup preflight demo kafka kafka-stop test test-stores test-long test-spark site browser chaos kills store-kills differential levels row-patterns fuzz lint bench bench-full worst ordering compared pairs soak catchup clean distclean demo-kafka cluster-demo cluster-store-demo

help:  ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.ready jars/.ready jars/.archived $(VENV)/.compiled  ## Install everything into this directory (.venv, jars)

preflight:
	@test -n "$(PYTHON)" || { echo "python — must be Python 3.10 to 3.13; got none on the PATH. Install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -m spark_pace.preflight

# modules are compiled when they are first loaded: to compile all of them here takes longer
$(VENV)/.ready: requirements.txt setup.py Makefile | preflight
	$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip download --quiet --no-deps --retries 1 --timeout 30 --dest $(VENV)/probe $$(grep -o '^mdurl==[0-9.]*' requirements.txt) >$(VENV)/probe.log 2>&1 \
		|| { echo "network — pip must reach a package index; got: $$(tail -n 1 $(VENV)/probe.log) Check the connection, or pip's index and proxy settings." >&2; exit 1; }
	@rm -rf $(VENV)/probe $(VENV)/probe.log
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

jars/.ready: spark_pace/spark/java/jars.py requirements.txt | $(VENV)/.ready
	$(BIN)/python -m spark_pace.spark.java.jars
	@touch $@

# Without these two jobs start as well, but take longer.
jars/.archived: jars/.ready spark_pace/cli/archive.py spark_pace/spark/java/launch.py
	@$(BIN)/python -m spark_pace.cli.archive || true
	@touch $@

$(VENV)/.compiled: $(VENV)/.ready $(COMPILED)
	@$(BIN)/python -m spark_pace.cli.kernels || true
	@touch $@

jars/kafka/.ready: examples/servers.py | $(VENV)/.ready
	$(BIN)/python -m examples.servers broker
	@touch $@

jars/store/.ready: examples/servers.py | $(VENV)/.ready
	$(BIN)/python -m examples.servers store
	@touch $@

jars/s3a/.ready: spark_pace/spark/java/jars.py | $(VENV)/.ready
	$(BIN)/python -m spark_pace.spark.java.jars s3a
	@touch $@

jars/hdfs/.ready: examples/servers.py | $(VENV)/.ready
	$(BIN)/python -m examples.servers hdfs
	@touch $@

demo: setup  ## Run the rules in conf/rules over a year of real flights, on Spark, and show the results
	$(BIN)/python -m examples.flights.demo

kafka: setup jars/kafka/.ready  ## Start a Kafka broker on this machine (PORT=9092)
	$(BIN)/python -m examples.kafka.broker start --port $(or $(PORT),9092)

kafka-stop: $(VENV)/.ready  ## Stop it
	$(BIN)/python -m examples.kafka.broker stop

demo-kafka: setup jars/kafka/.ready  ## The same through a Kafka broker, live: a producer replays the year (SPEED=800000 times as fast)
	$(BIN)/python -m examples.flights.demo_kafka --speed $(or $(SPEED),800000)

cluster-demo: setup  ## The same on a cluster: a master and workers on this machine, by spark-submit (KILLS=3: kill some of it in a run more)
	$(BIN)/python -m examples.flights.demo_cluster --kills $(or $(KILLS),0)

cluster-store-demo: setup jars/s3a/.ready jars/store/.ready  ## The same with everything in an object store; as root, each worker on a machine of its own (KILLS=4)
	$(BIN)/python -m examples.flights.demo_cluster --store --kills $(or $(KILLS),0)

TESTING = --numprocesses 3 --dist loadfile --no-loadscope-reorder --durations 30

test: setup jars/kafka/.ready jars/store/.ready jars/s3a/.ready  ## Run all tests but those of the next two, lint and types included
	$(BIN)/python -m pytest -m 'not long and not stores' $(TESTING)

test-stores: setup jars/store/.ready jars/s3a/.ready jars/hdfs/.ready  ## Run the tests with object stores and HDFS that `make test` leaves out
	$(BIN)/python -m pytest -m 'stores and not long' $(TESTING)

test-long: setup jars/kafka/.ready jars/store/.ready jars/s3a/.ready jars/hdfs/.ready  ## Run the long tests: a soak, a cluster with kills, docker compose, the full differential table, more random examples and others
	$(BIN)/python -m pytest -m long $(TESTING); code=$$?; \
	HYPOTHESIS_PROFILE=long HYPOTHESIS_EXAMPLES=40 $(BIN)/python -m pytest -m 'hypothesis and not long' $(TESTING) && exit $$code

SPARK_VENV = .venv-spark-$(VERSION)

SPARK_TESTS := internals job views delta_source detect sources_in_spark row_patterns_in_spark levels_in_spark folds_in_spark text_in_spark types_in_spark alerts_in_spark

# an older PySpark leaves connections to Python's collection of garbage; the jars of S3 fit the newest alone
test-spark:  ## Run the tests of Spark on another version of PySpark (VERSION=4.0.2)
	@test -n "$(VERSION)" || { echo "VERSION — must be a version of PySpark; got none. For example: make test-spark VERSION=4.0.2" >&2; exit 1; }
	@$(MAKE) --no-print-directory $(SPARK_VENV)/.ready
	SPARK_PACE_JARS=$(CURDIR)/$(SPARK_VENV)/jars $(SPARK_VENV)/bin/python -m pytest --numprocesses 2 --dist loadfile -m 'not in_parts and not stores and not over_with' -W ignore::ResourceWarning -W ignore::pytest.PytestUnraisableExceptionWarning \
		$(or $(ONLY),$(addprefix tests/spark/test_,$(addsuffix .py,$(SPARK_TESTS))))

$(SPARK_VENV)/.ready: requirements.txt setup.py | preflight
	$(PYTHON) -m venv $(SPARK_VENV)
	grep -v -E '^(pyspark|py4j|pyarrow)==' requirements.txt >$(SPARK_VENV)/requirements.txt
	$(SPARK_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r $(SPARK_VENV)/requirements.txt 'pyspark==$(VERSION)' 'pyarrow<26'
	$(SPARK_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(SPARK_VENV)/bin/python -m spark_pace.spark.java.jars --into $(SPARK_VENV)/jars
	@touch $@

site: $(VENV)/.ready  ## Make a site of the documents in site/, to be opened in a browser, with a search
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

differential: $(VENV)/.ready  ## Compare the core with the oracle on random rules and streams, whichever ways it takes (PAIRS=100000 SEED=0)
	$(BIN)/python -m tests.long.differential --pairs $(or $(PAIRS),100000) --seed $(or $(SEED),0)

browser: $(VENV)/.ready  ## Open pages with matches, of jobs and of the site in Chromium, and check what it draws
	$(BIN)/python -m tests.long.browser

levels: $(VENV)/.ready  ## Compare random rules over rules, folds and panes with the oracle (GRAPHS=10000 SEED=0)
	$(BIN)/python -m tests.long.levels --graphs $(or $(GRAPHS),10000) --seed $(or $(SEED),0)

row-patterns: $(VENV)/.ready  ## Compare random clauses of MATCH_RECOGNIZE with the oracle (CLAUSES=50000 SEED=0)
	$(BIN)/python -m tests.long.row_patterns --clauses $(or $(CLAUSES),50000) --seed $(or $(SEED),0)

fuzz: $(VENV)/.ready  ## Feed random inputs to every reader of what others wrote (INPUTS=1000000)
	$(BIN)/python -m tests.long.fuzz --inputs $(or $(INPUTS),1000000)

chaos: setup jars/kafka/.ready  ## Kill a job on Kafka again and again and compare what it writes (KILLS=100 ORDERING=watermark or sources, or ALL=1)
	$(BIN)/python -m tests.long.chaos.run --kills $(or $(KILLS),100) --ordering $(or $(ORDERING),watermark) $(if $(ALL),--all)

kills: setup  ## Kill jobs of random graphs of rules at random moments and compare them with the oracle (JOBS=20 KILLS=6 SEED=0)
	$(BIN)/python -m tests.long.levels.kills --jobs $(or $(JOBS),20) --kills $(or $(KILLS),6) --seed $(or $(SEED),0)

store-kills: setup jars/s3a/.ready jars/store/.ready jars/hdfs/.ready  ## Kill the flights job with everything in an object store, while requests fail (KILLS=100 SHARE=0.01), or on HDFS (HDFS=1)
	$(BIN)/python -m tests.long.store_kills --kills $(or $(KILLS),100) --share $(or $(SHARE),0.01) --seed $(or $(SEED),0) $(if $(HDFS),--hdfs)

lint: $(VENV)/.ready  ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: setup  ## Measure it beside Spark's own readers, ten minutes, results checked first (ONLY="rules keys")
	$(BIN)/python -m benchmarks.run $(ONLY)

bench-full: setup jars/kafka/.ready  ## The same at full length, with Flink CEP and Esper in the same run (needs Maven and JDK 17)
	$(BIN)/python -m benchmarks.run --sizes full $(ONLY)

worst: $(VENV)/.ready  ## Measure the slowest rules of the core, and look for slower ones at random (RULES=200 SEED=0)
	$(BIN)/python -m benchmarks.worst --rules $(or $(RULES),200) --seed $(or $(SEED),0)

soak: setup jars/kafka/.ready  ## Run a job under load for long and look for losses and growth (MINUTES=30 RATE=2000 BURST=10)
	$(BIN)/python -m tests.long.soak.run

catchup: setup jars/kafka/.ready  ## Read a backlog of five million events in bounded batches, beside Spark's own reader
	$(BIN)/python -m benchmarks.run --sizes full catchup

pairs: setup  ## Run the Pairs benchmark, validated (SF=1 MINUTES=4 of its hour; KILLS=20: kill the job meanwhile)
	$(BIN)/python -m examples.pairs.run --scale $(or $(SF),1) --minutes $(or $(MINUTES),4) --kills $(or $(KILLS),0)

ordering: setup  ## Compare the two orderings on a fast and a slow producer: what is late, how long matches take
	$(BIN)/python -m benchmarks.ordering --job

compared: $(VENV)/.ready  ## Run the patterns of docs/compared.md in Flink CEP, Esper and Flink SQL (needs Maven and JDK 17)
	$(BIN)/python -m benchmarks.compared

clean:  ## Remove what runs produced (data, out, site, caches)
	rm -rf data out site benchmarks/peers/target spark-warehouse metastore_db derby.log .pytest_cache .mypy_cache .ruff_cache .hypothesis

distclean: clean  ## Remove the set-up as well
	rm -rf $(VENV) .venv-spark-* jars *.egg-info spark_pace/machine_code/shipped
