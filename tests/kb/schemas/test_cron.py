"""Cron expressions: what is accepted, and that it means the same to us, to Celery's beat and to an independent library."""

from datetime import UTC, datetime, timedelta

import pytest
from celery.schedules import crontab
from croniter import croniter

from config.errors import InvalidInput
from kb.schemas import Rules, load
from kb.schemas.cron import check_cron, parse_cron

READ_ALIKE = [
    "* * * * *",
    "*/5 * * * *",
    "30 3 * * *",
    "0,15,30-40/5 8-18/2 * * mon-fri",
    "0 0 1,15 * *",
    "0 0 29 2 *",
    "0 0 31 * *",
    "0 12 13 * fri",
    "0 0 29 2 sun",
    "59 23 31 12 *",
    "0 6 * jan-mar,jul 0",
    "1-59/2 0 * * 6",
    "0 0 * * */2",
    "0 0 */10 */3 *",
]


@pytest.mark.parametrize("text", READ_ALIKE)
def test_celery_and_croniter_fire_when_we_say(text: str) -> None:
    schedule = parse_cron(text)
    minute, hour, day, month, weekday = schedule.fields
    celery = crontab(minute, hour, weekday, day, month)
    assert (set(schedule.minutes), set(schedule.hours)) == (celery.minute, celery.hour)
    assert (schedule.days, schedule.months, schedule.weekdays) == (celery.day_of_month, celery.month_of_year, celery.day_of_week)
    ours = theirs = datetime(2026, 1, 31, 23, 59, 30, tzinfo=UTC)
    other = croniter(text, theirs, day_or=False)
    for _ in range(5):
        ours, theirs = schedule.next_fire(ours), other.get_next(datetime)
        assert ours == theirs


@pytest.mark.parametrize("text", READ_ALIKE)
def test_the_last_fire_is_the_one_before_the_next(text: str) -> None:
    schedule = parse_cron(text)
    fire = schedule.next_fire(datetime(2026, 1, 31, 23, 59, 30, tzinfo=UTC))
    following = schedule.next_fire(fire)
    assert schedule.last_fire(fire) == schedule.last_fire(following - timedelta(seconds=1)) == fire
    assert schedule.last_fire(following) == following


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("  0   3 * *  MON ", "0 3 * * mon"),
        ("0 3 * * 7", "0 3 * * 0"),
        ("0 3 * * 5-7", "0 3 * * 0,5,6"),
        ("0 3 * * sat-sun", "0 3 * * 0,6"),
        ("0 3 * * 0-7", "0 3 * * 0,1,2,3,4,5,6"),
    ],
)
def test_what_is_stored_is_what_celery_reads(text: str, stored: str) -> None:
    assert check_cron(text, min_interval_seconds=60) == stored
    minute, hour, day, month, weekday = stored.split()
    crontab(minute, hour, weekday, day, month)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "* * * *",
        "* * * * * *",
        "0 0 0 1 1 * 2026",
        "@hourly",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 0 *",
        "* * * 13 *",
        "* * * * 8",
        "*/0 * * * *",
        "5/10 * * * *",
        "1-2-3 * * * *",
        "1- * * * *",
        "-1 * * * *",
        ", * * * *",
        "1,,2 * * * *",
        "0 0 L * *",
        "0 0 ? * *",
        "0 0 * * fri#2",
        "0 0 15W * *",
        "0 22-2 * * *",
        "jan * * * *",
        "0 0 * mon *",
        "0 0 * * jan",
        "٣ * * * *",
        "H * * * *",
        "0 0 30 2 *",
        "0 0 31 2,4,6,9,11 *",
        "0 0 30 2 mon",
        "1," * 200 + "1 * * * *",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"[.]$"):
        check_cron(text, min_interval_seconds=60)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("* * * * *", 60),
        ("0,1 3 * * *", 60),
        ("*/7 * * * *", 240),  # 56 to 0
        ("0 * * * *", 3600),
        ("0 0,23 * * *", 3600),  # over midnight
        ("0 0,23 * * mon", 23 * 3600),  # no two days in a row: only its own
        ("0 3 * * mon", 7 * 86_400),
        ("0 3 1,31 * *", 86_400),
        ("0 3 29 2 *", 4 * 365 * 86_400 + 86_400),
        ("0 0 13 * fri", 28 * 86_400),  # February and March
    ],
)
def test_shortest_gap(text: str, seconds: int) -> None:
    schedule = parse_cron(text)
    assert schedule.shortest_gap() == seconds
    check_cron(text, min_interval_seconds=seconds)
    with pytest.raises(ValueError, match="LECTERN_MIN_SCHEDULE_INTERVAL"):
        check_cron(text, min_interval_seconds=seconds + 1)


def test_no_pair_of_fires_is_closer_than_the_shortest_gap() -> None:
    for text in READ_ALIKE:
        schedule = parse_cron(text)
        moment, gap = datetime(2026, 2, 1, tzinfo=UTC), schedule.shortest_gap()
        assert gap is not None
        for _ in range(40):
            following = schedule.next_fire(moment)
            later = schedule.next_fire(following)
            assert later - following >= timedelta(seconds=gap)
            moment = following


def test_next_fire_reads_any_zone_in_utc() -> None:
    noon = datetime.fromisoformat("2026-06-01T01:30:00+02:00")
    assert parse_cron("0 0 * * *").next_fire(noon) == datetime(2026, 6, 1, 0, 0, tzinfo=UTC)
    assert parse_cron("30 23 * * *").next_fire(noon) == datetime(2026, 6, 1, 23, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("cron", "said"),
    [
        ("* * * * * *", "five fields"),
        ("0 0 30 2 *", "never fires"),
        ("*/5 * * * *", "at least 3600 s"),
        ("99 * * * *", "not between 0 and 59"),
    ],
)
def test_the_error_names_the_source(cron: str, said: str) -> None:
    values = {"name": "kb", "sources": [{"name": "first", "type": "upload"}, {"name": "handbooks", "type": "upload", "cron": cron}]}
    with pytest.raises(InvalidInput) as caught:
        load(values, strict=True, rules=Rules(min_interval_seconds=3600))
    [error] = caught.value.extra["errors"]
    assert error["path"] == "sources[handbooks].cron"
    assert said in error["message"]
    assert "sources[handbooks].cron" in str(caught.value)
