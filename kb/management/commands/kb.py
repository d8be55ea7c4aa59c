"""`manage.py kb export | import | apply`: configurations of knowledge bases as files."""

import json
import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from config.errors import LecternError, NotFound
from kb import access, transfers
from kb.access import Actor
from kb.applying import apply_entries
from kb.bundles import Entry, Note, write_files
from kb.bundles.archives import MAX_PACKED
from kb.models import KnowledgeBase, Organization, User
from kb.schemas.diff import render
from kb.transfers import Outcome

SUFFIXES = (".yaml", ".yml", ".json", ".zip")
CHANGES = 2  # the exit status of --exit-code, as git diff has one


class Command(BaseCommand):
    help = "Export, import and apply configurations of knowledge bases: YAML or ZIP, without documents and secrets."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        out = actions.add_parser("export", help="write knowledge bases to a file, a folder or the standard output")
        out.add_argument("names", nargs="*", metavar="NAME", help="names or ids (default: all)")
        out.add_argument("--output", default="-", help="a .yaml or .zip file, or a folder (one file each); default: standard output")
        out.add_argument("--format", choices=transfers.MEDIA_TYPES, dest="form", help="default: by the name of the output, else yaml")
        out.add_argument("--number", type=int, metavar="N", help="export version N of the one knowledge base that is named")
        imports = actions.add_parser("import", help="make new knowledge bases from files; all or none")
        imports.add_argument("--name", default="", help="another name, for a single one")
        imports.add_argument("--rename", action="store_true", help="add a number to names that are taken")
        applies = actions.add_parser("apply", help="make knowledge bases what files say; the same again changes nothing")
        applies.add_argument("--allow-removals", action="store_true", help="remove sources that a file no longer has, with their documents")
        applies.add_argument("--comment", default="", help="for the history of what is published")
        applies.add_argument("--exit-code", action="store_true", help=f"exit with {CHANGES} when something changes, with --dry-run would")
        for parser in (imports, applies):
            parser.add_argument("files", nargs="+", metavar="FILE", help="YAML, JSON or ZIP, a folder of them, or - for standard input")
            parser.add_argument("--model", action="append", default=[], metavar="OLD=NEW", help="embedding model of the file = one here")
            parser.add_argument("--dry-run", action="store_true", help="say what would happen, and change nothing")
            parser.add_argument("--json", action="store_true", dest="as_json", help="print the results as JSON")
        for parser in (out, imports, applies):
            parser.add_argument("--organization", help="name (default: the only one)")
            parser.add_argument("--user", help="who acts, in the history and by rights (default: the system)")

    def handle(self, *args: Any, action: str, organization: str | None, user: str | None, **options: Any) -> None:
        try:
            actor = _actor(organization, user)
            if action == "export":
                self._export(actor, options)
            else:
                self._take_in(actor, action, options)
        except LecternError as error:
            faults = [f"  {fault['path']}: {fault['message']}" for fault in error.extra.get("errors", ())]
            raise CommandError("\n".join([error.message, *(faults if len(faults) > 1 else ())])) from None

    def _export(self, actor: Actor, options: dict[str, Any]) -> None:
        if options["number"] is not None and len(options["names"]) != 1:
            raise CommandError("--number is for one knowledge base. Name it.")
        chosen = [_find(actor, name) for name in options["names"]]
        if not options["names"]:
            chosen = list(access.knowledge_bases(actor).filter(hidden=False).order_by("name"))
        exports = [transfers.export(found, number=options["number"]) for found in chosen]
        output, form = options["output"], options["form"]
        if output != "-" and (Path(output).is_dir() or output.endswith("/")):
            if form == "zip":
                raise CommandError("--output is a folder, and a ZIP is one file. Name the file.")
            Path(output).mkdir(parents=True, exist_ok=True)
            for name, text in write_files(exports).items():
                (Path(output) / name).write_text(text, encoding="utf-8")
                self.stderr.write(f"Wrote {Path(output) / name}.")
            return
        form = form or ("zip" if output.lower().endswith(".zip") else "yaml")
        _, content = transfers.bundle_file(exports, form=form)
        if output != "-":
            Path(output).write_bytes(content)
            self.stderr.write(f"Wrote {len(exports)} knowledge bases to {output}.")
        elif form == "zip":
            if sys.stdout.isatty():
                raise CommandError("A ZIP is not for a terminal. Say --output FILE.")
            sys.stdout.buffer.write(content)
        else:
            self.stdout.write(content.decode(), ending="")

    def _take_in(self, actor: Actor, action: str, options: dict[str, Any]) -> None:
        entries, notes = _read(options["files"])
        shared = {"models": _models(options["model"]), "dry_run": options["dry_run"]}
        if action == "import":
            outcomes = transfers.import_entries(actor, entries, name=options["name"], rename=options["rename"], **shared)
        else:
            allowed, comment = options["allow_removals"], options["comment"]
            outcomes = apply_entries(actor, entries, allow_removals=allowed, comment=comment, **shared)
        if options["as_json"]:
            told = {"dry_run": options["dry_run"], "knowledge_bases": list(map(asdict, outcomes)), "notes": list(map(asdict, notes))}
            self.stdout.write(json.dumps(told, ensure_ascii=False, indent=2, default=str))
        else:
            for line in _lines(outcomes, notes, dry_run=options["dry_run"]):
                self.stdout.write(line)
        if options.get("exit_code") and any(outcome.action != "unchanged" for outcome in outcomes):
            sys.exit(CHANGES)


def _actor(organization: str | None, user: str | None) -> Actor:
    rows = Organization.objects.filter(state=Organization.State.ACTIVE).order_by("created_at")
    found = list(rows.filter(name=organization) if organization else rows[:2])
    if len(found) != 1:
        known = ", ".join(rows.values_list("name", flat=True)) or "none; run bootstrap first"
        raise CommandError(f"{'There is no such organization' if organization else 'Say which --organization'}. Known: {known}.")
    if user is None:
        return access.system_actor(found[0])
    person = User.objects.filter(username=user, is_active=True).first()
    if person is None:
        raise CommandError(f"There is no user named '{user}'.")
    return access.actor_for_user(person, found[0].id)


def _find(actor: Actor, name: str) -> KnowledgeBase:
    found = transfers.named(actor, name)
    if found is not None:
        return found
    try:
        return access.get_knowledge_base(actor, UUID(name))
    except (ValueError, NotFound):
        raise CommandError(f"There is no knowledge base '{name}'.") from None


def _read(files: Sequence[str]) -> tuple[list[Entry], list[Note]]:
    entries: list[Entry] = []
    notes: list[Note] = []
    for name in _expanded(files):
        if name == "-":
            data = sys.stdin.buffer.read(MAX_PACKED + 1)
        else:
            try:
                with Path(name).open("rb") as file:
                    data = file.read(MAX_PACKED + 1)
            except OSError as error:
                raise CommandError(f"{name} cannot be read: {error.strerror}.") from None
        shown = os.fsencode(name).decode("utf-8", "replace")  # a name of a file may be no text
        found, unread = transfers.read_entries(data, name="Standard input" if name == "-" else shown)
        entries += found
        notes += unread
    return entries, notes


def _expanded(files: Sequence[str]) -> Iterator[str]:
    for name in files:
        folder = Path(name)
        if name == "-" or not folder.is_dir():
            yield name
            continue
        found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
        shown = [str(path) for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
        if not shown:
            raise CommandError(f"The folder {name} holds no {', '.join(SUFFIXES)} file.")
        yield from shown


def _models(pairs: Sequence[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        old, separator, new = pair.rpartition("=")
        if not (separator and old and new):
            raise CommandError(f"--model {pair}: write OLD=NEW, the name in the file and the name here.")
        found[old] = new
    return found


def _lines(outcomes: Sequence[Outcome], notes: Sequence[Note], *, dry_run: bool) -> Iterator[str]:
    for outcome in outcomes:
        changed = outcome.action != "unchanged"
        action = f"would be {outcome.action}" if dry_run and changed else outcome.action
        yield f"{outcome.name}: {action}, version {outcome.version}"
        yield from (f"  {line}" for line in render(outcome.changes).splitlines())
        yield from (f"  ! {source.documents:,} documents go with the source {source.name}" for source in outcome.removed_sources)
        yield from (_note(note) for note in outcome.notes)
        if outcome.missing_secrets:
            yield f"  ! store these secrets before it is used: {', '.join(outcome.missing_secrets)}"
    yield from (_note(note) for note in notes)


def _note(note: Note) -> str:
    arrow = "" if note.old is None and note.new is None else f" ({note.old!r}{'' if note.new is None else f' → {note.new!r}'})"
    return f"  * {note.path}{arrow}: {note.message}"
