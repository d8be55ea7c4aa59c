"""Pages made by a browser: one at a time, in a browser that is started when the first page needs it and replaced now and then."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from config.scratch import clear_scratch
from ingestion.render.base import Ask, Rendered, RenderFailed, RenderLimits
from ingestion.render.chromium import find_browser, missing
from ingestion.render.process import Driver
from ingestion.render.visit import Visit

PAGES_PER_BROWSER = 50


class Renderer:
    """For any thread; a second page waits for the first. Only `ask` ever reaches the network. `apart`: in namespaces of its own, where
    the system allows it."""

    def __init__(self, *, executable: str = "", apart: bool = True) -> None:
        self._executable = executable
        self._apart = apart
        self._turn = Lock()
        self._driver: Driver | None = None
        # Linux kills a child when the *thread* that started it ends, so one thread of ours starts them all.
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="render-starter")
        clear_scratch()

    def render(self, url: str, *, ask: Ask, user_agent: str, limits: RenderLimits | None = None) -> Rendered:
        """The page as it stands when its scripts have come to rest. Raises RenderFailed; whatever a page did, the next one finds a
        browser that works."""
        limits = limits or RenderLimits()
        with self._turn:
            started = time.monotonic()
            for _ in range(2):
                visit = Visit(url, ask=ask, limits=limits)
                driver = self._started()
                is_new = driver.pages == 0
                try:
                    made = driver.visit(url, visit, user_agent=user_agent, limits=limits)
                    break
                except RenderFailed as failure:
                    self._end()
                    # The browser of an earlier page had died when nobody looked.
                    if is_new or visit.requests or failure.reason != "render_failed":
                        raise
                except BaseException:
                    self._end()
                    raise
            if made.get("error") == "render_timeout" or driver.pages >= PAGES_PER_BROWSER:
                self._end()
        return _rendered(made, visit, limits=limits, seconds=time.monotonic() - started)

    def state(self) -> str:
        """How the browser is shut in: "network and processes apart", or "open: REASON" where only the interception and a proxy
        that leads nowhere keep it from the network. Starts it."""
        with self._turn:
            return self._started().state

    @property
    def pid(self) -> int | None:
        """Of the browser's first process, while there is one."""
        return self._driver.pid if self._driver is not None else None

    def close(self) -> None:
        with self._turn:
            self._end()
        self._starter.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> "Renderer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _started(self) -> Driver:
        if self._driver is not None and not self._driver.alive:
            self._end()
        if self._driver is None:
            if lacking := missing():
                raise RenderFailed("no_browser", lacking)
            driver = self._starter.submit(Driver, self._executable or find_browser(), apart=self._apart).result()
            driver.wait_ready()
            self._driver = driver
        return self._driver

    def _end(self) -> None:
        if self._driver is not None:
            self._driver.close()
            self._driver = None


def _rendered(made: dict[str, str], visit: Visit, *, limits: RenderLimits, seconds: float) -> Rendered:
    if visit.document is None:
        raise RenderFailed("render_failed", f"The page cannot be opened in the browser: {visit.problem or made.get('why') or 'no answer'}.")
    if made.get("error") == "render_timeout":
        raise RenderFailed("render_timeout", f"The page was not made within {limits.max_seconds:g} seconds.")
    if "error" in made:
        raise RenderFailed("render_failed", f"The browser could not make the page: {made['why'].rstrip('.')}.")
    html = made["html"].encode("utf-8", "replace")
    if len(html) > limits.max_html_bytes:
        raise RenderFailed("render_limit", f"The page is larger than {limits.max_html_bytes:,} bytes once it is made.")
    return Rendered(
        url=made["url"],
        html=html,
        document=visit.document,
        requests=visit.requests,
        bytes=visit.bytes,
        refused=visit.refused,
        seconds=seconds,
    )
