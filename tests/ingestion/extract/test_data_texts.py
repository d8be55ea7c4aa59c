"""JSON, XML and notebooks: what a program wrote for another, as a person reads it."""

import json
import time

import pytest


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", '[{"name": "pens|inks", "sold": 1.10}, {"name": "paper", "sold": null, "open": true}]'),
        ("a.jsonl", '{"name": "pens|inks", "sold": 1.10}\n\n{"name": "paper", "sold": null, "open": true}\n'),
    ],
)
def test_records_are_a_table(read, name, content):
    extracted = read(content, name=name)
    assert extracted.markdown == "| name | sold | open |\n| --- | --- | --- |\n| pens\\|inks | 1.10 |  |\n| paper |  | true |"
    assert extracted.media_type == "application/json"


def test_records_are_bounded(read):
    extracted = read(json.dumps([{"n": number, "m": 1} for number in range(5_500)]), name="a.json")
    assert extracted.markdown.count("\n") == 5_001
    assert extracted.warnings == ["Only the first 5,000 of 5,500 records were kept as text."]


@pytest.mark.parametrize(
    ("content", "markdown"),
    [
        ('{\n "a": {"b": [1]}\n}', '{\n "a": {"b": [1]}\n}'),
        ('{"a":"Caf\\u00e9 \\ud83d\\ude00 \\u0022 \\u0000 \\ud800"}', '{"a":"Café 😀 \\u0022 \\u0000 \\ud800"}'),
        (
            '{"a":{"b":["' + "x" * 300 + '",{"c":[1,2]}]}}',
            '{\n  "a": {\n    "b": [\n      "' + "x" * 300 + '",\n      {\n        "c": [1,2]\n      }\n    ]\n  }\n}',
        ),
        ('{"a":"' + "x" * 300 + '"}\n{"b":[]}\n', '{\n  "a": "' + "x" * 300 + '"\n}\n{\n  "b": []\n}'),
        ('{"cut": ["' + "x" * 300, '{\n  "cut": [\n    "' + "x" * 300),
    ],
)
def test_json_in_lines(read, content, markdown):
    assert read(content, name="a.json").markdown == f"```json\n{markdown}\n```\n"


def test_a_notebook(read):
    notebook = {
        "metadata": {"language_info": {"name": "julia"}},
        "cells": [
            {"cell_type": "markdown", "source": ["# Pens\n", "and inks"]},
            {"cell_type": "code", "source": "1 + 1", "outputs": [{"data": {"text/plain": ["2"], "image/png": "iVBO"}}, {"text": "said"}]},
            {"cell_type": "code", "source": "", "outputs": 7},
        ],
    }
    extracted = read(json.dumps(notebook), name="a.ipynb")
    assert extracted.markdown == "# Pens\nand inks\n\n```julia\n1 + 1\n```\n\n```\n2\n```\n\n```\nsaid\n```"
    assert extracted.title == "Pens"
    assert read('{"cells": [{}]}', name="a.ipynb").markdown.startswith("```json")


BOOK = '<book id="{0}"><title>Book {0}</title><price>1.10</price></book>'


@pytest.mark.parametrize(
    ("content", "markdown"),
    [
        (
            f"<catalog>{''.join(map(BOOK.format, (1, 2, 3)))}</catalog>",
            "| id | title | price |\n| --- | --- | --- |\n| 1 | Book 1 | 1.10 |\n| 2 | Book 2 | 1.10 |\n| 3 | Book 3 | 1.10 |",
        ),
        (
            '<config><server host="a"><name>x</name><more><o k="v"/></more></server><db>pg</db></config>',
            "- server (host: a)\n  - name: x\n  - more\n    - o (k: v)\n- db: pg",
        ),
        (
            "<rss version='2.0'><channel><title>News</title><item><title>First</title><description>"
            "&lt;p&gt;Some &lt;b&gt;bold&lt;/b&gt; text&lt;/p&gt;</description></item></channel></rss>",
            "# News\n\n## First\n\n- description: Some bold text",
        ),
        (
            "<article xmlns='urn:x'><title>Doc</title><section><title>One</title><para>Some <b>bold</b> text.</para>"
            "<programlisting>a\n b</programlisting></section></article>",
            "# Doc\n\n## One\n\nSome bold text.\n\n```\na\n b\n```",
        ),
        ("<svg xmlns='http://www.w3.org/2000/svg'><style>x</style><text x='1'>Seen</text><path d='M0'/></svg>", "- text: Seen"),
    ],
)
def test_xml(read, content, markdown):
    extracted = read(content, name="a.xml")
    assert (extracted.markdown, extracted.media_type, extracted.warnings) == (markdown, "application/xml", [])


def test_xml_without_an_extension_and_in_another_encoding(read):
    content = '<?xml version="1.0" encoding="windows-1251"?><a><b>Съешь ещё булок</b><c>1</c></a>'
    assert read(content.encode("cp1251"), name="feed").markdown == "- b: Съешь ещё булок\n- c: 1"


def test_entities_are_not_expanded(read):
    content = '<!DOCTYPE a [<!ENTITY e "ee"><!ENTITY f SYSTEM "file:///etc/passwd">]><a><b>one &e; &f; two</b><c d="&amp;">3</c></a>'
    assert read(content, name="a.xml").markdown == "- b: one &e; &f; two\n- c (d: &): 3"


def test_a_thousand_million_laughs(read):
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    started = time.monotonic()
    markdown = read(f'<!DOCTYPE a [<!ENTITY l0 "lol">{laughs}]><a><b>first words</b><c>&l11;</c></a>', name="a.xml").markdown
    assert markdown.startswith("- b: first words")
    assert len(markdown) < 1_000
    assert time.monotonic() - started < 2


def test_damaged_xml_is_read_as_far_as_it_goes(read):
    extracted = read("<a><b>one</b><c>two</a>", name="a.xml")
    assert extracted.markdown == "- b: one\n- c: two"
    assert extracted.warnings == ["The XML is damaged; what could be read of it was kept."]
    assert read("no tags < at all", name="a.xml").markdown == "```xml\nno tags < at all\n```\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", "[" * 1_000_000),
        ("a.json", '{"a":' * 300_000),
        ("a.json", '"' * 1_000_000),
        ("a.json", '{"a":"' + "\\u00e9" * 150_000),
        ("a.xml", "<a>" * 300_000),
        ("a.xml", "<a>" * 200 + "x" + "</a>" * 200),
        ("a.xml", "<a " + 'b="c" ' * 100_000 + ">x</a>"),
        ("a.log", "x" * 10_000_000),
        ("a.csv", "x" * 10_000_000),
        ("a.csv", '"' + "x,\n" * 1_000_000),
        ("a.rst", "x" * 10_000_000),
        ("a.rst", "* " * 4_000),
    ],
)
def test_hostile_texts_end_soon(read, name, content):
    started = time.monotonic()
    extracted = read(content, name=name, max_chars=500_000)
    assert 0 < len(extracted.markdown) <= 500_000
    assert time.monotonic() - started < 10
