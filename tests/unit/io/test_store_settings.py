"""What reaches a store comes from the settings of Spark's own client, then from the environment."""

from __future__ import annotations

import pytest

from spark_pace.errors import ConfigError
from spark_pace.io.files.addresses import StoreSettings, path_at, require_address
from spark_pace.job_file.keys import checkpoint_at

ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "env", "AWS_SECRET_ACCESS_KEY": "s3cret", "AWS_REGION": "eu-north-1"}


def given(spark: dict[str, str], environment: dict[str, str], address: str = "s3a://b/x") -> dict[str, str]:
    settings = {f"spark.hadoop.fs.s3a.{name}": value for name, value in spark.items()}
    return dict(StoreSettings.of(address, settings, environment).given)


def test_the_environment_is_taken_where_a_job_says_nothing() -> None:
    expected = {"access_key_id": "env", "secret_access_key": "s3cret", "region": "eu-north-1"}
    assert given({}, {**ENVIRONMENT, "AWS_PROFILE": "x"}) == expected
    assert given({"endpoint.region": "us-west-2"}, ENVIRONMENT)["region"] == "us-west-2"


def test_settings_of_a_bucket_come_before_those_of_all() -> None:
    spark = {"access.key": "all", "bucket.b.access.key": "own", "secret.key": "x"}
    assert given(spark, ENVIRONMENT)["access_key_id"] == "own"
    assert given(spark, ENVIRONMENT, "s3://c")["access_key_id"] == "all"


@pytest.mark.parametrize(
    ("spark", "expected"),
    [
        ({"endpoint": "h:9000"}, "https://h:9000"),
        ({"endpoint": "h:9000", "connection.ssl.enabled": "false"}, "http://h:9000"),
        ({"endpoint": "http://h:9000"}, "http://h:9000"),
    ],
)
def test_an_endpoint_has_a_scheme(spark: dict[str, str], expected: str) -> None:
    assert given(spark, {}) == {"endpoint": expected}


def test_other_stores_are_reached_by_the_environment_alone() -> None:
    assert given({"access.key": "x"}, ENVIRONMENT, "gs://b/x") == {}


@pytest.mark.parametrize(
    ("address", "endpoint", "may_be_plain"),
    [
        ("s3a://b/x", "http://one:9000", True),
        ("s3a://b/x", "https://one:9000", False),
        ("s3://b/x", "", False),
        ("gs://b/x", "", True),
        ("abfss://c@a.dfs.core.windows.net/x", "", True),
    ],
)
def test_s3_is_reached_without_encryption_by_an_endpoint_that_says_so_others_by_their_own_settings(
    address: str, endpoint: str, may_be_plain: bool
) -> None:
    settings = StoreSettings.of(address, {}, {"AWS_ENDPOINT_URL": endpoint})
    assert settings.may_be_plain(address) == may_be_plain


def test_settings_show_no_secret() -> None:
    settings = StoreSettings.of("s3://b", {}, ENVIRONMENT)
    assert str(settings) == "StoreSettings()"


def test_the_checkpoint_of_a_job_is_named_as_spark_knows_its_store() -> None:
    named = [str(checkpoint_at(f"{scheme}://b/ck", {})) for scheme in ("s3", "s3a", "gs", "hdfs")]
    assert named == ["s3a://b/ck", "s3a://b/ck", "gs://b/ck", "hdfs://b/ck"]


OF_S3 = "BUCKET/FOLDER; credentials are in the environment or under `spark`."
OF_GOOGLE = "BUCKET/FOLDER; credentials are in the environment."
OF_MICROSOFT = "CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER; credentials are in the environment."


@pytest.mark.parametrize(
    ("address", "got", "form"),
    [
        ("s3a://user:s3cret@b/x", "one with @", OF_S3),
        ("s3://s3cret@b", "one with @", OF_S3),
        ("s3a:///x", '"s3a:///x"', OF_S3),
        ("gs://s3cret@b/x", "one with @", OF_GOOGLE),
        ("gs:///x", '"gs:///x"', OF_GOOGLE),
        ("abfs://s3cret:x@b/x", "one with @", OF_MICROSOFT),
        ("abfss://x", '"abfss://x"', OF_MICROSOFT),
    ],
)
def test_an_address_with_credentials_or_without_a_bucket_is_answered_in_its_own_kind(
    address: str, got: str, form: str
) -> None:
    must = "a container, its account" if form is OF_MICROSOFT else "a bucket"
    do = f"Write {address.partition('://')[0]}://{form}"
    with pytest.raises(ConfigError) as caught:
        require_address(path_at(address))
    assert str(caught.value) == f"the address — must name {must} and no credentials; got {got}. {do}"


@pytest.mark.parametrize(
    "address", ["s3a://b/x", "gs://b.c-d", "abfss://box@account.of.azure/x", "/in", "in"]
)
def test_an_address_of_a_bucket_names_a_place(address: str) -> None:
    assert str(require_address(path_at(address))) == address


@pytest.mark.parametrize("address", ["s3n://user:s3cret@b/x", "https://user:s3cret@b/x"])
def test_an_address_of_another_kind_shows_no_credentials(address: str) -> None:
    with pytest.raises(ConfigError, match="must be a path, or the address of a store") as caught:
        require_address(path_at(address))
    assert "s3cret" not in str(caught.value)
