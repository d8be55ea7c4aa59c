"""reStructuredText, with what Sphinx adds to it."""

import pytest


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        (
            "=====\nTitle\n=====\n\nOne\n===\n\ntext\n\nSub\n---\n\nmore\n\nTwo\n===\n\nx",
            "# Title\n\n## One\n\ntext\n\n### Sub\n\nmore\n\n## Two\n\nx",
        ),
        ("- one\n\n  - nested\n\n- two\n\n#. first\n#. second", "- one\n  - nested\n- two\n\n1. first\n2. second"),
        ("term\n  meaning\n\n-o FILE  an option", "- **term**: meaning\n\n- **-o FILE**: an option"),
        ("See ``code``, *this*, **that** and `a link <http://e.org/>`_.", "See `code`, *this*, **that** and [a link](http://e.org/)."),
        ("Call :func:`~a.b.run`, :py:class:`Pen`, read :ref:`the guide <guide>`.", "Call `run`, `Pen`, read the guide."),
        (
            ".. code-block:: python\n   :linenos:\n\n   x = 1\n     y\n\nas in::\n\n  $ ls",
            "```python\nx = 1\n  y\n```\n\nas in:\n\n```\n$ ls\n```",
        ),
        (".. note:: Be careful.\n\n.. warning::\n\n   - a\n   - b", "**Note:** Be careful.\n\n**Warning:**\n\n- a\n- b"),
        ("+---+---+\n| a | b |\n+===+===+\n| 1 | 2 |\n+   +---+\n|   | 3 |\n+---+---+", "| a | b |\n| --- | --- |\n| 1 | 2 |\n| 1 | 3 |"),
        ("=== ===\nx   y\n=== ===\n1   2\n=== ===", "| x | y |\n| --- | --- |\n| 1 | 2 |"),
        ('.. csv-table:: Sold\n   :header: "a", "b"\n\n   1, 2', "**Sold**\n\n| a | b |\n| --- | --- |\n| 1 | 2 |"),
        (".. py:function:: run(a)\n\n   Runs *it*.\n\n.. versionadded:: 3.5", "`run(a)`\n\nRuns *it*.\n\n*Added in version 3.5*"),
        (".. toctree::\n   :maxdepth: 2\n\n   a\n   b\n\n.. a comment\n\nseen", "seen"),
        ("Seen.\n\n.. raw:: html\n\n   <script>x</script>\n\n.. include:: /etc/passwd\n", "Seen."),
        (".. |pen| replace:: red pen\n\nA |pen|. [1]_\n\n.. [1] Or two.", "A red pen. [1]\n\n[1] Or two."),
        ("| one\n| two\n\n    quoted\n\n----\n\nend", "one\ntwo\n\n> quoted\n\n---\n\nend"),
        (":Author: Ada\n:Date: today\n\nText of it.", "- Author: Ada\n- Date: today\n\nText of it."),
        ("Broken *emphasis and :unknown:`role` here.", "Broken *emphasis and role here."),
    ],
)
def test_markdown(read, text, markdown):
    extracted = read(text, name="a.rst")
    assert (extracted.markdown, extracted.warnings) == (markdown, [])


def test_what_a_text_names_is_forgotten(read):
    """A directive of one text is nothing to the next."""
    assert read(".. foobar:: x\n\n   inside", name="a.rst").markdown == "`x`\n\ninside"
    from docutils.parsers.rst import directives, roles

    assert "foobar" not in directives._directives
    assert "unknown" not in roles._roles


def test_title_and_type(read):
    extracted = read("Pens\n====\n\nand inks", name="a.rst")
    assert (extracted.title, extracted.media_type) == ("Pens", "text/x-rst")
