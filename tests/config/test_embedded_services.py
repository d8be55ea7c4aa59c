"""The launcher's promises, on real servers, as root and as an ordinary user."""

import contextlib
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path

import psycopg
import pytest
import redis

from config.embedded import ServiceError, postgres, running, start_services, stop_services
from config.embedded.binaries import postgres_programs
from config.embedded.homes import account, barred, server_account

sys.path.insert(0, str(Path(__file__).parent))
from embedded_user import IS_ROOT, USERS, make_site, run_code, start_code

as_root = pytest.mark.skipif(not IS_ROOT, reason="only root can become another user")


@pytest.fixture(scope="module")
def open_folder():
    """A folder that every user can enter (pytest's own are closed to others)."""
    folder = Path(tempfile.mkdtemp(prefix="lectern-"))
    folder.chmod(0o777)
    yield folder
    for credentials in folder.rglob("credentials.json"):
        with contextlib.suppress(ServiceError):
            stop_services(credentials.parent)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def site(open_folder):
    return make_site(open_folder)


@pytest.fixture(scope="module")
def server(open_folder):
    """Both services of one home, shared by the tests that leave them running."""
    home = open_folder / "shared"
    yield start_services(home=home, test_mode=True)
    stop_services(home)


EVERYTHING = """
first = embedded.start_services(home=home)
again = embedded.start_services(home=home)
with psycopg.connect(first.owner_url) as owner:
    folded = owner.execute("SELECT lower('ÉÀ'), 'ÀB' ILIKE 'àb', to_tsvector('simple', 'ÉTÉ')::text, similarity('ÉTÉ', 'été')").fetchone()
    locale = owner.execute(
        "SELECT datlocprovider, datlocale, pg_encoding_to_char(encoding) FROM pg_database WHERE datname = 'lectern'"
    ).fetchone()
server = psutil.Process(first.postgres_pid)
environment = server.environ()
began = time.monotonic()
idle = psycopg.connect(first.database_url)
stopped = embedded.stop_services(home)
print(json.dumps({
    "user": server.username() if server.is_running() else None, "same": first == again, "folded": folded, "locale": locale,
    "found": embedded.running(home) is not None, "stopped": stopped, "seconds": time.monotonic() - began,
    "locales": {name: value for name, value in environment.items() if name.startswith(("LANG", "LC_", "PG"))},
    "mode": (home / "credentials.json").stat().st_mode & 0o777,
    "warm": embedded.start_services(home=home).database_url == first.database_url,
    "last": embedded.stop_services(home),
}))
"""


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("depth", [1, 6], ids=["short", "long"])
def test_start_adopt_stop(open_folder, site, user, depth):
    home = open_folder.joinpath(user, *["a folder with a long name, é and a space"] * depth, "home")
    home.parent.mkdir(parents=True, exist_ok=True)
    for folder in home.relative_to(open_folder).parents:
        (open_folder / folder).chmod(0o777)
    # A caller's locale and Postgres variables must reach neither server.
    hostile = {"LANG": "C", "LC_ALL": "POSIX", "LC_COLLATE": "C", "PGDATA": "/nowhere", "PGPORT": "1", "PGHOST": "nowhere.invalid"}
    result = run_code(EVERYTHING, user=user, site=site, home=home, variables=hostile)
    assert result["same"]
    assert result["folded"] == ["éà", True, "'été':1", 1.0]
    assert result["locale"] == ["b", "C.UTF-8", "UTF8"]
    assert set(result["locales"]) == {"LC_ALL"}
    assert result["mode"] == 0o600
    assert result["stopped"] == result["last"] == ["valkey", "postgres"]
    assert not result["found"]
    assert result["seconds"] < 5, "a client that stays connected must not hold the shutdown up"
    assert result["warm"], "the URL is the same after a restart, so that processes that hold it reconnect"


@pytest.mark.parametrize("user", USERS)
def test_a_killed_launcher_leaves_servers_that_the_next_one_adopts(open_folder, site, user):
    home = open_folder / f"killed-{user}"
    code = (
        "found = embedded.start_services(home=home, test_mode=True)\n"
        "print(found.postgres_pid, found.valkey_pid, flush=True)\n"
        "time.sleep(60)"
    )
    launcher = start_code(code, user=user, site=site, home=home)
    pids = [int(pid) for pid in launcher.stdout.readline().split()]
    launcher.send_signal(signal.SIGKILL)
    launcher.communicate()
    adopted = run_code(
        "found = embedded.start_services(home=home)\n"
        "print(json.dumps([found.postgres_pid, found.valkey_pid, embedded.stop_services(home)]))",
        user=user,
        site=site,
        home=home,
    )
    assert adopted == [*pids, ["valkey", "postgres"]]


def test_two_starts_at_once_share_one_server(open_folder, site):
    home = open_folder / "twice"
    code = "found = embedded.start_services(home=home, test_mode=True)\nprint(found.postgres_pid, found.valkey_pid)"
    both = [start_code(code, user=USERS[0], site=site, home=home) for _ in range(2)]
    answers = {process.communicate(timeout=60)[0] for process in both}
    assert len(answers) == 1
    assert answers != {""}
    assert stop_services(home) == ["valkey", "postgres"]


@as_root
def test_the_servers_of_root_run_as_somebody_else(server):
    import psutil

    expected = server_account(server.home)
    for pid in (server.postgres_pid, server.valkey_pid):
        process = psutil.Process(pid)
        assert process.uids().real == expected.uid != 0
        assert process.cwd() != os.getcwd()
        assert os.getsid(pid) == pid


def test_running_is_cheap_and_starts_nothing(server, tmp_path):
    began = time.perf_counter()
    assert running(server.home) == server
    assert time.perf_counter() - began < 0.1
    assert running(tmp_path / "absent") is None
    assert not (tmp_path / "absent").exists()
    assert server.database_url not in repr(server)


def test_a_transaction_of_a_frozen_process_ends(server):
    with psycopg.connect(server.database_url) as app:
        assert app.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("1min",)


def test_roles_and_privileges(server):
    with psycopg.connect(server.owner_url, autocommit=True) as owner:
        roles = owner.execute(
            "SELECT rolname, rolsuper, rolbypassrls, rolcreatedb FROM pg_roles WHERE rolname LIKE 'lectern%' ORDER BY rolname"
        ).fetchall()
        assert roles == [("lectern_app", False, False, False), ("lectern_owner", False, False, True)]
        owner.execute("DROP DATABASE IF EXISTS other")
        owner.execute("CREATE DATABASE other")
    for url in (server.owner_url, server.owner_url.rsplit("/", 1)[0] + "/other"):
        with psycopg.connect(url) as owner:
            extensions = {name for (name,) in owner.execute("SELECT extname FROM pg_extension")}
            assert {"vector", "btree_gin", "pg_trgm", "unaccent"} <= extensions
            owner.execute("DROP TABLE IF EXISTS thing")
            owner.execute("CREATE TABLE thing (id bigserial PRIMARY KEY, place halfvec(3))")
            owner.execute("CREATE OR REPLACE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    for url in (server.database_url, server.database_url.rsplit("/", 1)[0] + "/other"):
        with psycopg.connect(url, autocommit=True) as app:
            app.execute("INSERT INTO thing (place) VALUES ('[1,2,3]')")
            app.execute("UPDATE thing SET place = '[3,2,1]'")
            assert app.execute("SELECT one(), count(*) FROM thing").fetchone() == (1, 1)
            app.execute("DELETE FROM thing")
            for refused in ("CREATE TABLE mine (id int)", "DROP TABLE thing", "TRUNCATE thing", "CREATE DATABASE mine"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    app.execute(refused)


def test_settings(server):
    with psycopg.connect(server.database_url) as app:
        values = {
            name: app.execute("SELECT current_setting(%s)", [name]).fetchone()[0]
            for name in ("fsync", "synchronous_commit", "full_page_writes", "jit", "listen_addresses")
        }
    assert values == {
        "fsync": "off",
        "synchronous_commit": "off",
        "full_page_writes": "off",
        "jit": "off",
        "listen_addresses": "127.0.0.1",
    }


def test_passwords_are_wanted(server):
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(psycopg.connect("postgresql://lectern_app:wrong@" + server.database_url.split("@")[1]))
    port = int(server.redis_url.rsplit(":", 1)[1].split("/")[0])
    with contextlib.closing(redis.Redis(port=port)) as client, pytest.raises(redis.AuthenticationError):
        client.ping()


def test_the_wheels_own_pg_dump_reads_the_server(server):
    import subprocess

    programs = postgres_programs(server_account(server.home))
    done = subprocess.run([programs / "pg_dump", "--schema-only", server.owner_url], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "CREATE EXTENSION" in done.stdout


def test_data_outlive_a_killed_server_and_a_pid_that_somebody_else_has_now(open_folder):
    home = open_folder / "crash"
    first = start_services(home=home)
    with psycopg.connect(first.owner_url, autocommit=True) as owner:
        owner.execute("CREATE TABLE kept (id int)")
        owner.execute("INSERT INTO kept VALUES (1)")
    with contextlib.closing(redis.Redis.from_url(first.redis_url)) as client:
        for number in range(20):
            client.lpush("queue", number)
    for pid in (first.postgres_pid, first.valkey_pid):
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while running(home) is not None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert running(home) is None
    file = home / "postgres" / "data" / "postmaster.pid"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    second = start_services(home=home)
    assert second.database_url == first.database_url
    with psycopg.connect(second.database_url) as app:
        assert app.execute("SELECT id FROM kept").fetchone() == (1,)
    with contextlib.closing(redis.Redis.from_url(second.redis_url)) as client:
        assert client.llen("queue") == 20
    stop_services(home)
    # Somebody else on the old ports: another port, not another server.
    ports = json.loads((home / "ports.json").read_text())
    with contextlib.ExitStack() as squatters:
        for port in ports.values():
            squatter = squatters.enter_context(socket.socket())
            squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            squatter.bind(("127.0.0.1", port))
            squatter.listen()
        third = start_services(home=home)
    assert third.database_url != first.database_url
    with psycopg.connect(third.database_url) as app:
        assert app.execute("SELECT id FROM kept").fetchone() == (1,)
    stop_services(home)


@pytest.mark.soak
def test_an_interrupted_initdb_is_begun_again(open_folder):
    home = open_folder / "interrupted"
    start_services(home=home, valkey=False, test_mode=True)
    stop_services(home)
    shutil.move(home / "postgres" / "data", home / "postgres" / "data.new")
    (home / "postgres" / "data.new" / "PG_VERSION").unlink()
    assert start_services(home=home, valkey=False, test_mode=True).redis_url is None
    assert stop_services(home) == ["postgres"]
    assert not (home / "postgres" / "data.new").exists()
    assert postgres.find_server(home) is None


@as_root
def test_a_home_that_the_servers_user_cannot_enter_is_refused_by_name(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    first = barred(closed / "home", server_account(closed / "home"))
    with pytest.raises(ServiceError, match="LECTERN_HOME") as refused:
        start_services(home=closed / "home")
    assert str(first) in str(refused.value)


@as_root
def test_the_default_home_of_root_moves_where_the_servers_user_can_enter(open_folder):
    closed = open_folder / "of root"
    closed.mkdir(mode=0o700)
    code = "from config.embedded.homes import PROJECT\nprint(json.dumps([str(homes.home()), str(PROJECT)]))"
    for folder, expected in ((closed, "/lectern/project-"), (open_folder, "project/.lectern")):
        site = make_site(folder / "project").rename(folder / "project-site")
        shutil.rmtree(folder / "project")
        site.rename(folder / "project")
        chosen, project = run_code(code, user="root", site=folder / "project", home=folder, variables={"LECTERN_HOME": ""})
        assert project == str(folder / "project")
        assert expected in chosen


@as_root
def test_a_user_without_a_passwd_entry_is_told_so(open_folder, site):
    number = next(number for number in range(54321, 55321) if account(uid=number) is None)
    code = (
        "try:\n    embedded.start_services(home=home)\nexcept embedded.ServiceError as error:\n    print(json.dumps({'error': str(error)}))"
    )
    assert "passwd" in run_code(code, user=str(number), site=site, home=open_folder / "nameless")["error"]
