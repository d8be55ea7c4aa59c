"""Schedules in the admin: read with their log, by who sees the knowledge base, and written by nobody."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from ingestion import fires
from ingestion.models import ScheduleFire, SourceSchedule
from kb import versioning

pytestmark = pytest.mark.django_db


def client_of(user) -> Client:
    user.is_staff = True
    user.save()
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def operator(db) -> Client:
    from kb.models import User

    return client_of(User.objects.create(username="root", is_superuser=True))


@pytest.fixture
def fired(knowledge_base, actor, source):
    document = dict(versioning.read(knowledge_base).document)
    document["sources"] = [{**document["sources"][0], "cron": "30 3 * * *"}]
    versioning.publish(knowledge_base, document=document, expected=1, actor=actor)
    SourceSchedule.objects.update(due_at=timezone.now() - timedelta(days=3))
    return fires.fire(source.id)


def url(name: str, *args: object) -> str:
    return reverse(f"admin:{name}", args=args)


def test_the_source_shows_its_next_run_and_its_last_time(alice, source, fired):
    page = client_of(alice).get(url("kb_source_change", source.id)).content.decode()
    assert "03:30 UTC, by 30 3 * * *" in page
    assert f"{fired.due_at:%Y-%m-%d %H:%M}: started" in page
    log = f"{url('ingestion_schedulefire_changelist')}?source__id__exact={source.id}"
    assert log in page
    entries = client_of(alice).get(log).content.decode()
    assert url("ingestion_ingestionrun_change", fired.run_id) in entries
    assert "Handbooks/files" in client_of(alice).get(url("ingestion_sourceschedule_changelist")).content.decode()


def test_a_source_without_a_schedule_shows_none(alice, source):
    assert client_of(alice).get(url("kb_source_change", source.id)).status_code == 200


def test_another_organization_sees_none(mallory, fired):
    client = client_of(mallory)
    for model in ("sourceschedule", "schedulefire"):
        assert "Handbooks" not in client.get(url(f"ingestion_{model}_changelist")).content.decode()


def test_even_an_operator_writes_none(operator, fired):
    for model, row in (("sourceschedule", SourceSchedule.objects.get().pk), ("schedulefire", ScheduleFire.objects.get().pk)):
        page = url(f"ingestion_{model}_change", row)
        assert operator.get(page).status_code == 200
        assert operator.post(page, {"cron": "* * * * *"}).status_code == 403
        assert operator.post(url(f"ingestion_{model}_delete", row), {"post": "yes"}).status_code == 403
        assert operator.post(url(f"ingestion_{model}_add"), {}).status_code == 403


@pytest.mark.parametrize("model", ["periodictask", "crontabschedule", "intervalschedule", "clockedschedule", "solarschedule"])
def test_the_beat_has_no_pages(operator, model):
    for page in ("changelist", "add"):
        with pytest.raises(NoReverseMatch):
            url(f"django_celery_beat_{model}_{page}")
    assert operator.get(f"/admin/django_celery_beat/{model}/").status_code == 404
