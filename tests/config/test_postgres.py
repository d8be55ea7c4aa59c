"""How it is said whom a statement serves: with it, for one transaction, through whatever sends it and whoever shares the connection."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.db import Error, connection, connections, transaction

from config.database_url import database_config
from config.postgres.base import DatabaseWrapper
from config.tenancy import carried, nobody, served, tenant
from tests.fleet import free_port, wait_for

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "owner"])


def rows(statement: str, *parameters: object) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(statement, list(parameters) or None)
        return cursor.fetchall() if cursor.description else []


def names() -> list[str]:
    return sorted(name for (name,) in rows("SELECT name FROM kb_source"))


def test_it_lasts_for_a_transaction_and_no_longer(sources, organization, other_organization):
    with nobody():
        with transaction.atomic():
            assert names() == []
            with tenant(organization.id):
                assert names() == ["Acme"]
                assert names() == ["Acme"]
            assert names() == []
        with tenant(organization.id), transaction.atomic():
            assert names() == ["Acme"]
        with transaction.atomic():
            assert names() == []
        with transaction.atomic(), tenant(organization.id):  # the connection was told the same in an earlier transaction
            assert names() == ["Acme"]
        assert names() == []


def test_what_a_savepoint_takes_back_is_said_again(sources, organization, other_organization):
    with tenant(organization.id), transaction.atomic():
        assert names() == ["Acme"]
        with transaction.atomic():
            with tenant(other_organization.id):
                assert names() == ["Rival"]
            transaction.set_rollback(True)
        assert names() == ["Acme"]
        with tenant(other_organization.id):
            with pytest.raises(Error), transaction.atomic():
                rows("SELECT 1 / 0")
            assert names() == ["Rival"]
            with transaction.atomic():
                assert names() == ["Rival"]
        assert names() == ["Acme"]


def test_every_way_of_sending_serves_the_same(sources, organization, other_organization):
    heard = []
    with tenant(organization.id):
        transaction.on_commit(lambda: heard.append(names()))
        with transaction.atomic():
            transaction.on_commit(lambda: heard.append(names()))
            with connection.cursor() as cursor:
                cursor.executemany("UPDATE kb_source SET name = name WHERE name = %s", [["Acme"], ["Rival"]])
                assert cursor.rowcount == 1
                with cursor.copy("COPY (SELECT name FROM kb_source) TO STDOUT") as copy:
                    assert b"".join(copy) == b"Acme\n"
        with transaction.atomic(), connection.cursor() as cursor:
            with cursor.copy("COPY (SELECT name FROM kb_source) TO STDOUT") as copy:  # the first statement of its transaction
                assert b"".join(copy) == b"Acme\n"
            with tenant(other_organization.id):
                assert list(cursor.stream("SELECT name FROM kb_source")) == [("Rival",)]
            cursor.execute(b"SELECT name FROM kb_source")
            assert cursor.fetchall() == [("Acme",)]
            cursor.execute(psycopg.sql.SQL("SELECT name FROM {}").format(psycopg.sql.Identifier("kb_source")))
            assert cursor.fetchall() == [("Acme",)]
            cursor.execute("SELECT name FROM kb_source WHERE name LIKE %(like)s AND name NOT LIKE '%%x'", {"like": "A%"})
            assert (cursor.fetchall(), cursor.rowcount) == ([("Acme",)], 1)
    assert heard == [["Acme"], ["Acme"]]


def test_threads_start_with_nobody_unless_it_is_carried(sources, organization):
    def look() -> tuple[str, list[str]]:
        try:
            return served(), names()
        finally:
            connections.close_all()

    with tenant(organization.id), ThreadPoolExecutor(1) as pool:
        assert pool.submit(look).result() == ("", [])
        assert pool.submit(carried(look)).result()[1] == ["Acme"]
        assert pool.submit(look).result() == ("", [])


@pytest.fixture
def bouncer(tmp_path) -> Iterator[str]:
    """The URL of one in transaction mode, with a single connection to the server for everybody."""
    if shutil.which("pgbouncer") is None:
        pytest.skip("pgbouncer is not installed (apt-get install pgbouncer)")
    given = psycopg.conninfo.conninfo_to_dict(os.environ["DATABASE_URL"])
    port, name = free_port(), connection.settings_dict["NAME"]
    (tmp_path / "users.txt").write_text(f'"{given["user"]}" "{given["password"]}"\n')
    (tmp_path / "pgbouncer.ini").write_text(
        f"[databases]\n{name} = host={given['host']} port={given['port']} dbname={name}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = plain\nauth_file = {tmp_path}/users.txt\n"
        f"pool_mode = transaction\ndefault_pool_size = 1\nunix_socket_dir =\n"
    )
    command = ["pgbouncer", str(tmp_path / "pgbouncer.ini")]
    if os.geteuid() == 0:  # it refuses to be root
        for folder in (tmp_path, *list(tmp_path.parents)[:2]):
            folder.chmod(0o755)
        command[1:1] = ["-u", "nobody"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    yield f"postgresql://{given['user']}:{given['password']}@127.0.0.1:{port}/{name}"
    process.terminate()
    process.wait(10)


def test_two_clients_of_a_bouncer_share_a_connection_and_no_rows(sources, organization, other_organization, bouncer):
    settings = {**connection.settings_dict, **database_config(bouncer)}
    settings["OPTIONS"] = {"prepare_threshold": None}
    clients = [DatabaseWrapper(settings, alias="default") for _ in range(2)]

    def names_of(client: DatabaseWrapper) -> list[str]:
        with client.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid(), name FROM kb_source WHERE name <> %s", ["x"])
            found = cursor.fetchall()
            backends.update(pid for pid, _ in found)
            return sorted(name for _, name in found)

    backends: set[int] = set()
    try:
        wait_for(lambda: _connects(clients[0]), seconds=10, what="pgbouncer")
        for _ in range(5):
            with tenant(organization.id):
                assert names_of(clients[0]) == ["Acme"]
            assert_nobody(names_of, clients)
            clients[1].set_autocommit(False)
            with tenant(other_organization.id):
                assert names_of(clients[1]) == ["Rival"]
                assert names_of(clients[1]) == ["Rival"]
            clients[1].rollback()
            clients[1].set_autocommit(True)
            assert_nobody(names_of, clients)
        assert len(backends) == 1
    finally:
        for client in clients:
            client.close()


def assert_nobody(names_of, clients: list) -> None:
    with nobody():
        assert [names_of(client) for client in clients] == [[], []]


def _connects(client: object) -> bool:
    try:
        client.ensure_connection()
    except Error:
        time.sleep(0.1)
        return False
    return True
