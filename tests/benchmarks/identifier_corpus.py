"""Documents that differ in a code and in little else, and questions that name one: who asks for a code wants that code."""

import random

KINDS = 8
SUBJECTS = ("pump", "router", "invoice", "licence", "sensor", "printer", "backup", "gateway", "valve", "session")
CAUSES = ("the cable is loose", "the clock is wrong", "the disk is full", "the port is taken", "the filter is old", "the key has expired")
REMEDIES = ("restart the service", "call the helpdesk", "replace the part", "wait for a minute", "read the manual", "renew the contract")
WORDS = ("CONN", "DISK", "AUTH", "CACHE", "QUEUE", "INDEX", "PROXY", "TOKEN", "FRAME", "STACK", "RESET", "CLOSED", "LIMIT", "STALE", "LOST")


def codes(count: int, seed: int = 1) -> list[str]:
    """Distinct: error codes, versions, calls, part numbers, addresses, paths and plain numbers. Many differ in one sign."""
    draw = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        found.setdefault(_code(draw, len(found) % KINDS))
    return list(found)


def _code(draw: random.Random, kind: int) -> str:
    a, b, c = (draw.choice(WORDS) for _ in range(3))
    low, high = draw.randrange(1, 40), draw.randrange(1000, 9999)
    match kind:
        case 0:
            return f"ERR_{a}_{b}_{c}"
        case 1:
            return f"v{low}.{draw.randrange(40)}.{draw.randrange(40)}"
        case 2:
            return f"{a.lower()}{low}.{b.lower()}_{c.lower()}()"
        case 3:
            return f"{a[:2]}-{high}"
        case 4:
            return f"{a.lower()}.{b.lower()}{low}@{c.lower()}.example.org"
        case 5:
            return f"/etc/{a.lower()}/{b.lower()}{low}.conf"
        case 6:
            return f"{b.lower()}{c.title()}{a.title()}{low}"
        case _:
            return f"{draw.randrange(10**8, 10**9)}"


def documents(names: list[str], seed: int = 2) -> dict[str, tuple[str, str]]:
    """Code → (title, text). Titles say nothing, texts repeat each other, and each names its code once."""
    draw = random.Random(seed)
    found = {}
    for number, name in enumerate(names):
        subject, cause, remedy = draw.choice(SUBJECTS), draw.choice(CAUSES), draw.choice(REMEDIES)
        text = f"The {subject} reports {name} when {cause}. If it happens again, {remedy} and note the time."
        found[name] = (f"Note {number % 50}", text)
    return found


def questions(names: list[str], count: int) -> dict[str, str]:
    """Code → a question that names it, for some of all."""
    forms = ("{}", "what does {} mean", "How do I fix {}?", "the pump says {}, what now", "where is {} described")
    chosen = random.Random(3).sample(names, min(count, len(names)))
    return {name: forms[number % len(forms)].format(name) for number, name in enumerate(chosen)}
