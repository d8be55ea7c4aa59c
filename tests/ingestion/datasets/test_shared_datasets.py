"""Files of a channel whose policy puts them into one dataset: rows together, one description, columns that fit or are refused by name."""

import pytest

from ingestion.services.channel_files import describe_datasets
from kb.models import Chunk, DatasetPart
from tests.ingestion.api.channels import FILES

pytestmark = pytest.mark.django_db
JANUARY = b"day,amount,site\n2024-01-01,5,Ulm\n2024-01-02,7,Bonn\n"
FEBRUARY = b"day,amount,site,note\n2024-02-01,1.5,Ulm,late\n2024-02-02,2.5,Bonn,\n"
POLICY = {"table": {"name": "Incidents"}}


@pytest.fixture
def send(sender):
    """`send("jan", content)` puts a file that everybody may read into the dataset and works it."""

    def put(title: str, content: bytes, *, policy=POLICY, visibility="organization", **more) -> dict:
        sent = sender.send(
            content, title=title, file_name=f"{title}.csv", media_type="text/csv", policy=policy, visibility=visibility, **more
        )
        sender.work()
        return sender.file(sent["id"])

    return put


def test_months_are_one_dataset_with_one_description(send, datasets, ask):
    send("jan", JANUARY)
    first = datasets()["incidents"]
    send("feb", FEBRUARY)
    both = datasets()["incidents"]
    assert (both["id"], both["rows"], both["files"]) == (first["id"], 4, 2)
    assert [(column["name"], column["type"]) for column in both["columns"]] == [
        ("day", "DATE"),
        ("amount", "DECIMAL(20,1)"),
        ("site", "VARCHAR"),
        ("note", "VARCHAR"),
    ]
    answer = ask(both, "SELECT site, sum(amount), count(note) FROM incidents GROUP BY site ORDER BY site")
    assert answer.json()["rows"] == [["Bonn", 9.5, 0], ["Ulm", 6.5, 1]]
    (chunk,) = Chunk.objects.all()
    assert chunk.text.startswith("Dataset incidents, from feb.csv: 4 rows in 2 files, 4 columns.")


def test_a_file_that_does_not_fit_is_refused_by_name_and_changes_nothing(send, datasets, ask):
    send("jan", JANUARY)
    refused = send("mar", b"day,amount,site\n2024-03-01,none yet,Ulm\n2024-03-02,twelve,Bonn\n")
    assert refused["status"] == "failed"
    assert "mar.csv does not fit dataset “incidents”: its column “amount” is text, in the dataset it is a whole number." in refused["error"]
    other = send("apr", b"a,b\n1,2\n3,4\n")
    assert "none of its columns (a, b) is one of the dataset (day, amount, site)" in other["error"]
    assert datasets()["incidents"]["rows"] == 2
    assert ask(datasets()["incidents"], "SELECT sum(amount) FROM incidents").json()["rows"] == [[12]]


def test_the_last_file_replaces_the_others_where_the_policy_says_so(send, datasets, ask):
    policy = {"table": {"name": "Incidents", "mode": "replace"}}
    send("jan", JANUARY, policy=policy)
    send("stock", b"part,count\n1,2\n3,4\n5,6\n", policy=policy)
    stock = datasets()["incidents"]
    assert (stock["rows"], stock["files"]) == (3, 1)
    assert [column["name"] for column in stock["columns"]] == ["part", "count"]
    assert Chunk.objects.count() == DatasetPart.objects.count() == 1


def test_a_file_is_parted_by_the_columns_of_the_policy(send, datasets, ask, editor):
    send("jan", JANUARY, policy={"table": {"name": "Incidents", "partition_by": ["Site"]}})
    dataset = datasets()["incidents"]
    parts = editor.get(f"/api/v1/datasets/{dataset['id']}").json()["parts"]
    assert sorted((part["partition"]["site"], part["rows"]) for part in parts) == [("Bonn", 1), ("Ulm", 1)]
    assert ask(dataset, "SELECT sum(amount) FROM incidents").json()["rows"] == [[12]]
    refused = send("feb", FEBRUARY, policy={"table": {"name": "Incidents", "partition_by": ["shop"]}})
    assert "has no column “shop”" in refused["error"]


def test_the_policy_knows_delimiter_header_and_mode(send, sender, datasets):
    send("odd", b"1!a\n2!b\n", policy={"table": {"delimiter": "!", "header": False}})
    assert [column["name"] for column in datasets()["odd"]["columns"]] == ["f0", "f1"]
    send("plain", JANUARY, policy={"mode": "text"})
    assert "plain" not in datasets()
    assert Chunk.objects.filter(text__contains="2024-01-01 | 5 | Ulm").exists()
    note = sender.send(b"Just words.", title="note", file_name="note.txt", media_type="text/plain", policy={"mode": "tabular"})
    sender.work()
    assert "note.txt holds no table" in sender.file(note["id"])["error"]


def test_of_two_files_at_once_the_later_one_is_looked_at_again(sender, datasets):
    """Both were read before the other was there; which of them is refused, the order of their publication says."""
    said = {"media_type": "text/csv", "policy": POLICY, "visibility": "organization"}
    first = sender.send(JANUARY, title="jan", file_name="jan.csv", **said)
    second = sender.send(JANUARY.replace(b",5,", b",five,"), title="mar", file_name="mar.csv", **said)
    sender.work(until="publish")
    sender.work()
    files = [sender.file(sent["id"]) for sent in (first, second)]
    (error,) = [file["error"] for file in files if file["status"] == "failed"]
    assert "does not fit dataset “incidents”" in error
    assert datasets()["incidents"]["rows"] == 2
    assert Chunk.objects.count() == 1


def test_another_file_describes_the_dataset_when_the_last_one_went(send, sender, datasets):
    send("jan", JANUARY)
    last = send("feb", FEBRUARY)
    assert sender.client.delete(f"{FILES}/{last['id']}").status_code == 200
    assert datasets()["incidents"]["rows"] == 2
    assert Chunk.objects.count() == 0
    assert describe_datasets() == 1
    assert describe_datasets() == 0  # it is under way
    sender.work()
    (chunk,) = Chunk.objects.all()
    assert chunk.text.startswith("Dataset incidents, from jan.csv: 2 rows, 3 columns.")
    assert describe_datasets() == 0


def test_private_files_are_datasets_of_their_owner_alone(send, sender, datasets, ask, second_editor):
    send("jan", JANUARY)
    send("mine", b"day,amount,salary\n2024-01-01,5,1000\n", visibility="private")
    seen = [row for row in sender.client.get("/api/v1/datasets").json()["items"] if row["name"] == "incidents"]
    assert sorted(row["rows"] for row in seen) == [1, 2]
    (others,) = second_editor.get("/api/v1/datasets").json()["items"]
    assert (others["rows"], [column["name"] for column in others["columns"]]) == (2, ["day", "amount", "site"])
    private = next(row for row in seen if row["rows"] == 1)
    assert ask(private, "SELECT sum(salary) FROM incidents").json()["rows"] == [[1000]]
    assert ask(private, "SELECT 1", client=second_editor).status_code == 404
    from django.contrib.auth import get_user_model
    from django.test import Client

    erin = get_user_model().objects.get(username="erin")
    get_user_model().objects.filter(username="erin").update(is_staff=True)
    page = Client()
    page.force_login(erin)
    listed = page.get("/admin/kb/dataset/").content.decode()
    assert others["id"] in listed
    assert private["id"] not in listed
    assert page.get(f"/admin/kb/dataset/{private['id']}/change/").status_code == 302
    assert ask(others, "SELECT 1", client=second_editor, datasets=[{"id": private["id"], "name": "b"}]).status_code == 404
