import pytest

from config.env import Environment, database_config, environment, environment_secret

KEY = "k" * 40


def problems(variables, **values):
    variables(**values)
    with pytest.raises(SystemExit) as caught:
        environment()
    return str(caught.value)


def test_everything_has_a_default(variables):
    found = environment()
    assert (found.port, found.debug, found.max_upload_bytes, found.redis_url) == (8000, False, 100_000_000, "")
    assert found.public_url == "http://localhost:8000"
    assert environment() is found


def test_values_are_typed(variables):
    variables(
        LECTERN_DEBUG="yes",
        LECTERN_ALLOWED_HOSTS="a.example, b.example",
        LECTERN_SWEEP_SECONDS="0.5",
        LECTERN_ALLOWED_PRIVATE_NETWORKS="127.0.0.1/32:8001,8002",
        LECTERN_SECRET_KEY_PREVIOUS="old, older",
        LECTERN_SITE_URL="https://kb.example.org/",
        LECTERN_PORT="",
    )
    found = environment()
    assert (found.debug, found.allowed_hosts, found.sweep_seconds) == (True, ("a.example", "b.example"), 0.5)
    assert [network.ports for network in found.allowed_private_networks] == [(8001, 8001), (8002, 8002)]
    assert found.secret_key_previous == ("old", "older")
    assert (found.public_url, found.port) == ("https://kb.example.org", 8000)


def test_the_prefixed_name_wins_and_the_plain_one_works(variables):
    variables(DATABASE_URL="postgres://a@h/plain", REDIS_URL="redis://h")
    assert environment().database_url.endswith("plain")
    variables(LECTERN_DATABASE_URL="postgres://a@h/prefixed")
    assert environment().database_url.endswith("prefixed")


def test_a_file_holds_a_value(variables, tmp_path):
    path = tmp_path / "key"
    path.write_text(KEY + "\n")
    variables(LECTERN_SECRET_KEY_FILE=str(path))
    assert environment().secret_key == KEY
    assert "both set" in problems(variables, LECTERN_SECRET_KEY=KEY)


def test_an_unreadable_file_is_named(variables, tmp_path):
    assert "DATABASE_URL_FILE names" in problems(variables, DATABASE_URL_FILE=str(tmp_path / "absent"))


def test_every_problem_is_told_at_once(variables):
    said = problems(
        variables,
        LECTERN_DEBUG="maybe",
        LECTERN_PORT="99999",
        LECTERN_STORAGE="ftp",
        LECTERN_ALLOWED_HOST="a",
        LECTERN_ALLOWED_PRIVATE_NETWORKS="x",
    )
    assert "LECTERN_DEBUG is 'maybe'" in said
    assert "true or false" in said
    assert "whole number from 1 to 65535" in said
    assert "one of file, s3" in said
    assert "did you mean LECTERN_ALLOWED_HOSTS?" in said
    assert "LECTERN_ALLOWED_PRIVATE_NETWORKS is wrong: 'x'" in said


@pytest.mark.parametrize(
    "values",
    [
        {"LECTERN_SECRET_KEY": "hunter2"},
        {"DATABASE_URL": "mysql://u:hunter2@h/d"},
        {"DATABASE_URL": "postgres://u:hunter2%zz@h/d"},
        {"DATABASE_URL": "postgres://u:hunter2@h:port/d"},
        {"REDIS_URL": "amqp://u:hunter2@h"},
        {"LECTERN_S3_SECRET_KEY": "hunter2"},
    ],
)
def test_a_secret_is_never_shown(variables, values):
    said = problems(variables, **values)
    assert "hunter2" not in said
    assert next(iter(values)) in said


def test_a_repr_shows_no_secret(variables):
    variables(
        LECTERN_SECRET_KEY=KEY,
        DATABASE_URL="postgres://u:hunter2@h/d",
        REDIS_URL="redis://:hunter2@h",
        LECTERN_SECRET_KEY_PREVIOUS="hunter2",
    )
    assert "hunter2" not in repr(environment())
    assert KEY not in repr(environment())


def test_settings_that_need_each_other(variables):
    assert "LECTERN_S3_BUCKET is not set" in problems(variables, LECTERN_STORAGE="s3")
    variables(LECTERN_STORAGE="file")
    assert "longer than LECTERN_SLICE_SECONDS" in problems(variables, LECTERN_LEASE_SECONDS="20")


def test_what_kubernetes_sets_for_a_service_of_this_name_is_no_setting(variables):
    variables(
        LECTERN_PORT="tcp://10.0.0.1:8000",
        LECTERN_SERVICE_HOST="10.0.0.1",
        LECTERN_PORT_8000_TCP_ADDR="10.0.0.1",
        LECTERN_WEB_SERVICE_PORT="1",
    )
    assert environment().port == 8000


def test_secrets_of_the_environment(variables, tmp_path):
    (tmp_path / "value").write_text("from a file")
    variables(LECTERN_SECRET__OPENAI_KEY="sk", LECTERN_SECRET__OTHER_FILE=str(tmp_path / "value"))
    environment()
    assert environment_secret("openai-key") == "sk"
    assert environment_secret("other") == "from a file"
    assert environment_secret("absent") is None


def test_every_setting_is_described():
    assert [name for name, field in Environment.model_fields.items() if not field.description] == []


def test_database_urls():
    found = database_config("postgresql://us%40er:p%2Fw%25@db.example:5433/kb?sslmode=require&options=-c%20jit%3Doff")
    assert (found["USER"], found["PASSWORD"], found["HOST"], found["PORT"], found["NAME"]) == ("us@er", "p/w%", "db.example", "5433", "kb")
    assert found["OPTIONS"] == {"sslmode": "require", "options": "-c jit=off"}
    assert database_config("postgres://lectern@/kb?host=/run/pg&port=5499") | {"OPTIONS": {}} == {
        "ENGINE": "config.postgres",
        "NAME": "kb",
        "USER": "lectern",
        "PASSWORD": "",
        "HOST": "/run/pg",
        "PORT": "5499",
        "OPTIONS": {},
    }
    assert database_config("postgres://u@[::1]:1/kb")["HOST"] == "::1"


@pytest.mark.parametrize(
    "url", ["", "kb", "sqlite:///x", "postgres://u@h", "postgres://u@h/kb?nonsense=1", "postgres://u@h:0/kb", "postgres://u@h:99999/kb"]
)
def test_database_urls_that_are_refused(url):
    with pytest.raises(ValueError, match=r"accepted|port"):
        database_config(url)
