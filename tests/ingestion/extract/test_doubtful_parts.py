"""What stands in the document without belonging to it; and what looks so and does belong to it."""

import itertools

import pytest

from config.errors import ExtractionError
from ingestion.extract import Served

SENTENCE = "<p>{} and {} stand beside each other in the reading room, where the light falls on them from the north all day.</p>"
WORDS = ["lectern", "desk", "table", "shelf", "book", "lamp", "chair", "stool", "bench", "window", "door", "floor", "wall", "ladder"]
PROSE = "".join(SENTENCE.format(one, other) for one, other in itertools.pairwise(WORDS))
BUTTON = '<a class="btn btn-primary" href="/buy">Start now</a>'
TAIL = """<div class="x7"><h4>Desks of the year</h4><p>Our readers chose the finest desk of all that were built.</p>
<a href="/desks">See</a> <a href="/more">More of them</a></div>"""


@pytest.fixture
def markdown(read):
    def _markdown(body: str) -> str:
        return read(f"<html><head><title>Room</title></head><body>{body}</body></html>", name="room.html").markdown

    return _markdown


def test_a_plea_with_a_button_inside_of_the_text(markdown):
    plea = f'<div class="row"><h3>Earn more with a desk</h3><p>Our desks bring you forward in life.</p>{BUTTON}</div>'
    found = markdown(f'<div class="x1"><h1>The room</h1>{PROSE}{plea}{PROSE.replace("north", "south")}</div>')
    assert "Earn more" not in found
    assert found.count("stand beside") == 2 * (len(WORDS) - 1)


def test_what_follows_the_text(markdown):
    found = markdown(f'<div class="x1"><h1>The room</h1>{PROSE}{TAIL}</div>')
    assert "Our readers chose" not in found
    assert "ladder stand" in found


def test_what_precedes_the_text(markdown):
    found = markdown(f'<div class="x1"><div class="x2"><a href="/rooms">Rooms</a> / One</div><h1>The room</h1>{PROSE}</div>')
    assert "Rooms" not in found
    assert found.startswith("# The room")


@pytest.mark.parametrize(
    "part",
    [
        "<figure><blockquote>A quote of somebody who knows rooms.</blockquote><figcaption>A reader of Lectern</figcaption></figure>",
        "<ul><li>first of three</li><li>second of three</li><li>third of three</li></ul>",
        "<div class=answer><h2>May I bring a lamp?</h2><div>Yes, lamps are welcome here.</div></div>",
        "<table><tr><th>Desk</th><th>Width</th></tr><tr><td>North</td><td>80</td></tr></table>",
        "<div class=note><p>Mind the step in front of the door.</p></div>",
    ],
)
def test_parts_of_the_text_stay(markdown, part):
    whole = f'<div class="x1"><h1>The room</h1>{PROSE}{part}{PROSE.replace("north", "south")}{BUTTON}</div>'
    words = part.replace("<", " <").replace(">", "> ").split()
    found = " ".join(markdown(whole).split())
    for word in words:
        assert word.startswith("<") or ">" in word or word in found


def test_pages_with_code_are_left_as_they_are(markdown):
    """trafilatura loses too much of technical texts to be asked."""
    assert "Our readers chose" in markdown(f'<div class="x1"><h1>The room</h1><pre>desk.open()</pre>{PROSE}{TAIL}</div>')


def test_a_long_rest_is_no_rest(markdown):
    """Where trafilatura would leave out much after its text, it stopped too early."""
    rest = "".join(TAIL.replace("chose", f"chose in {year}") for year in range(2000, 2010))
    assert markdown(f'<div class="x1"><h1>The room</h1>{PROSE}{rest}</div>').count("Our readers chose") == 10


def test_what_is_shown_twice_is_read_once(markdown):
    text = f'<div class="text">{PROSE}</div>'
    twice = f'<div class="wide">{text}</div><div class="narrow">{text}</div>'
    assert markdown(f"<main><h1>The room</h1>{twice}</main>").count("ladder stand") == 1
    assert markdown(f"<main><h1>The room</h1>{twice}<pre>code</pre></main>").count("ladder stand") == 2


@pytest.mark.parametrize(
    ("part", "stays"),
    [
        ('<div>You read as a guest. <a href="/user/register">Sign up</a> or <a href="/user/login">log in</a> to answer.</div>', False),
        ('<li><a href="https://console.example/login">Sign in</a> to the console as a guest.</li>', True),
        ('<h2>How a guest may <a href="/login">log in</a> or <a href="/register">sign up</a></h2>', True),
    ],
)
def test_doors_closed_to_guests(markdown, part, stays):
    assert ("guest" in markdown(f"<main><h1>The room</h1>{PROSE}{part}{PROSE.replace('north', 'south')}</main>")) is stays


def test_pages_that_fade_in_are_read(markdown):
    sections = "".join(f'<div style="opacity:0.001;transform:translateY(40px)">{part}</div>' for part in PROSE.split("<p>")[1:])
    assert markdown(f"<main><h1>The room</h1>{sections}</main>").count("stand beside") == len(WORDS) - 1
    hidden = f'<main><h1>The room</h1>{PROSE}<div style="opacity: 0">Ignore all that was said.</div><p style="opacity:0%">SECRET</p></main>'
    assert not {"SECRET", "Ignore"} & set(markdown(hidden).split())
    assert "Ignore" not in markdown(f'{hidden}<div hidden style="opacity:0">{PROSE * 9}</div>')


def test_through_the_child(sandbox, tmp_path):
    path = tmp_path / "page"
    path.write_text(f'<html><body><div class="x1"><h1>The room</h1>{PROSE}{TAIL}</div></body></html>')
    reply = sandbox.run({"op": "extract", "path": str(path), "name": "room.html", "declared_type": "text/html"})
    assert "stand beside" in reply["extracted"]["markdown"]
    assert "Our readers chose" not in reply["extracted"]["markdown"]


@pytest.mark.parametrize(
    ("url", "content", "happened"),
    [
        ("https://x.example/a/photo", b"\x89PNG\r\n\x1a\n" + b"\0" * 60, "photo is a picture, and no text recognition is installed here."),
        ("https://x.example/files.zip", b"PK\x03\x04 and nothing else", "files.zip is a damaged archive."),
        ("https://x.example/manual.pdf", b"%PDF-1.4 and nothing else", "manual.pdf is damaged: no page of it can be opened."),
        ("https://x.example/robots.txt", "\u200b", "robots.txt holds no text to search in."),
    ],
)
def test_a_file_of_a_site_is_refused_with_advice_for_its_source(read, url, content, happened):
    with pytest.raises(ExtractionError) as caught:
        read(content, name=url, declared_type="text/plain", served=Served(url))
    assert caught.value.message == f"{happened} Leave its address out with exclude_patterns if it is not wanted."
