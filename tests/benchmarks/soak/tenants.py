"""Two organizations use every operation with each other's ids, both at once: a foreign id answers as an absent one, to the byte."""

import random
import threading
from contextlib import closing
from typing import Any

import httpx

from tests.benchmarks.soak.ground import Bounds, Figures, Ground, say
from tests.benchmarks.soak.worlds import PARAMETER, Operation, World, absent, make_world, operations, told

SIGNED = "PUT /files/uploads/{upload_id}/content"
KEYS = ("leaked", "errors")


def soak(ground: Ground, figures: Figures, bounds: Bounds, chance: random.Random) -> None:
    with closing(make_world(ground, "Default")) as first, closing(make_world(ground, "Rival")) as second:
        _hammer(figures, bounds, chance, (first, second))


def _hammer(figures: Figures, bounds: Bounds, chance: random.Random, worlds: tuple[World, World]) -> None:
    known = operations(worlds[0].client)
    asked = 0
    while bounds.allow(figures.rounds):
        say(f"tenants: round {figures.rounds}")
        pairs = [(worlds[0], worlds[1]), (worlds[1], worlds[0])]
        threads = [
            threading.Thread(target=_guarded, args=(figures, mine, theirs, known, random.Random(chance.random()))) for mine, theirs in pairs
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for world in worlds:
            _check_own(figures, world)
        asked += 2 * len(known)
        figures.rounds += 1
    figures.notes |= {"operations": len(known), "asked": asked}


def _guarded(figures: Figures, mine: World, theirs: World, known: list[Operation], chance: random.Random) -> None:
    try:
        for operation in chance.sample(known, len(known)):
            if operation.ids:
                _ask_foreign(figures, mine, theirs, operation, chance)
            elif operation.method == "GET":
                _look_through(figures, mine, theirs, operation)
        _name_in_bodies(figures, mine, theirs)
    except Exception as error:  # an end of the soak would hide what the other thread finds
        figures.count("errors", f"{type(error).__name__}: {error}")


def _ask_foreign(figures: Figures, mine: World, theirs: World, operation: Operation, chance: random.Random) -> None:
    """The same request with foreign and with absent ids. The ids in front of the foreign one are foreign too, or our own."""
    place = chance.randrange(len(operation.ids))
    if "number" in operation.ids:
        place = 0  # a version's number is nobody's id
    own_before = chance.random() < 0.5
    options = mine.body(operation) | {"headers": {"If-Match": '"1"'}}
    foreign, missing = {}, {}
    for index, name in enumerate(operation.ids):
        if (index < place and own_before) or name == "number":
            foreign[name] = missing[name] = chance.choice(mine.ids[name])
        else:
            foreign[name], missing[name] = chance.choice(theirs.ids[name]), absent(name)
    first = _send(mine, operation, foreign, options)
    second = _send(mine, operation, missing, options)
    where = f"{mine.organization}: {operation.name} with {'own and ' if own_before and place else ''}foreign ids"
    figures.count("leaked", f"{where} answered {first.status_code}: {first.text[:300]}", first.is_success)
    same = (first.status_code, first.content, _kept(first)) == (second.status_code, second.content, _kept(second))
    differing = (
        f"{where}: {first.status_code} {first.text[:200]} {_kept(first)}, absent: {second.status_code} {second.text[:200]} {_kept(second)}"
    )
    figures.count("leaked", differing, not same and not first.is_success)
    expected = (400, 404) if "/grants/" in operation.path else (404,)  # a user who is no member cannot be granted anything
    if operation.name == SIGNED:
        expected = (403,)  # no key is asked for, and no signature came with it
    figures.count("errors", f"{where}: {first.status_code}, not 404", first.status_code not in expected and not first.is_success)


def _send(mine: World, operation: Operation, ids: dict[str, str], options: dict[str, Any]) -> httpx.Response:
    return mine.client.http.request(operation.method, PARAMETER.sub(lambda match: ids[match.group(1)], operation.path), **options)


def _kept(response: httpx.Response) -> list[tuple[str, str]]:
    return sorted((name, value) for name, value in response.headers.items() if name not in ("date", "set-cookie"))


def _look_through(figures: Figures, mine: World, theirs: World, operation: Operation) -> None:
    """Lists hold nothing of the others."""
    response = mine.client.http.get(operation.path, params={"limit": 100})
    # A trace repeats the question, and we asked for their mark ourselves.
    found = told(response.text.replace(theirs.mark, "") if operation.path == "/traces" else response.text, theirs)
    figures.count("leaked", f"{mine.organization}: {operation.name} shows {found} of {theirs.organization}", bool(found))
    figures.count("errors", f"{operation.name}: {response.status_code} {response.text[:200]}", response.status_code >= 500)


def _name_in_bodies(figures: Figures, mine: World, theirs: World) -> None:
    """Foreign ids and names inside bodies and queries."""
    http = mine.client.http
    foreign, own = theirs.ids["kb_id"][0], mine.ids["kb_id"][0]
    document = {key: value for key, value in mine.document.items() if key != "sources"} | {"name": "taken over"}
    source = {"name": "files", "type": "upload", "id": theirs.ids["source_id"][0]}
    requests: dict[str, httpx.Response] = {
        "search": http.post("/search", json={"query": theirs.mark, "knowledge_bases": [foreign]}),
        "search own and foreign": http.post("/search", json={"query": theirs.mark, "knowledge_bases": [own, foreign]}),
        "key": http.post("/api-keys", json={"name": "taken over", "knowledge_base_ids": [foreign]}),
        "model": http.post("/knowledge-bases", json=document | {"embedding_model": theirs.model["name"], "sources": []}),
        "source": http.post("/knowledge-bases", json=document | {"sources": [source]}),
        "source filter": http.get(f"/knowledge-bases/{own}/documents", params={"source_id": theirs.ids["source_id"][0]}),
        "grant": http.put(f"/knowledge-bases/{own}/grants/{theirs.ids['user_id'][0]}", json={"level": "viewer"}),
        "organization": http.get("/organization", headers={"X-Lectern-Organization": theirs.organization}),
    }
    for name, response in requests.items():
        allowed = name == "organization"
        figures.count(
            "leaked", f"foreign {name} in a body: {response.status_code} {response.text[:300]}", response.is_success and not allowed
        )
        figures.count("errors", f"foreign {name} in a body: {response.status_code} {response.text[:200]}", response.status_code >= 500)
        found = told(response.text, theirs) if response.is_success else ""
        figures.count("leaked", f"foreign {name} shows {found}: {response.text[:300]}", bool(found))
    everything = http.post("/search", json={"query": theirs.mark, "min_score": 0})
    found = told(everything.text, theirs).replace(theirs.mark, "")
    figures.count("leaked", f"a search of everything shows {found} of the others", bool(found))


def _check_own(figures: Figures, world: World) -> None:
    """What the others tried changed nothing."""
    texts = world.client.texts(world.ids["kb_id"][0], world.mark, mode="keyword", min_score=0)
    figures.count("leaked", f"{world.organization} does not find its own text any more", not any(world.mark in text for text in texts))
    for path in (
        f"/runs/{world.ids['run_id'][0]}",
        f"/documents/{world.ids['document_id'][0]}",
        f"/embedding-models/{world.ids['model_id'][0]}",
    ):
        status = world.client.http.get(path).status_code
        figures.count("leaked", f"{path} of {world.organization} answers {status}", status != 200)
