"""The process that drives the browser: `python -m ingestion.render.child CHROMIUM [--apart]`, frames on stdin and stdout.

It asks for nothing itself: what a page wants to have goes to the parent as {"ask": …} and comes back as {"answer": …}. One page at
a time, each in a browser context of its own; it ends with its parent."""

import asyncio
import base64
import json
import os
import sys
import time
from contextlib import suppress
from typing import Any, BinaryIO

from config.frames import LENGTH, pack_frame
from ingestion.render.chromium import NOWHERE, switches
from ingestion.render.isolation import die_with_parent, isolate

# Text is made of these; the rest is given as empty or not at all, and never asked for.
ASKED_FOR = frozenset({"document", "script", "xhr", "fetch", "other"})
EMPTY_STYLE = {"status": 200, "content_type": "text/css", "body": ""}
EMPTY_IMAGE = {
    "status": 200,
    "content_type": "image/gif",
    "body": base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"),
}
# What web components show stands in trees of their own, which are no part of a page's HTML: they are put where they are seen.
HAS_SHADOWS = "[...document.querySelectorAll('*')].some(each => each.shadowRoot)"
WITHOUT_SHADOWS = """() => {
  const unfold = root => {
    for (const host of root.querySelectorAll('*')) {
      if (!host.shadowRoot) continue;
      unfold(host.shadowRoot);
      for (const slot of host.shadowRoot.querySelectorAll('slot')) {
        const given = slot.assignedNodes();
        slot.replaceWith(...(given.length ? given : slot.childNodes));
      }
      host.replaceChildren(...host.shadowRoot.childNodes);
    }
  };
  unfold(document);
  return '<!DOCTYPE html>' + document.documentElement.outerHTML;
}"""
QUIET_SECONDS = 0.5
TICK = 0.1


class Pipes:
    """Frames from and to the parent; its answers go to whoever waits for them."""

    def __init__(self, reader: asyncio.StreamReader, out: BinaryIO) -> None:
        self._reader = reader
        self._out = out
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._asked = 0
        self.orders: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def read(self) -> None:
        """Until the parent closes the pipe."""
        with suppress(asyncio.IncompleteReadError):
            while True:
                (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
                message = json.loads(await self._reader.readexactly(length))
                if "answer" not in message:
                    self.orders.put_nowait(message)
                elif (waiting := self._waiting.pop(message["answer"], None)) is not None and not waiting.done():
                    waiting.set_result(message)

    def send(self, message: dict[str, Any]) -> None:
        self._out.write(pack_frame(message))
        self._out.flush()

    async def ask(self, **what: Any) -> dict[str, Any]:
        self._asked += 1
        self._waiting[self._asked] = future = asyncio.get_running_loop().create_future()
        self.send({"ask": self._asked, **what})
        return await future


class PageFailed(Exception):
    """The browser could not make the page; the text is a clause for the parent's sentence."""


class Page:
    """One page being made."""

    def __init__(self, pipes: Pipes, order: dict[str, Any]) -> None:
        self._pipes = pipes
        self._order = order
        self._page: Any = None
        self._flying = 0
        self._changed_at = self._code_at = time.monotonic()

    async def make(self, browser: Any) -> dict[str, Any]:
        context = await browser.new_context(user_agent=self._order["user_agent"], accept_downloads=False, service_workers="block")
        try:
            await context.route("**/*", self._route)
            self._page = await context.new_page()
            context.on("page", lambda popup: asyncio.ensure_future(_close(popup)))
            return await self._read()
        finally:
            with suppress(Exception):
                await context.close()

    async def _read(self) -> dict[str, Any]:
        from playwright.async_api import Error
        from playwright.async_api import TimeoutError as TooSlow

        crashed = asyncio.get_running_loop().create_future()
        self._page.on("crash", lambda: crashed.done() or crashed.set_result(None))
        seconds, idle = self._order["seconds"], self._order["idle"]
        opened = asyncio.ensure_future(self._open(seconds=0.7 * seconds, idle=idle))
        done, _ = await asyncio.wait({opened, crashed}, return_when=asyncio.FIRST_COMPLETED)
        try:
            if opened not in done:
                opened.cancel()
                raise PageFailed("it crashed, probably for lack of memory")
            return opened.result()
        except (TooSlow, TimeoutError):
            return {"error": "render_timeout", "why": ""}
        except (Error, PageFailed) as error:
            return {"error": "render_failed", "why": str(error).split("\n", 1)[0][:300]}

    async def _open(self, *, seconds: float, idle: float) -> dict[str, Any]:
        from playwright.async_api import Error
        from playwright.async_api import TimeoutError as TooSlow

        until = time.monotonic() + seconds
        try:
            await self._page.goto(self._order["render"], wait_until="commit", timeout=1000 * seconds)
        except Error as error:
            # A script that goes elsewhere at once interrupts the first navigation.
            if "ERR_ABORTED" not in str(error) and "interrupted" not in str(error):
                raise
        await self._rest(until, idle=idle)
        for attempt in range(3):
            try:
                html = await asyncio.wait_for(self._html(), self._order["seconds"] - seconds)
                return {"url": self._page.url, "html": html}
            except Error as error:
                if attempt == 2 or isinstance(error, TooSlow):
                    raise
                await asyncio.sleep(0.5)  # it is just on its way to another address of the site
        raise AssertionError

    async def _html(self) -> str:
        if await self._page.evaluate(HAS_SHADOWS):
            return await self._page.evaluate(WITHOUT_SHADOWS)
        return await self._page.content()

    async def _rest(self, until: float, *, idle: float) -> None:
        """Until the page waits for nothing and has nothing to do, or goes on asking for data long after its last script came, or time
        is up. The browser's own signs do not do: an advertisement that never comes, and a navigation that was refused, keep back `load`."""
        from playwright.async_api import Error

        while (now := time.monotonic()) < until and now - self._code_at < idle:
            await asyncio.sleep(TICK)
            quiet_since = self._changed_at
            if self._flying or now - quiet_since < QUIET_SECONDS:
                continue
            with suppress(Error, TimeoutError):
                # Answered only when its scripts are through.
                state = await asyncio.wait_for(self._page.evaluate("document.readyState"), until - now)
                if state == "complete" and not self._flying and quiet_since == self._changed_at:
                    return

    async def _route(self, route: Any) -> None:
        from playwright.async_api import Error

        with suppress(Error):  # the page may be gone by now
            request = route.request
            kind, is_navigation = request.resource_type, request.is_navigation_request()
            if kind == "stylesheet":
                await route.fulfill(**EMPTY_STYLE)
            elif kind == "image":
                await route.fulfill(**EMPTY_IMAGE)
            elif kind not in ASKED_FOR or request.method != "GET" or (is_navigation and not self._is_ours(request)):
                self._pipes.send({"refused": request.url[:500]})
                await route.abort("aborted" if is_navigation else "blockedbyclient")
            else:
                await self._fulfil(route, request, kind="document" if is_navigation else kind)

    async def _fulfil(self, route: Any, request: Any, *, kind: str) -> None:
        headers = request.headers
        if "prefetch" in headers.get("sec-purpose", "") + headers.get("purpose", ""):
            await route.abort("blockedbyclient")
            return
        self._flying += 1
        self._changed_at = time.monotonic()
        answer = await self._pipes.ask(url=request.url, kind=kind, accept=headers.get("accept", "*/*"))
        self._flying -= 1
        self._changed_at = time.monotonic()
        if kind in ("document", "script"):
            self._code_at = self._changed_at
        if not answer["status"]:
            await route.abort("aborted" if kind == "document" else "failed")
            return
        given = {"content-type": answer["type"]}
        if kind != "document":
            # No cookie and no password is ever sent, so that whatever came is for everybody to read.
            given |= {"access-control-allow-origin": headers.get("origin", "*"), "access-control-allow-credentials": "true"}
        await route.fulfill(status=answer["status"], headers=given, body=base64.b64decode(answer["body"]))

    def _is_ours(self, request: Any) -> bool:
        """Only the page itself is a document: frames and windows hold other pages."""
        return self._page is not None and request.frame == self._page.main_frame


async def _close(page: Any) -> None:
    with suppress(Exception):
        await page.close()


def _reason(log: str) -> str:
    """What of a failed start says why: the first line, and the last that the browser wrote itself."""
    lines = log.splitlines()
    own = [line.partition("[err]")[2].strip() for line in lines if "[err]" in line]
    return " ".join([*lines[:1], *own[-1:]])[:600]


async def serve(executable: str, state: str, requests: BinaryIO, replies: BinaryIO) -> None:
    from playwright.async_api import Error, async_playwright

    # Chromium's own sandbox needs user namespaces and does not run as root.
    sandbox = os.geteuid() != 0 and not state.startswith("open")
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), requests)
    pipes = Pipes(reader, replies)
    reading = asyncio.ensure_future(pipes.read())
    async with async_playwright() as playwright:
        try:
            browser = await playwright.chromium.launch(
                executable_path=executable,
                args=switches(sandbox=sandbox),
                env=dict(os.environ),
                proxy={"server": NOWHERE, "bypass": "<-loopback>"},
                chromium_sandbox=sandbox,
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
        except Error as error:
            pipes.send({"error": "no_browser", "why": _reason(str(error))})
            return
        pipes.send({"ready": True, "state": state, "version": browser.version})
        while not reading.done() and browser.is_connected():
            next_order = asyncio.ensure_future(pipes.orders.get())
            await asyncio.wait({next_order, reading}, return_when=asyncio.FIRST_COMPLETED)
            if not next_order.done():
                break
            pipes.send({"done": await Page(pipes, next_order.result()).make(browser)})
        os._exit(0)  # the browser goes with this process; nobody waits for its polite end


def main(arguments: list[str]) -> None:
    executable, *apart = arguments
    die_with_parent()
    state = isolate() if apart else "open: not asked for"
    requests, replies = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    asyncio.run(serve(executable, state, requests, replies))


if __name__ == "__main__":
    main(sys.argv[1:])
