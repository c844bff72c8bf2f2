"""Which part may import which, and how much may stand in a folder.

The table is the architecture; the tests hold the code to it.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ENGINE, DRIVER = "spark_pace", "spark_pace_bench"
MOST_ENTRIES = 20
NO_MODULES = {"__pycache__", "py.typed"}

PACKAGES_OF_SPARK = {"delta", "numpy", "pandas", "pyarrow", "pyspark"}
# part -> what it may import besides the standard library and itself; the longest fitting name counts
ALLOWED = {
    "spark_pace": set(),
    "spark_pace.errors": set(),
    "spark_pace.arguments": {"spark_pace.errors", "spark_pace.core"},
    "spark_pace.api": {"spark_pace", "pyarrow", "pyspark"},
    "spark_pace.ways": set(),
    "spark_pace.preflight": {"spark_pace.errors"},
    "spark_pace.core": {"spark_pace.errors", "spark_pace.ways", "numpy", "pyarrow"},
    "spark_pace.core.match.compiled": {"spark_pace.core", "spark_pace.machine_code", "numpy"},
    "spark_pace.machine_code": {"spark_pace.ways", "llvmlite", "numba", "numpy"},
    "spark_pace.rules": {
        *("spark_pace.errors", "spark_pace.ways", "spark_pace.core", "numpy", "pyarrow", "sqlglot", "yaml"),
    },
    "spark_pace.rules.document": {
        *("spark_pace.errors", "spark_pace.io.files", "yaml"),
    },
    "spark_pace.core.match.row_patterns.match_so_far": {
        *("spark_pace.core", "spark_pace.machine_code", "numpy"),
    },
    "spark_pace.core.match.row_patterns.tested_search": {"spark_pace.core", "spark_pace.machine_code"},
    "spark_pace.core.match.row_patterns.compiled": {
        *("spark_pace.core", "spark_pace.machine_code", "numpy"),
    },
    "spark_pace.io": {"spark_pace.errors", "spark_pace.ways", "spark_pace.core", "numpy", "pyarrow"},
    "spark_pace.io.files": {"spark_pace.errors"},
    "spark_pace.io.files.object_store": {"spark_pace.errors", "spark_pace.io.files", "obstore"},
    "spark_pace.io.text.scan": {"spark_pace.machine_code", "numpy"},
    "spark_pace.io.delta_tables": {
        *("spark_pace.errors", "spark_pace.core", "spark_pace.io"),
        *("delta", "deltalake", "numpy", "pyarrow"),
    },
    "spark_pace.io.own_tables": {
        *("spark_pace.errors", "spark_pace.io.delta_log", "spark_pace.io.files", "spark_pace.io.query"),
        *("pyarrow", "deltalake"),
    },
    "spark_pace.io.replay": {"spark_pace.errors", "spark_pace.core", "spark_pace.io", "pandas", "pyarrow"},
    "spark_pace.io.query": {
        *("spark_pace.errors", "spark_pace.io.files", "pyarrow", "deltalake"),
    },
    "spark_pace.reasons": {"spark_pace.errors", "spark_pace.core", "spark_pace.io", "numpy", "pyarrow"},
    "spark_pace.job_file": {
        *("spark_pace.errors", "spark_pace.core", "spark_pace.rules"),
        "spark_pace.io.files.addresses",
    },
    "spark_pace.spark": {
        *("spark_pace.errors", "spark_pace.ways", "spark_pace.core", "spark_pace.io", "spark_pace.preflight"),
        *PACKAGES_OF_SPARK,
    },
    "spark_pace.spark.internals": {
        *("spark_pace.errors", "spark_pace.spark.internals", "py4j", "pyarrow", "pyspark"),
    },
    "spark_pace.spark.sources": {
        *("spark_pace.errors", "spark_pace.core", "spark_pace.io", "spark_pace.job_file"),
        *("spark_pace.spark.checkpoint", "spark_pace.spark.java", "spark_pace.spark.stages"),
        "spark_pace.spark.internals",
        *PACKAGES_OF_SPARK,
    },
    "spark_pace.spark.row_patterns": {
        *("spark_pace.errors", "spark_pace.core", "spark_pace.io", "spark_pace.rules.row_patterns"),
        *("spark_pace.rules.match_recognize", "spark_pace.spark.detect", "spark_pace.spark.internals"),
        *PACKAGES_OF_SPARK,
    },
    "spark_pace.spark.stages": {
        *("spark_pace.errors", "spark_pace.ways", "spark_pace.core", "spark_pace.io"),
        *("spark_pace.spark.checkpoint", "spark_pace.spark.internals", *PACKAGES_OF_SPARK),
    },
    "spark_pace.spark.queries": {
        *("spark_pace.errors", "spark_pace.core", "spark_pace.io", "spark_pace.job_file"),
        *("spark_pace.spark", "pyspark"),
    },
    "spark_pace.spark.start": {
        *("spark_pace.errors", "spark_pace.core", "spark_pace.io", "spark_pace.job_file", "spark_pace.spark"),
    },
    "spark_pace.alerts": {
        *("spark_pace.errors", "spark_pace.core", "spark_pace.io", "spark_pace.job_file"),
        *("pyarrow", "deltalake", "urllib3"),
    },
    "spark_pace.alerts.kafka_topic": {
        *("spark_pace.errors", "spark_pace.alerts", "spark_pace.job_file", "confluent_kafka"),
    },
    "spark_pace.prometheus": {
        *("spark_pace.errors", "spark_pace.io", "spark_pace.spark.summary", "prometheus_client"),
    },
    "spark_pace.watching": {
        *("spark_pace.errors", "spark_pace.core", "spark_pace.io", "spark_pace.job_file"),
        *("spark_pace.alerts", "spark_pace.prometheus", "spark_pace.spark.running"),
        *("spark_pace.spark.summary", "numpy", "pyarrow", "rich"),
    },
    "spark_pace.job": {"spark_pace", "pyspark", "pyarrow"},
    "spark_pace.cli": {"spark_pace", "click", "rich", "numpy", "pyarrow"},
    "spark_pace_bench": {
        *("spark_pace.errors", "spark_pace.core", "spark_pace.io", "spark_pace.job_file", "spark_pace.rules"),
        *("spark_pace.spark.checkpoint", "jinja2", "markupsafe", "matplotlib", "numpy", "psutil", "pyarrow"),
    },
    "spark_pace_bench.command": {"spark_pace.errors", "spark_pace.job_file", "spark_pace_bench", "rich"},
}
# Spark behind its documented face, which one module touches
INSIDE = "spark_pace.spark.internals"
PRIVATE = re.compile(
    r"\bpy4j\b|\borg\.apache\.spark\.|\bpyspark\.(daemon|java_gateway|worker|sql\.(classic|pandas|worker))\b"
    r"|\bstreaming\.sql\.|\b_PYSPARK_"
)
OWN = {"cls", "os", "self"}  # `os._exit` is documented
# the core has no clock, no log and no chance in it
FORBIDDEN_IN_CORE = {
    *("logging", "os", "random", "secrets", "socket"),
    *("subprocess", "threading", "time", "uuid"),
}

# of parameter contexts: each is one object, nothing else knows it by its name
POLICIES = {"each", "latest", "next", "earliest", "all", "zero", "selected"}

# each imports itself by others, where imports in functions and for types count too
KNOWN_IN_CIRCLES = {
    "spark_pace.core.match.candidates",
    "spark_pace.core.match.compiled_search.sequence_search",
    "spark_pace.core.match.search.any_order",
    *("spark_pace.core.match.search.between", "spark_pace.core.match.search.limits"),
    *("spark_pace.core.match.search.row_tables", "spark_pace.core.match.search.search"),
}


def modules() -> list[Path]:
    return sorted(path for package in (ENGINE, DRIVER) for path in (ROOT / package).rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree(path)))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part_of(name: str) -> str:
    return max((part for part in ALLOWED if name == part or name.startswith(f"{part}.")), key=len)


def imported(path: Path) -> Iterator[str]:
    """What is imported with this module: at its top, not in functions, not for type checking only."""
    waiting: list[ast.AST] = list(tree(path).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting += node.orelse
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            waiting += ast.iter_child_nodes(node)


def imported_anywhere(path: Path) -> Iterator[str]:
    """What is imported with this module or by it: in functions and for type checking too."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def folders() -> list[Path]:
    return sorted({path.parent for path in modules()})


@cache
def imports() -> dict[str, set[str]]:
    """Of every module, the other modules of the package that are imported with it."""
    return others_of(imported)


@cache
def all_imports() -> dict[str, set[str]]:
    """Of every module, the other modules of the package that it imports anywhere."""
    return others_of(imported_anywhere)


def others_of(named: Callable[[Path], Iterator[str]]) -> dict[str, set[str]]:
    names = {module_name(path) for path in modules()}

    def module_of(name: str) -> str:
        return name if name in names else module_of(name.rpartition(".")[0])

    return {
        module_name(path): {
            module_of(name) for name in named(path) if covers(ENGINE, name) or covers(DRIVER, name)
        }
        - {module_name(path)}
        for path in modules()
    }


def reached(names: set[str]) -> set[str]:
    """What the modules import, what that imports, and so on."""
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        found |= waiting
        waiting = set().union(*(all_imports()[name] for name in waiting)) - found
    return found


def imports_of_rooms(folder: Path) -> dict[str, set[str]]:
    """Of every room of a folder, a sub-folder or a file, the other rooms that it imports from."""
    inside = module_name(folder)

    def room_of(name: str) -> str:
        return name.removeprefix(inside).split(".")[1] if name != inside else "__init__"

    rooms: dict[str, set[str]] = {}
    for name, others in imports().items():
        if covers(inside, name):
            found = {room_of(other) for other in others if covers(inside, other)}
            rooms.setdefault(room_of(name), set()).update(found - {room_of(name)})
    return rooms


def circles(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """What is left when names that import nobody, or that nobody imports, are taken away again and again."""
    kept = {name for name, others in graph.items() if others} & set().union(*graph.values())
    if kept == set(graph):
        return graph
    return circles({name: graph[name] & kept for name in kept})


def private_touches(path: Path) -> list[str]:
    """Where a module names what is Spark's own, or takes what may be Spark's and has an underscore."""
    text = path.read_text()
    named = [f"{path}:{number}" for number, line in enumerate(text.splitlines(), 1) if PRIVATE.search(line)]
    if "pyspark" not in text and "spark" not in path.relative_to(ROOT).parts:
        return named
    taken = [
        f"{path}:{node.lineno}"
        for node in nodes(path)
        if isinstance(node, ast.Attribute)
        and re.match("_[a-z]", node.attr)
        and not (isinstance(node.value, ast.Name) and node.value.id in OWN)
    ]
    return named + taken


def covers(allowed: str, name: str) -> bool:
    return name == allowed or name.startswith(f"{allowed}.")


def strangers(path: Path) -> list[str]:
    part = part_of(module_name(path))
    allowed = ALLOWED[part] | {part} if part != "spark_pace" else ALLOWED[part]
    return sorted(
        name
        for name in imported(path)
        if name.split(".")[0] not in sys.stdlib_module_names and not any(covers(a, name) for a in allowed)
    )


def test_every_module_imports_only_what_its_part_may():
    found = {module_name(path): strangers(path) for path in modules()}
    assert len(found) > 250
    assert {name: others for name, others in found.items() if others} == {}


def test_the_engine_imports_the_load_driver_where_the_command_begins_and_nowhere_else():
    engine = [path for path in modules() if covers(ENGINE, module_name(path))]
    assert [module_name(path) for path in engine if DRIVER in path.read_text()] == ["spark_pace.cli.main"]
    main = tree(ROOT / "spark_pace" / "cli" / "main.py")
    (bench,) = (node for node in main.body if isinstance(node, ast.FunctionDef) and node.name == "bench")
    assert f"from {DRIVER}.command import bench_command" in map(ast.unparse, bench.body)


def test_the_core_has_no_clock_no_log_and_no_chance():
    core = [path for path in modules() if covers("spark_pace.core", module_name(path))]
    assert len(core) > 100
    for path in core:
        assert {name.split(".")[0] for name in imported(path)} & FORBIDDEN_IN_CORE == set(), path
        attributes = {node.attr for node in nodes(path) if isinstance(node, ast.Attribute)}
        assert attributes & {"now", "utcnow", "today"} == set(), path


def compared(every: list[ast.AST]) -> Iterator[str]:
    """The texts in comparisons, in cases, and in the keys of a mapping but `each`, one of explain's."""
    for node in every:
        parts: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            parts = [node.value]
        elif isinstance(node, ast.Dict):
            parts = [key for key in node.keys if key is not None and ast.unparse(key) != "'each'"]
        for part in parts:
            for inner in ast.walk(part):
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                    yield from (word.strip() for word in inner.value.split(","))


@pytest.mark.parametrize(
    "code", ["x.selection == 'each'", "x in ('next', y)", "str(x) != 'next, selected'", "{'latest': 1}[x]"]
)
def test_a_comparison_with_a_policy_is_found(code: str):
    assert POLICIES & set(compared(list(ast.walk(ast.parse(code)))))


def test_only_the_contexts_know_their_names():
    others = [path for path in modules() if not covers("spark_pace.core.match.contexts", module_name(path))]
    found = {module_name(path): POLICIES & set(compared(nodes(path))) for path in others}
    assert len(others) > 100
    assert {name: words for name, words in found.items() if words} == {}


def test_one_module_alone_touches_what_is_private_to_spark():
    looked_at = [*modules(), *sorted((ROOT / "jobs").glob("*.py"))]
    touching = [module_name(path) for path in looked_at if private_touches(path)]
    assert touching == [INSIDE]


def test_every_folder_has_few_entries():
    entries = {
        module_name(folder): sorted(path.name for path in folder.iterdir() if path.name not in NO_MODULES)
        for folder in folders()
    }
    assert {folder: names for folder, names in entries.items() if len(names) > MOST_ENTRIES} == {}


def test_modules_import_each_other_in_the_known_circles_alone():
    found = {name for name, others in all_imports().items() if name in reached(others)}
    assert found == KNOWN_IN_CIRCLES


def test_the_rooms_of_a_folder_import_each_other_in_no_circle():
    found = {module_name(folder): circles(imports_of_rooms(folder)) for folder in folders()}
    assert {folder: circle for folder, circle in found.items() if circle} == {}


def test_a_circle_is_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}
    assert circles(graph) == {"b": {"c"}, "c": {"b"}}


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import spark_pace", ("pyspark", "pandas", "pyarrow", "numpy", "yaml", "click")),
        ("import spark_pace.cli", ("pyspark", "pandas", "pyarrow", "numpy", "rich")),
        ("import spark_pace.core.local_run", ("pyspark", "pandas", "yaml", "sqlglot", "numba")),
        ("import spark_pace.cli.replay_command", ("pyspark", "pandas", "deltalake")),
        ("import spark_pace.job", ("spark_pace.alerts", "urllib3", "confluent_kafka", "prometheus_client")),
        (
            "import spark_pace.core.match.row_patterns.result",
            ("pyspark", "pandas", "yaml", "sqlglot", "numba"),
        ),
    ],
)
def test_an_import_loads_nothing_heavy(statement: str, absent: tuple[str, ...]):
    code = f"{statement}; import sys; print([name for name in {absent!r} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
