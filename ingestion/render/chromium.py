"""The browser: where it is, and how it is started."""

import importlib.util
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
PACKAGE = "playwright"
# Nothing listens there. What escapes the interception (sockets, prefetches, service workers) is told to go this way.
NOWHERE = "http://127.0.0.1:9"
SWITCHES = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-domain-reliability",
    "--no-pings",
    "--dns-prefetch-disable",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--autoplay-policy=user-gesture-required",
    "--js-flags=--max-old-space-size=512",
    "--renderer-process-limit=2",
)


def find_browser() -> str:
    """The path of a Chromium on this machine, "" if there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), "")


def missing() -> str:
    """What rendering lacks on this machine, as a sentence; "" where it has everything."""
    if importlib.util.find_spec(PACKAGE) is None:
        return "The driver of the browser is not installed. Run `make render`."
    if not find_browser():
        return "There is no Chromium on this machine. Install it (Debian: apt install chromium)."
    return ""


def switches(*, sandbox: bool) -> list[str]:
    return [*SWITCHES, *([] if sandbox else ["--no-sandbox"])]
