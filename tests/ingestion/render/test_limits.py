"""Pages without bounds, browsers that die, and workers that are killed: the page fails with a reason, and the next one is made."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest

from ingestion.render import Renderer, RenderFailed, RenderLimits
from tests.fleet import wait_for


def works(render, site) -> bool:
    site.put("/good", "<div id=root></div><script>root.textContent = 'go' + 'od'</script>")
    return "good" in render("/good").html.decode()


def tree(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def are_gone(processes: list[psutil.Process]) -> bool:
    return not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in processes)


def test_a_script_without_end_is_killed(render, renderer, site):
    site.put("/", "<p>text</p><script>onload = () => { while (true) {} }</script>")
    assert works(render, site)
    before = tree(renderer.pid)
    started = time.monotonic()
    with pytest.raises(RenderFailed, match="within 4 seconds") as failure:
        render("/", limits=RenderLimits(max_seconds=4))
    assert failure.value.reason == "render_timeout"
    assert time.monotonic() - started < 10
    wait_for(lambda: are_gone(before), seconds=10, what="the end of all processes")
    assert works(render, site)


def test_a_page_that_eats_memory_is_killed(render, site):
    # In one breath: a page that only eats between its pauses may be through, and rightly given, before it has eaten that much.
    site.put("/", "<script>const all = []; while (true) all.push(new Uint8Array(32 * 1024 * 1024).fill(1))</script>")
    with pytest.raises(RenderFailed, match="more than 700 MB of memory") as failure:
        render("/", limits=RenderLimits(max_seconds=60, idle_seconds=60, max_memory_mb=700))
    assert failure.value.reason == "render_limit"
    assert works(render, site)


def test_a_thousand_requests_are_fifty(render, site):
    site.put("/", "<div id=root>text</div><script>for (let i = 0; i < 1000; i++) fetch('/data?' + i).catch(() => 0)</script>")
    site.put("/data", "x")
    rendered = render("/")
    assert "text" in rendered.html.decode()
    assert (len(site.log), rendered.requests, rendered.refused) == (50, 50, 951)


def test_a_page_that_asks_without_end_is_ended(render, site):
    site.put("/", "<script>setInterval(() => { for (let i = 0; i < 100; i++) new EventSource('/x?' + Math.random()) }, 20)</script>")
    with pytest.raises(RenderFailed) as failure:
        render("/")
    assert failure.value.reason == "render_limit"
    assert works(render, site)


def test_answers_have_a_limit_together_and_each(render, site):
    site.put(
        "/",
        "<div id=root>text</div><script>for (let i = 0; i < 9; i++) fetch('/data?' + i).then(a => a.text()).catch(() => 0); "
        "fetch('/big')</script>",
    )
    site.put("/data", "x" * 300_000)
    site.put("/big", "x" * 600_000)
    rendered = render("/", limits=RenderLimits(max_seconds=90, max_bytes=1_000_000, max_answer_bytes=500_000))
    assert "text" in rendered.html.decode()
    assert rendered.refused >= 7


def test_a_page_that_grows_beyond_measure_is_refused(render, site):
    site.put("/", "<div id=root></div><script>root.textContent = 'x'.repeat(2_000_000)</script>")
    with pytest.raises(RenderFailed, match="larger than 1,000,000 bytes") as failure:
        render("/", limits=RenderLimits(max_seconds=90, max_html_bytes=1_000_000))
    assert failure.value.reason == "render_limit"


def test_a_browser_that_is_killed_fails_its_page_only(render, renderer, site):
    assert works(render, site)
    processes = tree(renderer.pid)
    browser = min((each for each in processes if each.name().startswith("chrom")), key=lambda each: each.create_time())
    site.put("/", lambda request: browser.send_signal(signal.SIGKILL) or "<p>text</p>")
    with pytest.raises(RenderFailed) as failure:
        render("/")
    assert failure.value.reason in ("render_failed", "render_timeout")
    assert works(render, site)
    wait_for(lambda: are_gone(processes), seconds=10, what="the end of all processes")


WORKER = """
import sys
from ingestion.render import Renderer
renderer = Renderer(apart=sys.argv[1] == "apart")
renderer.state()
print(renderer.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", ["apart", "open"])
def test_a_worker_that_is_killed_leaves_no_browser(renderer, how):
    worker = subprocess.Popen([sys.executable, "-c", WORKER, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    processes = tree(int(worker.stdout.readline()))
    assert any(each.name().startswith("chrom") for each in processes)
    worker.kill()
    worker.communicate()
    wait_for(lambda: are_gone(processes), seconds=20, what="the end of all processes")


def test_closing_leaves_no_process_and_no_folder(render, renderer, site, monkeypatch):
    site.put("/", "<p>text</p>")
    with TemporaryDirectory(prefix="l-") as folder, Renderer() as alone:  # short: a socket of Chromium's is below it
        monkeypatch.setattr("tempfile.tempdir", folder)
        render("/", by=alone)
        processes = tree(alone.pid)
        assert len(list(Path(folder).iterdir())) == 1
        alone.close()
        assert list(Path(folder).iterdir()) == []
    wait_for(lambda: are_gone(processes), seconds=10, what="the end of all processes")
