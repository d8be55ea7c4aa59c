"""What was cut or lost when a document was read is told where the document is looked at, as long as that is what answers."""

import pytest
from django.test import Client
from django.urls import reverse

from kb.models import Document, User

pytestmark = pytest.mark.django_db
LONG = b"# Leave\n\n" + b"Every employee has thirty days of leave a year.\n\n" * 40


@pytest.fixture
def cut(sender) -> dict:
    """A file that was cut after 300 characters."""
    sent = sender.send(LONG, title="Leave", visibility="organization", policy={"max_content_length": 300})
    sender.work()
    return sent


def test_a_cut_document_says_so_wherever_it_is_shown(sender, viewer, kb_url, cut):
    (warning,) = sender.file(cut["id"])["warnings"]
    assert warning.startswith("Only the first 2")
    document = viewer.get(f"/api/v1/documents/{cut['resource_id']}").json()
    assert (document["warnings"], document["metadata"]["truncated"]) == ([warning], True)
    assert [row["warnings"] for row in viewer.get(f"{kb_url}/documents").json()["items"]] == [[warning]]
    operator = Client()
    operator.force_login(User.objects.create_superuser("root", password="a long password of the tests"))
    page = operator.get(reverse("admin:kb_document_change", args=[cut["resource_id"]])).content.decode()
    assert f"<li>{warning}</li>" in page


def test_a_whole_version_takes_the_warning_away(sender, cut):
    whole = sender.send(LONG + b"More.", title="Leave", visibility="organization")
    sender.work()
    assert sender.file(whole["id"])["warnings"] == []
    assert sender.file(cut["id"])["warnings"] == [], "nothing of this version answers"


def test_warnings_stay_through_later_runs(upload, run_now, viewer, source_url):
    (row,) = upload(("a.txt", "Größe und Länge. ".encode() * 40 + b"\xff")).json()["stored"]
    run_now()

    def told() -> list[str]:
        return viewer.get(f"{source_url}/files/{row['file_id']}").json()["warnings"]

    first = told()
    assert first == ["Some bytes were not UTF-8 and were replaced."]
    run_now()
    assert told() == first
    Document.objects.update(chunk_fingerprint="other")
    run_now()
    assert told() == first, "cutting again reads nothing again"


def test_the_list_is_bounded():
    from ingestion.stages.publish import MAX_WARNING_CHARS, MAX_WARNINGS, _bounded

    assert _bounded(["a", "b", "a"]) == ["a", "b"]
    many = _bounded([f"{number} {'x' * 1_000}" for number in range(100)])
    assert (len(many), max(map(len, many))) == (MAX_WARNINGS, MAX_WARNING_CHARS)
    assert many[-1] == "There are 81 more warnings; the run's item has them."
