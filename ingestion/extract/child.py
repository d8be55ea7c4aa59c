"""The process that reads strangers' files: `python -m ingestion.extract.child [--without-languages] [--program=PATH…] INBOX [FOLDER…]`,
frames on stdin and stdout.

No Django, no credentials, no way out (enclosure.py). It serves requests one after the other and dies with its parent, which also sets its
limits: it may not do so itself."""

import ctypes
import errno
import os
import signal
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any, BinaryIO

from config.errors import ExtractionError, LecternError
from config.frames import pack_frame, read_frame
from ingestion.datasets.wanted import Wanted
from ingestion.extract import outbox
from ingestion.extract.base import PROGRAM, WITHOUT_LANGUAGES, Limits, Served
from ingestion.extract.cutting import cut, fitting, whole_spans
from ingestion.extract.enclosure import close_in
from ingestion.extract.extraction import content_hash, extract
from ingestion.extract.language import detect_language, forgo_model, load_model
from ingestion.extract.replies import NUMBER, OVER

PR_SET_PDEATHSIG = 1
PROJECT = Path(__file__).resolve().parents[2]
# Names below the project may be listed, because imports list folders; only these may be read: its data and secrets may not.
PACKAGES = ("config", "kb", "ingestion")
SYSTEM_FILES = (
    *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache"),
    *("/usr/share/zoneinfo", "/etc/localtime", "/dev/null", "/dev/urandom"),
)


def main(arguments: list[str]) -> None:
    requests, replies = _take_pipes()
    _die_with_parent()
    options = [argument for argument in arguments if argument.startswith("--")]
    folders = [Path(argument) for argument in arguments if not argument.startswith("--")]
    if WITHOUT_LANGUAGES in options:
        forgo_model()
    else:
        load_model()
    packages = [Path(sysconfig.get_path(key)) for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    prefixes = [Path(sys.prefix), Path(sys.base_prefix)] if sys.base_prefix != "/usr" else [Path(sys.prefix)]
    readable = [*packages, *prefixes, *map(Path, SYSTEM_FILES), *(PROJECT / name for name in PACKAGES), *folders]
    programs = [Path(option.removeprefix(PROGRAM)) for option in options if option.startswith(PROGRAM)]
    state = close_in(readable=readable, listable=[PROJECT], writable=[folders[0] / outbox.FOLDER], programs=programs)
    _send(replies, {"ready": True, "state": state})
    while (batch := read_frame(requests)) is not None:
        _answer_all(batch, replies)


def _answer_all(batch: dict[str, Any], replies: BinaryIO) -> None:
    """A reply for each request as soon as it is there, so that the parent knows at whose file we died; one says when the time is over."""
    started = time.monotonic()
    for position, request in enumerate(batch["requests"]):
        if position and batch["seconds"] is not None and time.monotonic() - started > batch["seconds"]:
            _send(replies, {OVER: True, NUMBER: request[NUMBER]})
            return
        _send(replies, answer(request) | {NUMBER: request[NUMBER]})


def answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        limits = Limits(**request.get("limits") or {})
        return _perform(request, limits=limits)
    except ExtractionError as error:
        return {"error": {"message": error.message, "reason": error.reason, "retires": error.retires}}
    except OSError as error:
        if error.errno == errno.EFBIG:
            return {"error": {"message": "", "reason": "output_limit", "retires": True}}
        return {"error": {"message": _described(error), "reason": "internal", "retires": False}}
    except MemoryError:
        return {"error": {"message": "", "reason": "memory_limit", "retires": False}}
    except LecternError as error:
        return {"error": {"message": error.message, "reason": "refused", "retires": False}}
    except RecursionError:
        message = "The file is nested too deeply to be read. Save it again in a simpler form."
        return {"error": {"message": message, "reason": "damaged", "retires": True}}
    except Exception as error:
        return {"error": {"message": _described(error), "reason": "internal", "retires": False}}


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:500]


def _perform(request: dict[str, Any], *, limits: Limits) -> dict[str, Any]:
    path = Path(request["path"])
    if request["op"] == "extract":
        served = Served(**request["page"]) if request.get("page") else None
        written = Path(request["outbox"]) if request.get("outbox") else None
        extracted = extract(
            path,
            name=request["name"],
            declared_type=request.get("declared_type"),
            limits=limits,
            served=served,
            outbox=written,
            tables=_tables(request),
        )
        wanted = request.get("chunk")
        if not extracted.markdown or request.get("known") == content_hash(extracted.title, extracted.markdown).hex():
            wanted = None
        passages = cut(extracted.markdown, wanted, title=extracted.title, whole=whole_spans(extracted)) if wanted else []
        return {"extracted": extracted.to_json(), "passages": passages}
    if request["op"] == "chunk":
        text = path.read_bytes().decode("utf-8")
        language = detect_language(text) if request.get("detect") else None
        return {"passages": cut(text, request["chunk"], title=request["title"]), "language": language}
    if request["op"] == "query":
        from ingestion.datasets.queries import answer_query

        return answer_query(request, limits=limits)
    if request["op"] == "recognize":
        from ingestion.recognize import perform

        return perform(path, request)
    raise ExtractionError(f"There is no operation {request['op']!r}.", reason="internal")


def _tables(request: dict[str, Any]) -> Wanted | None:
    if not request.get("tables"):
        return None
    return Wanted.of(request["tables"], fits=fitting(request.get("chunk")))


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Our own copies of the pipes; whatever a library prints goes to the log instead of between the frames."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return requests, replies


def _die_with_parent() -> None:
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _send(stream: BinaryIO, message: dict[str, Any]) -> None:
    stream.write(pack_frame(message))
    stream.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
