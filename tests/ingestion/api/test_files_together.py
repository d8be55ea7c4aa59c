"""Several files in one request: each is judged by itself, and together they cost no more than one."""

import hashlib

from django.db import connection
from django.test.utils import CaptureQueriesContext

from kb import versioning
from kb.models import File
from tests.ingestion.api.test_files import NOTE


def test_room_is_counted_through_a_request_and_what_is_refused_takes_none(actor, editor, knowledge_base, source_url, upload):
    document = dict(versioning.read(knowledge_base).document)
    document["sources"] = [{**document["sources"][0], "upload": {"max_files": 3}}]
    versioning.publish(knowledge_base, document=document, expected=1, actor=actor)
    assert upload(("a.md", NOTE)).status_code == 200
    sent = [("bad.pdf", b"no PDF"), ("b.md", NOTE), ("A.md", NOTE + b"a"), ("c.md", NOTE), ("B.md", NOTE + b"b"), ("d.md", NOTE)]
    answer = upload(*sent).json()
    assert {row["file_name"] for row in answer["stored"]} == {"A.md", "B.md", "c.md"}
    assert [row["file_name"] for row in answer["rejected"]] == ["bad.pdf", "d.md"]
    assert "max_files (3)" in answer["rejected"][1]["reason"]
    kept = {row["file_name"]: row["content_hash"] for row in editor.get(f"{source_url}/files").json()["items"]}
    assert kept == {name: hashlib.sha256(NOTE + more).hexdigest() for name, more in (("A.md", b"a"), ("B.md", b"b"), ("c.md", b""))}


def test_a_replaced_file_goes_and_its_place_is_taken_by_the_new_one(upload):
    names = [f"{number}.md" for number in range(5)]
    first = {row["file_id"] for row in upload(*[(name, NOTE) for name in names]).json()["stored"]}
    second = {row["file_id"] for row in upload(*[(name, NOTE + name.encode()) for name in names]).json()["stored"]}
    assert first == second
    assert File.objects.count() == len(names)


def test_files_that_come_together_cost_no_more_statements_than_one(upload):
    def statements(*files: tuple[str, bytes]) -> int:
        with CaptureQueriesContext(connection) as asked:
            assert len(upload(*files).json()["stored"]) == len(files)
        return len(asked)

    statements(("first.md", NOTE))
    alone = statements(("one.md", NOTE + b"one"))
    assert statements(*[(f"{n}.md", NOTE + str(n).encode()) for n in range(30)]) == alone
    anew = statements(("one.md", NOTE + b"anew"))
    assert statements(*[(f"{n}.md", NOTE + b"anew" + str(n).encode()) for n in range(30)]) == anew
