import os
import sys
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path

import httpx
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from config.embedded.stack import read_stack, report
from kb import services
from kb.models import ApiKey, EmbeddingModel, Organization, Role, User

NAME = "Demo"
KEY_NAME = "demo"
KEY_LIFE = timedelta(days=30)
QUESTIONS = (
    "What happens when a worker is killed in the middle of a run?",
    "Which limits hold when an uploaded file is read?",
)
PROJECT = Path(settings.BASE_DIR)
RUN_SECONDS = 1800


class Command(BaseCommand):
    help = "Put documents into a knowledge base through the API, ask two questions, and print the cited passages."

    def add_arguments(self, parser) -> None:
        parser.add_argument("--source", default=os.environ.get("SOURCE") or None, help="a file or folder (default: README and docs/)")
        parser.add_argument("--question", action="append", help="ask this instead; may be given several times")

    _told = 0.0  # when progress was last written to something that is no terminal

    def handle(self, *args, source: str | None, question: list[str] | None, **options) -> None:
        try:
            self._show(Path(source).expanduser().resolve() if source else None, question)
        except KeyboardInterrupt:
            raise CommandError("Interrupted. What was started goes on in the background; `make stop` ends it.") from None
        except httpx.ConnectError as error:
            raise CommandError(
                f"The web server at {self._url()} does not answer. Start the stack with `make up`, then try again."
            ) from error

    def _show(self, source: Path | None, question: list[str] | None) -> None:
        self._refuse_hashing()
        organization = Organization.objects.order_by("created_at").first()
        key = self._key(organization)
        with httpx.Client(
            base_url=f"{self._url()}/api/v1", headers={"Authorization": f"Bearer {key}"}, timeout=120, trust_env=False
        ) as client:
            paths = _files(source)
            knowledge_base, upload_source = self._knowledge_base(client, NAME if source is None else f"{NAME}: {source}"[-200:])
            self._upload(client, knowledge_base, upload_source, paths)
            self._run(client, knowledge_base, upload_source)
            asked = question or (QUESTIONS if source is None else self._questions(client, knowledge_base))
            # Questions made of titles and headings are no good questions, so any distance will do for them.
            cited = [self._ask(client, knowledge_base, text, **({} if question or source is None else {"min_score": 0})) for text in asked]
        self._farewell(key)
        if not all(cited):
            raise CommandError("An answer came back without citations.")

    def _url(self) -> str:
        """Where the web process of this stack listens; its port may differ from LECTERN_PORT when that was taken."""
        stack = read_stack(settings.HOME)
        return (stack.url if stack else None) or settings.SITE_URL

    def _refuse_hashing(self) -> None:
        default = EmbeddingModel.objects.filter(is_default=True, organization=None).first()
        if default is None or default.provider == "hashing":
            raise CommandError("The demo wants a real embedding model as the installation's default, not `hashing`.")

    def _key(self, organization: Organization) -> str:
        """A fresh key each time: the value of an old one is kept nowhere. An old one goes on working for its month."""
        ApiKey.objects.filter(organization=organization, name=KEY_NAME, expires_at__lt=timezone.now()).delete()
        _, value = services.create_api_key(organization, name=KEY_NAME, role=Role.ADMIN, expires_at=timezone.now() + KEY_LIFE)
        return value

    def _knowledge_base(self, client: httpx.Client, name: str) -> tuple[str, str]:
        found = _ok(client.get("/knowledge-bases", params={"limit": 200, "name": name}))["items"]
        known = [entry for entry in found if entry["name"].casefold() == name.casefold()]
        if known:
            identifier = known[0]["id"]
        else:
            document = {
                "name": name,
                "visibility": "organization",
                "sources": [{"name": "files", "type": "upload", "upload": {"max_files": 10_000}}],
            }
            identifier = _ok(client.post("/knowledge-bases", json=document))["id"]
        document = _ok(client.get(f"/knowledge-bases/{identifier}"))["document"]
        self.stdout.write(f"Knowledge base {name} ({identifier})")
        return identifier, next(entry["id"] for entry in document["sources"] if entry["name"] == "files")

    def _upload(self, client: httpx.Client, knowledge_base: str, source: str, paths: list[Path]) -> None:
        stored = 0
        for position, (name, path) in enumerate(_named(paths).items(), start=1):
            with path.open("rb") as file:
                response = client.post(f"/knowledge-bases/{knowledge_base}/sources/{source}/files", files={"files": (name, file)})
            answer = response.json()
            if response.status_code not in (200, 400) or "stored" not in answer:
                raise CommandError(f"{path}: {answer.get('detail') or answer}")
            stored += len(answer["stored"])
            for rejected in answer["rejected"]:
                self.stdout.write(f"\n  refused: {rejected['file_name']}: {rejected['reason']}")
            self._progress(f"Uploading {position}/{len(paths)}")
        self.stdout.write("")
        if not stored:
            raise CommandError("None of the files could be read; nothing to ask about.")

    def _run(self, client: httpx.Client, knowledge_base: str, source: str) -> None:
        run = _ok(client.post(f"/knowledge-bases/{knowledge_base}/sources/{source}/run"))
        started = time.monotonic()
        while time.monotonic() - started < RUN_SECONDS:
            state = _ok(client.get(f"/runs/{run['run_id']}"))
            counters = state["counters"]
            done = counters.get("ingested", 0) + counters.get("unchanged", 0)
            waiting = f", waiting: {state['waiting_for']}" if state.get("waiting_for") else ""
            self._progress(
                f"Ingesting: {done}/{counters.get('found', 0)} documents, {counters.get('embeddings_computed', 0)} embeddings"
                f", {time.monotonic() - started:.0f} s{waiting}"
            )
            if state["finished_at"]:
                self.stdout.write(
                    f"\nRun {state['status']} after {time.monotonic() - started:.1f} s: {counters.get('chunks', 0)} new chunks"
                )
                if state["status"] not in ("succeeded", "partial"):
                    raise CommandError(state["error"] or f"The run ended {state['status']}.")
                return
            time.sleep(0.3)
        raise CommandError("The run did not end. Look at the log of the stack and at the run's page in the admin.")

    def _questions(self, client: httpx.Client, knowledge_base: str) -> list[str]:
        """Two questions about what was read: headings, or first words, of two documents (or of two places of the only one)."""
        found = _ok(client.get(f"/knowledge-bases/{knowledge_base}/documents", params={"limit": 100, "state": "indexed"}))["items"]
        if not found:
            raise CommandError("None of the files could be read; nothing to ask about.")
        passages = []
        for entry in (found[0], found[len(found) // 2]):
            page = _ok(client.get(f"/knowledge-bases/{knowledge_base}/documents/{entry['id']}"))["chunk_page"]["items"]
            passages += [(entry["title"], chunk) for chunk in page]
        questions = []
        for title, chunk in (passages[0], passages[-1]):
            topic = chunk["heading_path"][-1] if chunk["heading_path"] else " ".join(chunk["text"].split()[:8])
            questions.append(f"{title}: {topic}?" if topic != title else f"What does {title} say?")
        return questions

    def _ask(self, client: httpx.Client, knowledge_base: str, text: str, **options: object) -> bool:
        answer = _ok(client.post("/search", json={"query": text, "knowledge_bases": [knowledge_base], "max_results": 3, **options}))
        self.stdout.write(f"\n{self.style.MIGRATE_HEADING('? ' + text)}")
        for number, hit in enumerate(answer["hits"], start=1):
            document = hit["document"]
            where = " > ".join(hit["heading_path"]) or document["title"]
            page = f", page {hit['page']}" if hit.get("page") else ""
            scores = ", ".join(f"{name} {value:.3f}" for name, value in hit["scores"].items() if isinstance(value, float))
            self.stdout.write(
                self.style.SUCCESS(
                    f"[{number}] {document['title']} — {where}{page}, characters {hit['match']['start']}–{hit['match']['end']}"
                )
            )
            self.stdout.write(f"    score {hit['score']:.3f} ({scores}) · citation {hit['citation']}")
            self.stdout.write("    " + _shortened(hit["text"][max(0, hit["match"]["start"] - hit["span"]["start"]) :]))
        if not answer["hits"]:
            self.stdout.write(f"    nothing found: {answer['reason']} (trace {answer['trace_id']})")
        return bool(answer["hits"]) and all(hit["citation"] for hit in answer["hits"])

    def _farewell(self, key: str) -> None:
        url = self._url()
        password = Path(settings.HOME) / "admin-password"
        login = f"admin / {password.read_text().strip()}" if password.exists() else "as you set it up"
        user = User.objects.filter(is_superuser=True).order_by("date_joined").first()
        self.stdout.write(
            f"\nAdmin    {url}/admin/   login: {login if user and user.username == 'admin' else user}\n"
            f"API      {url}/api/v1/docs\nAPI key  {key}\n"
        )
        if read_stack(settings.HOME):
            self.stdout.write("What each process costs in memory:\n" + report(settings.HOME))

    def _progress(self, text: str) -> None:
        if sys.stdout.isatty():
            self.stdout.write(f"\r\033[K{text}", ending="")
            self.stdout.flush()
        elif time.monotonic() - self._told > 5:
            self.stdout.write(text)
            self._told = time.monotonic()


def _files(source: Path | None) -> list[Path]:
    """The files to put in: a single one, those below a folder (hidden ones left out), or the project's own documents."""
    if source is None:
        return [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
    if not source.exists():
        raise CommandError(f"There is no file or folder {source}. Set SOURCE to one that exists.")
    if source.is_file():
        return [source]
    found = sorted(
        path for path in source.rglob("*") if path.is_file() and not any(part.startswith(".") for part in path.relative_to(source).parts)
    )
    if not found:
        raise CommandError(f"The folder {source} holds no files.")
    return found


def _named(paths: list[Path]) -> dict[str, Path]:
    """A file is known by its name; those that share one are told apart by the folders above them."""
    counts = Counter(path.name.lower() for path in paths)
    top = Path(os.path.commonpath(paths)) if len(paths) > 1 else None
    return {path.name if counts[path.name.lower()] == 1 or top is None else " - ".join(path.relative_to(top).parts): path for path in paths}


def _shortened(text: str, length: int = 300) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def _ok(response: httpx.Response) -> dict:
    if response.is_success:
        return response.json()
    try:
        detail = response.json().get("detail") or response.text
    except ValueError:
        detail = response.text
    raise CommandError(f"{response.request.method} {response.request.url.path} answered {response.status_code}: {detail[:500]}")
