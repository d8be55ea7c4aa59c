"""Every documented operation with what nobody sends on purpose: no 5xx but a documented one, and every refusal a problem document."""

import random
from collections import Counter
from typing import Any
from urllib.parse import quote

import httpx

from tests.benchmarks.soak.ground import Bounds, Figures, Ground, say
from tests.benchmarks.soak.mutations import BODIES, HEADERS, IDS, QUERY, TYPES, as_json, multipart, mutate
from tests.benchmarks.soak.worlds import PARAMETER, Operation, World, make_world, operations

KEYS = ("errors",)
TRIES = 6  # of each operation in a round
RENEW_AFTER = 3  # rounds with one world: what was deleted on the way is there again


def soak(ground: Ground, figures: Figures, bounds: Bounds, chance: random.Random, *, share: float = 1.0) -> None:
    world = make_world(ground, "Default")
    known = operations(world.client)
    statuses: Counter[str] = Counter()
    while bounds.allow(figures.rounds):
        say(f"fuzz: round {figures.rounds}")
        if figures.rounds and figures.rounds % RENEW_AFTER == 0:
            world.close()
            world = make_world(ground, "Default")
        for operation in chance.sample(known, max(1, int(len(known) * share))):
            for _ in range(TRIES):
                if not bounds.allow(figures.rounds):
                    break
                statuses[_ask(figures, world, operation, chance)] += 1
        if world.client.http.get("/organization").status_code == 401:
            world.close()
            world = make_world(ground, "Default")
        figures.count("errors", "the web process ended", not ground.fleet.is_alive("web"))
        figures.rounds += 1
    world.close()
    figures.notes |= {"operations": len(known), "requests": sum(statuses.values()), "statuses": dict(sorted(statuses.items()))}


def _ask(figures: Figures, world: World, operation: Operation, chance: random.Random) -> str:
    """Send one strange request and judge the answer; returns its status."""
    path, options = _request(world, operation, chance)
    try:
        with world.client.http.stream(operation.method, path, timeout=60, **options) as response:
            content = b""
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                content = response.read()
    except (httpx.InvalidURL, httpx.LocalProtocolError, UnicodeError, ValueError):
        return "unsendable"
    except httpx.WriteError:
        return "refused while sending"  # the server answered and closed before it had read everything
    except httpx.HTTPError as error:
        figures.count("errors", f"{operation.name}: {type(error).__name__} {error} for {_shown(path, options)}")
        return type(error).__name__
    wrong = judge(operation, response, content)
    figures.count("errors", f"{operation.name}: {wrong}: {response.status_code} {content[:300]!r} for {_shown(path, options)}", bool(wrong))
    return str(response.status_code)


def judge(operation: Operation, response: httpx.Response, content: bytes) -> str:
    """What is wrong with an answer; empty if nothing is."""
    status = response.status_code
    if status < 400:
        return ""
    if status >= 500 and status != 503 and not (status == 502 and operation.path.endswith("/test")):
        return "a server error"
    if response.headers.get("content-type", "").partition(";")[0] != "application/problem+json":
        rejected = operation.takes_form and status == 400 and b'"rejected"' in content
        return "" if rejected else f"not a problem document ({response.headers.get('content-type')})"
    try:
        document = response.json()
    except ValueError:
        return "a problem that is not JSON"
    if not document.get("detail") or document.get("status") != status or not document.get("code"):
        return "a problem without detail, code or its status"
    return ""


def _request(world: World, operation: Operation, chance: random.Random) -> tuple[str, dict[str, Any]]:
    """(path with query, options) with one thing wrong, sometimes more."""
    options = world.body(operation)
    headers: dict[str, Any] = {"If-Match": '"1"'} if chance.random() < 0.5 else {}
    ids = {name: chance.choice(world.ids.get(name, IDS)) for name in operation.ids}
    if operation.method == "DELETE" and chance.random() < 0.98:
        ids[operation.ids[-1]] = chance.choice(IDS)  # else there is soon nothing left to ask for
    query: list[tuple[str, str]] = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        match chance.randrange(6):
            case 0 if ids:
                ids[chance.choice(list(ids))] = chance.choice(IDS)
            case 1 | 2 if operation.method in ("POST", "PUT"):
                options = _strange_body(world, operation, chance, headers)
            case 3:
                known = [name for name, where in operation.parameters if where == "query"] or ["limit"]
                query.append((chance.choice([*known, "cursor", "limit", "unknown"]), chance.choice(QUERY)))
            case 4:
                name = chance.choice(list(HEADERS))
                headers[name] = chance.choice(HEADERS[name]).encode("latin-1", "replace")
            case _:
                headers["Content-Type"] = chance.choice(TYPES).encode("latin-1", "replace")
    path = PARAMETER.sub(lambda match: ids[match.group(1)], operation.path)
    if query:
        path += "?" + "&".join(f"{name}={quote(value.encode('utf-8', 'surrogatepass'))}" for name, value in query)
    return path, options | {"headers": headers}


def _strange_body(world: World, operation: Operation, chance: random.Random, headers: dict[str, Any]) -> dict[str, Any]:
    if operation.takes_form and chance.random() < 0.8:
        content, headers["Content-Type"] = multipart(chance)
        return {"content": content}
    valid = world.body(operation).get("json")
    if valid is not None and chance.random() < 0.7:
        for _ in range(chance.choice((1, 1, 2, 4))):
            valid = mutate(valid, chance)
        headers.setdefault("Content-Type", "application/json")
        return {"content": as_json(valid)}
    headers.setdefault("Content-Type", "application/json")
    return {"content": chance.choice(BODIES)}


def _shown(path: str, options: dict[str, Any]) -> str:
    body = options.get("content", options.get("json", options.get("files")))
    return f"{path[:300]} headers {options.get('headers')} body {str(body)[:400]}"[:1000]
