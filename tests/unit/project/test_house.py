"""House rules: sizes, words, style, types, and versions that must agree."""

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[3]
FOLDERS = ("spark_pace", "spark_pace_bench", "jobs", "examples", "benchmarks", "docs", "tests")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
MOST_LINES = 600
MOST_FUNCTION_LINES = 40
# the last numpy for Python 3.10 declares other shapes of arrays than the ones that the code is checked
# against everywhere else
OLD_NUMPY = ("--no-warn-unused-ignores", "--disable-error-code=assignment", "--disable-error-code=arg-type")

# left-overs, and names that say nothing
FORBIDDEN = re.compile(
    r"\b("
    + "TO"
    + r"DO|FIX"
    + r"ME|XX"
    + r"X)\b|NotImplemented"
    + r"Error|time\.sl"
    + r"eep|mark\.sk"
    + r"ip|mark\.xf"
    + r"ail"
    r"|to_pyarrow_(table|data"
    + r"set)"  # a script that reads a table so is aborted at its end, often: read_table
    r"|\bclass \w*(Manager|Helper|Utils|Impl|Factory)\b|\bclass Base\w*"
)


@cache
def functions() -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """All functions, each behind its place and name."""
    return [
        (f"{name_of(path)}:{node.lineno} {node.name}", node)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_every_file_is_short():
    assert len(SOURCES) > 700
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in SOURCES}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}


def test_every_function_is_short():
    lengths = {name: lines_of(node) for name, node in functions()}
    assert len(lengths) > 5000
    assert {name: lines for name, lines in lengths.items() if lines >= MOST_FUNCTION_LINES} == {}


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many lines it has, its docstring aside."""
    first = function.body[0]
    is_told = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    told = (first.end_lineno or 0) - first.lineno + 1 if is_told else 0
    return (function.end_lineno or 0) - function.lineno - told


def test_no_file_has_leftovers():
    lines = {
        f"{name_of(path)}:{number}": line
        for path in SOURCES
        for number, line in enumerate(path.read_text().splitlines(), 1)
    }
    assert {place: line for place, line in lines.items() if FORBIDDEN.search(line)} == {}


def test_a_module_of_tests_has_a_name_of_its_own():
    names = [path.name for path in SOURCES if path.name.startswith("test_")]
    assert len(names) > 100
    assert {name for name in names if names.count(name) > 1} == set()


def test_marks_stand_at_tests_where_alone_they_count():
    marked = [
        name
        for name, node in functions()
        if any(ast.unparse(decorator).startswith("pytest.mark.") for decorator in node.decorator_list)
    ]
    assert len(marked) > 100
    assert [name for name in marked if not name.split(" ")[1].startswith("test_")] == []


def test_the_style_is_clean():
    run("ruff", "check", ".")


def test_the_types_are_clean():
    run("mypy", f"--cache-dir={os.devnull}", *OLD_NUMPY * (sys.version_info < (3, 11)))


def run(module: str, *arguments: str) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", module, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr


def pins() -> dict[str, str]:
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    found = (re.match(r"([\w.-]+)==([\w.]+)", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


def test_every_direct_dependency_is_pinned_and_has_its_reason():
    setup = ast.parse((ROOT / "setup.py").read_text())
    lists = [
        node.value for node in setup.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.List)
    ]
    names = {re.split(r"[<>=!]", element)[0] for value in lists for element in ast.literal_eval(value)}
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    assert len(names) > 10
    assert {name for name in names if name.lower() not in pins()} == set()
    assert {
        name
        for name in names
        if not re.search(rf"^\|.*\b{re.escape(name)}\b.*\|", contributing, re.MULTILINE)
    } == set()


def test_docker_compose_uses_the_pinned_versions():
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    services = compose["services"]
    assert set(services) == {"kafka", "spark-master", "spark-worker", "data", "producer", "job"}
    for name in sorted(set(services) - {"kafka"}):
        image = re.search(
            r"FROM apache/spark:([\d.]+)-scala([\d.]+)-java(\d+)",
            services[name]["build"]["dockerfile_inline"],
        )
        assert image is not None
        assert image[1] == pins()["pyspark"]
        assert image[2] == scala_of_the_jars()
        assert int(image[3]) in (17, 21)


def test_docker_compose_runs_files_that_exist():
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    named = re.findall(r"\b(?:jobs|conf)/[\w/.-]+", compose["services"]["job"]["command"])
    assert len(named) == 3
    image = compose["x-spark"]["build"]["dockerfile_inline"]
    copied = re.findall(r"^COPY (\S+)", image, re.MULTILINE)
    assert copied == ["requirements.txt", "spark_pace"]
    modules = re.findall(
        r"python3 -m ([\w.]+)",
        image + "".join(service.get("command", "") for service in compose["services"].values()),
    )
    assert sorted(modules) == [
        "examples.flights.prepare",
        "examples.flights.producer",
        "spark_pace.spark.java.jars",
    ]
    named += [*copied, *(f"{module.replace('.', '/')}.py" for module in modules)]
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_docker_compose_has_the_broker_of_the_tests():
    from examples.servers import KAFKA_VERSION

    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert compose["services"]["kafka"]["image"] == f"apache/kafka:{KAFKA_VERSION}"


def scala_of_the_jars() -> str:
    from spark_pace.spark.java.jars import SCALA

    return SCALA


def test_the_license_is_apache_2():
    text = (ROOT / "LICENSE").read_text()
    assert (
        "Apache License" in text
        and "Version 2.0, January 2004" in text
        and "END OF TERMS AND CONDITIONS" in text
    )
