"""How long calls take, one after the other or from several clients at once, and how long their statements take without them."""

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import TypeVar

T = TypeVar("T")


def record(call: Callable[[T], object], asked: T) -> list[tuple[object, object]]:
    """The statements that a call sends."""
    from django.db import connection

    statements = []

    def note(execute, sql, parameters, many, context):
        statements.append((sql, parameters))
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(note):
        call(asked)
    # What reads; the trace is written once.
    return [(sql, parameters) for sql, parameters in statements if str(sql).lstrip().startswith(("SELECT", "WITH", "SET"))]


def replay(statements: Sequence[tuple[object, object]]) -> list[int]:
    from django.db import connection, transaction

    raw = connection.connection.cursor()
    with transaction.atomic():
        for sql, parameters in statements:
            raw.execute(sql, parameters)
            while True:
                if raw.description:
                    raw.fetchall()
                if not raw.nextset():
                    break
    return []


@dataclass(frozen=True)
class Timed:
    """`seconds` of each call, `wall` of all of them together; a call that raised has no answer."""

    seconds: list[float]
    answers: list[list[int] | None]
    wall: float

    @property
    def per_second(self) -> float:
        return len(self.seconds) / self.wall

    @property
    def errors(self) -> int:
        return self.answers.count(None)


def measure(call: Callable[[T], list[int]], asked: Sequence[T], clients: int) -> Timed:
    from django.db import connections

    def once(each: T) -> tuple[float, list[int] | None]:
        started = time.perf_counter()
        try:
            found = call(each)
        except Exception as error:  # counted: a benchmark says how many, not only that
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            found = None
        return time.perf_counter() - started, found

    if clients == 1:
        started = time.perf_counter()
        answers = [once(each) for each in asked]
        wall = time.perf_counter() - started
    else:
        gate = Barrier(clients)

        def connect() -> None:
            connections["default"].ensure_connection()
            gate.wait()

        with ThreadPoolExecutor(clients) as pool:
            # All connections stand before the clock starts.
            list(pool.map(lambda _: connect(), range(clients)))
            started = time.perf_counter()
            answers = list(pool.map(once, asked))
            wall = time.perf_counter() - started
            list(pool.map(lambda _: (gate.wait(), connections["default"].close()), range(clients)))
    return Timed([seconds for seconds, _ in answers], [found for _, found in answers], wall)
