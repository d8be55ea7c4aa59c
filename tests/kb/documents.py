"""Knowledge base documents of any shape that can be published, for property tests."""

from hypothesis import strategies as st

_VISIBLE = st.characters(exclude_categories=("Cc", "Cs", "Cn", "Co", "Zl", "Zp"))
_WORDS = [
    "no",
    "yes",
    "on",
    "1:30",
    "010",
    "0x1f",
    "1e3",
    "1_000",
    "2026-01-01",
    "null",
    "~",
    "=",
    "<<",
    "- a",
    "a: b",
    "#",
    "ä",
    "日本語",
    "'",
    '"',
    "%",
]
_NAMES = st.one_of(st.sampled_from(_WORDS), st.text(_VISIBLE, min_size=1, max_size=40)).map(
    lambda text: f"{text}x" if not text.strip() else text
)
_TEXTS = st.one_of(
    st.sampled_from(_WORDS), st.text(st.characters(exclude_categories=("Cc", "Cs"), include_characters="\t\n\r"), max_size=200)
)


def names() -> st.SearchStrategy[str]:
    from kb.schemas.base import clean_name, refuse_reference

    def holds(name: str) -> bool:
        try:
            refuse_reference(clean_name(name))
        except ValueError:
            return False
        return True

    return _NAMES.filter(holds)


def _sources() -> st.SearchStrategy[dict]:
    from kb.schemas.base import fold

    settings = st.fixed_dictionaries(
        {},
        optional={
            "max_content_length": st.integers(1, 10**6),
            "max_deletion_share": st.floats(0, 1),
            "time_budget_minutes": st.integers(1, 1440),
        },
    )
    shared = {"name": names(), "settings": settings}
    cron = {"cron": st.sampled_from(["30 3 * * *", "0 * * * mon", "*/5 1-3 * jan,dec *", None]), "enabled": st.booleans()}
    upload = st.fixed_dictionaries({**shared, "type": st.just("upload")}, optional=cron)
    web = st.fixed_dictionaries(
        {"start_url": st.sampled_from(["https://docs.example.com/", "http://example.org:8080/a?b=c#d"])},
        optional={
            "path_prefix": st.sampled_from(["/", "/docs", "/1:30", "/no/"]),
            "exclude_patterns": st.lists(st.sampled_from(["/a/**", "*.pdf", "/{b}", "/#c"]), max_size=3),
            "max_pages": st.integers(1, 50_000),
            "user_agent": st.sampled_from(["no", "Bot/1.0 (+https://a.example)", "a: b # c"]),
        },
    )
    site = st.fixed_dictionaries({**shared, "type": st.just("web"), "web": web}, optional=cron)
    return st.lists(st.one_of(upload, site), max_size=4, unique_by=lambda source: fold(source["name"]))


def documents() -> st.SearchStrategy[dict]:
    chunking = st.fixed_dictionaries({}, optional={"target_tokens": st.sampled_from(["auto", 32, 400]), "overlap": st.floats(0, 0.5)})
    retrieval = st.fixed_dictionaries({}, optional={"mode": st.sampled_from(["vector", "hybrid"]), "min_score": st.floats(0, 1)})
    optional = {
        "description": _TEXTS.filter(lambda text: "${secret:" not in text),
        "visibility": st.sampled_from(["private", "organization"]),
        "language": st.sampled_from(["auto", "no", "de", "simple"]),
        "chunking": chunking,
        "retrieval": retrieval,
    }
    return st.fixed_dictionaries({"name": names(), "sources": _sources()}, optional=optional)
