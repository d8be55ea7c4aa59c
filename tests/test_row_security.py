"""The second belt: what Postgres itself shows and takes, whatever a query forgot. Raw SQL as the application's role."""

import os
import subprocess

import pytest
from django.apps import apps
from django.db import Error, connection, connections, transaction

from config.embedded.binaries import postgres_programs
from config.embedded.homes import server_account
from config.tenancy import everyone, nobody, tenant
from kb import services
from kb.models import EmbeddingModel, Organization, Secret, Source, derived
from tests.databases import with_database

TRANSACTIONAL = pytest.mark.django_db(transaction=True, databases=["default", "owner"])


def rows(statement: str, *parameters: object, using: str = "default") -> list[tuple]:
    with connections[using].cursor() as cursor:
        cursor.execute(statement, list(parameters) or None)
        return cursor.fetchall() if cursor.description else []


def names() -> list[str]:
    return sorted(name for (name,) in rows("SELECT name FROM kb_source"))


@pytest.mark.django_db
def test_derived_tables_hold_no_text_and_are_left_out():
    """Under row-level security an index of arrays or vectors is not used: see docs/architecture.md."""
    tables = [model._meta.db_table for model in apps.get_models() if model.__module__ == derived.__name__]
    assert tables
    assert not rows("SELECT relname FROM pg_class WHERE relrowsecurity AND relname = ANY(%s)", tables)
    kinds = rows("SELECT DISTINCT data_type FROM information_schema.columns WHERE table_name = ANY(%s)", tables)
    assert not {kind for (kind,) in kinds} & {"text", "character varying", "jsonb", "json", "bytea"}


@pytest.mark.django_db
def test_only_rows_of_whom_is_served_are_seen(sources, organization, other_organization):
    with nobody():
        assert names() == []
        assert rows("SELECT id FROM kb_organization") == []
    with tenant(organization.id):
        assert names() == ["Acme"]
        with tenant(other_organization.id):
            assert names() == ["Rival"]
            with nobody():
                assert names() == []
        assert names() == ["Acme"]
    with tenant(organization.id, other_organization.id):
        assert names() == ["Acme", "Rival"]
    with tenant():
        assert names() == []
    assert names() == ["Acme", "Rival"]  # a test serves everyone


@pytest.mark.django_db
def test_nothing_is_written_into_another_organization(sources, organization, other_organization):
    acme, rival = sources["Acme"], sources["Rival"]
    with tenant(organization.id):
        with pytest.raises(Error, match="violates row-level security policy"), transaction.atomic():
            Source.objects.create(organization=other_organization, knowledge_base_id=rival.knowledge_base_id, kind="upload", name="b")
        with pytest.raises(Error, match="violates row-level security policy"), transaction.atomic():
            Source.objects.filter(id=acme.id).update(organization=other_organization)
        assert Source.objects.filter(id=rival.id).update(name="taken") == 0
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM kb_source WHERE id = %s", [rival.id])
            assert cursor.rowcount == 0
            cursor.execute("SELECT id FROM kb_source WHERE id = %s FOR UPDATE", [rival.id])
            assert cursor.fetchall() == []
    with nobody(), pytest.raises(Error, match="violates row-level security policy"), transaction.atomic():
        Organization.objects.create(name="Third")
    assert names() == ["Acme", "Rival"]


@pytest.mark.django_db
def test_rows_of_the_installation_are_read_by_all_and_written_for_everyone(organization, other_organization):
    model = EmbeddingModel.objects.get(organization=None)
    services.set_secret(organization=None, name="shared", value="x")
    services.set_secret(organization=other_organization, name="theirs", value="x")
    with nobody():
        assert not EmbeddingModel.objects.exists()
        assert not Secret.objects.exists()
    with tenant(organization.id):
        assert EmbeddingModel.objects.get(id=model.id) == model
        assert [secret.name for secret in Secret.objects.all()] == ["shared"]
        assert Secret.objects.filter(name="shared").delete()[0] == 0
        assert EmbeddingModel.objects.filter(id=model.id).update(endpoint="https://elsewhere.example") == 0
        assert EmbeddingModel.objects.filter(id=model.id).update(organization=organization) == 0
        with pytest.raises(Error, match="violates row-level security policy"), transaction.atomic():
            Secret.objects.create(organization=None, name="planted", ciphertext=b"x")
    assert {secret.name for secret in Secret.objects.all()} == {"shared", "theirs"}


@TRANSACTIONAL
def test_the_owner_is_held_to_it_too_and_still_migrates(sources, organization):
    with nobody():
        assert rows("SELECT name FROM kb_source", using="owner") == []
        rows("CREATE TABLE a_new_one (id int)", using="owner")
        rows("VACUUM kb_source", using="owner")
        rows("DROP TABLE a_new_one", using="owner")
    with tenant(organization.id):
        assert rows("SELECT name FROM kb_source", using="owner") == [("Acme",)]
        rows("CREATE INDEX CONCURRENTLY a_new_index ON kb_source (name)", using="owner")
        rows("DROP INDEX CONCURRENTLY a_new_index", using="owner")
    with everyone():
        assert len(rows("SELECT name FROM kb_source", using="owner")) == 2


@TRANSACTIONAL
def test_a_dump_by_the_owner_has_all_rows(sources):
    """As docs/operations.md says to make one; without the option pg_dump refuses rather than leave rows out."""
    from django.conf import settings

    program = postgres_programs(server_account(settings.HOME)) / "pg_dump"
    url = with_database(os.environ["DATABASE_OWNER_URL"], connection.settings_dict["NAME"])
    everything = {**os.environ, "PGOPTIONS": "-c lectern.organization=*"}
    done = subprocess.run([program, "--enable-row-security", url], env=everything, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    copied = done.stdout.partition("COPY public.kb_source ")[2].partition("\\.")[0]
    assert "Acme" in copied
    assert "Rival" in copied
    refused = subprocess.run([program, url], capture_output=True, text=True)
    assert refused.returncode != 0
    assert "row-level security" in refused.stderr
