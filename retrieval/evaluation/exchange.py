"""Judgements as a file: JSON as the API writes them, or CSV with a line for each expectation."""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from config.body import parse_json, validate
from config.errors import InvalidInput
from kb.access import Actor
from kb.models import Document, KnowledgeBase
from retrieval.belonging import rows_of
from retrieval.evaluation.judging import (
    MAX_JUDGEMENTS,
    check_room,
    create_judgement,
    find_judgement,
    question_hash,
    replace_judgement,
    shown,
)
from retrieval.evaluation.requests import JudgementFile, JudgementInput
from retrieval.models import Judgement

COLUMNS = ("question", "document", "name", "grade", "quote", "note")
MAX_BYTES = 16 * 1024 * 1024
MAX_LINES = 100_000


@dataclass(frozen=True, slots=True)
class Imported:
    created: int
    changed: int


def export_judgements(knowledge_base: KnowledgeBase) -> list[dict[str, Any]]:
    """In the form that `import_judgements` takes. `name` is the address or key of a document, to find it by elsewhere."""
    rows = list(rows_of(knowledge_base, Judgement).order_by("created_at", "id"))
    expected = shown(knowledge_base, [row.expected for row in rows], quotes=False)
    wanted = {one.document_id for found in expected for one in found if not one.is_stale}
    names = {key: url or name for key, url, name in Document.objects.filter(id__in=wanted).values_list("id", "url", "key")}
    return [
        {
            "question": row.question,
            "note": row.note,
            "expected": [
                {"document": str(one.document_id), "name": names.get(one.document_id), "grade": one.grade, "quote": one.quote}
                for one in found
            ],
        }
        for row, found in zip(rows, expected, strict=True)
    ]


def write_csv(exported: Iterable[dict[str, Any]]) -> str:
    names = ("document", "name", "grade", "quote")
    lines = ([one["question"], *(expected[name] for name in names), one["note"]] for one in exported for expected in one["expected"])
    return write_lines([COLUMNS, *([_cell(value) for value in line] for line in lines)])


def write_lines(lines: Iterable[Iterable[Any]]) -> str:
    target = io.StringIO()
    csv.writer(target).writerows(lines)
    return target.getvalue()


def write_json(exported: Iterable[dict[str, Any]]) -> str:
    return json.dumps({"judgements": list(exported)}, ensure_ascii=False, indent=2) + "\n"


def read_file(data: bytes, *, is_csv: bool) -> list[JudgementInput]:
    """`InvalidInput` names the place of what is wrong: `judgements[2].expected[0].grade`, or `line 4`."""
    return read_csv(data) if is_csv else _checked(parse_json(data))


def read_csv(data: bytes) -> list[JudgementInput]:
    """Lines of one question belong together. The columns may stand in any order; `question` and one of `document`, `name` are needed."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"The file is not valid UTF-8 (byte {error.start}). Save it as UTF-8.") from None
    if "\0" in text:
        raise InvalidInput("The file holds a NUL character, which cannot be stored. Save it as CSV once more.")
    lines = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    found: dict[bytes, dict[str, Any]] = {}
    try:
        columns = lines.fieldnames or []
        unknown = [name for name in columns if name not in COLUMNS]
        if unknown or "question" not in columns:
            raise InvalidInput(f"The first line must name the columns {', '.join(COLUMNS)}; `question` is needed.")
        for line in lines:
            if lines.line_num > MAX_LINES:
                raise InvalidInput(f"The file has more than {MAX_LINES:,} lines. Split it.")
            if None in line or None in line.values():
                raise InvalidInput(f"line {lines.line_num} has not as many cells as there are columns. Quote cells that hold a comma.")
            _take(line, lines.line_num, found)
    except csv.Error as error:
        raise InvalidInput(f"line {lines.line_num} is not CSV: {error}. Correct it.") from None
    return _checked({"judgements": list(found.values())})


def _take(line: dict[str, str], number: int, found: dict[bytes, dict[str, Any]]) -> None:
    question, grade = _plain(line["question"]), (line.get("grade") or "1").strip()
    if not question.strip():
        raise InvalidInput(f"line {number} has no question.")
    if grade not in ("1", "2", "3"):
        raise InvalidInput(f"line {number}: the grade must be 1, 2 or 3, not {grade[:20]!r}.")
    one = found.setdefault(question_hash(question), {"question": question, "note": "", "expected": []})
    one["note"] = _plain(line.get("note") or "") or one["note"]
    expected = {"document": _plain(line.get("document") or "") or None, "name": _plain(line.get("name") or "") or None}
    one["expected"].append({**expected, "grade": int(grade), "quote": _plain(line.get("quote") or "")})


def _checked(data: Any) -> list[JudgementInput]:
    found = validate(data, JudgementFile, what="The file").judgements
    if len(found) > MAX_JUDGEMENTS:
        raise InvalidInput(f"The file has {len(found):,} questions; a knowledge base has at most {MAX_JUDGEMENTS:,}.")
    return found


def import_judgements(actor: Actor, knowledge_base: KnowledgeBase, wanted: Sequence[JudgementInput]) -> Imported:
    """All or nothing. A question that is judged already is replaced. `InvalidInput` names every document that is not there."""
    created = changed = 0
    faults: list[dict[str, str]] = []
    with transaction.atomic():
        for place, one in enumerate(wanted):
            known = find_judgement(knowledge_base, one.question)
            try:
                if known is None:
                    create_judgement(actor, knowledge_base, one)
                    created += 1
                else:
                    replace_judgement(actor, known, one)
                    changed += 1
            except InvalidInput as error:
                if "errors" not in error.extra:
                    raise
                faults += [{"path": f"judgements[{place}].{fault['path']}", "message": fault["message"]} for fault in error.extra["errors"]]
        check_room(knowledge_base, 0)
        if faults:
            first = f"{faults[0]['path']}: {faults[0]['message']}"
            raise InvalidInput(f"The file is not valid at {first} ({len(faults)} in all).", errors=faults[:50])
    return Imported(created, changed)


def _cell(value: Any) -> Any:
    """A spreadsheet runs what begins like a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value


def _plain(value: str) -> str:
    return value[1:] if value[:1] == "'" and value[1:2] and value[1] in "=+-@\t\r" else value
