"""Values of the environment: read when a job starts, masked in what it says."""

import pytest

from spark_pace.errors import EventError, SetupError, SparkPaceError
from spark_pace.job_file.secrets import Secrets


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> Secrets:
    monkeypatch.setenv("USER_NAME", "ann")
    monkeypatch.setenv("PASSWORD", "ann's secret")
    return Secrets()


def test_references_are_replaced(secrets: Secrets):
    texts = {"jaas": 'username="${env:USER_NAME}" password="${env:PASSWORD}"', "plain": "$HOME ${other:X}"}
    assert secrets.resolve_all(texts, "source.options") == {
        "jaas": 'username="ann" password="ann\'s secret"',
        "plain": "$HOME ${other:X}",
    }
    assert repr(secrets) == "Secrets()"


def test_a_missing_variable_is_named_with_its_key(secrets: Secrets):
    with pytest.raises(SetupError) as raised:
        secrets.resolve_all({"a.b": "${env:NO_SUCH_VARIABLE}"}, "source.options")
    assert str(raised.value) == (
        "source.options.a.b — must name a variable of the environment; "
        "got ${env:NO_SUCH_VARIABLE}, which is not set. "
        "Set NO_SUCH_VARIABLE and start the job again."
    )


def test_errors_are_masked_and_leave_their_causes_behind(secrets: Secrets):
    secrets.resolve("${env:PASSWORD} ${env:USER_NAME}", "source.servers")
    with pytest.raises(EventError, match=r"^\*\*\* said \*\*\*$") as raised, secrets.kept():
        raise EventError("ann said ann's secret") from ValueError("ann's secret")
    assert raised.value.__cause__ is None
    with pytest.raises(SparkPaceError, match=r"^bad \*\*\*$"), secrets.kept():
        raise ValueError("bad ann's secret")


def test_errors_of_a_job_without_secrets_are_left_alone(secrets: Secrets):
    cause = ValueError("why")
    with pytest.raises(SetupError) as raised, secrets.kept():
        raise SetupError("ann") from cause
    assert raised.value.__cause__ is cause


@pytest.mark.parametrize("said", [
    *("ab/cd+<'\"&", "ab/cd%2B%3C%27%22%26", "ab%2fcd%2b%3c%27%22%26", "ab/cd+&lt;&#39;&#34;&amp;"),
    *("ab/cd+&lt;&#x27;&quot;&amp;", "ab/cd+&lt;&#39;&quot;&amp;", r"ab\/cd+<'\"&"),
    *(r"ab/cd+\u003c'\"\u0026", r"ab/cd+<'\\\"&"),
])  # fmt: skip
def test_a_value_is_masked_as_libraries_write_it(
    secrets: Secrets, monkeypatch: pytest.MonkeyPatch, said: str
):
    monkeypatch.setenv("PASSWORD", "ab/cd+<'\"&")
    secrets.resolve("${env:PASSWORD}", "alerts.pager.http")
    assert secrets.mask(f"<{said}>") == "<***>"


def test_the_beginning_of_a_value_is_masked_where_a_text_was_cut(secrets: Secrets):
    secrets.resolve("${env:PASSWORD}", "alerts.pager.http")
    assert [secrets.mask(f"got {said}") for said in ("ann's secre", "ann'", "ann", "ann's secret a")] == [
        *("got ***", "got ***", "got ann", "got *** a"),
    ]
