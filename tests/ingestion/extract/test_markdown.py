import pytest


def test_markdown_stays_as_it_is(read):
    content = "Intro\n\n# The `main` *title*\n\n- a\n- b\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    extracted = read(content, name="notes.md")
    assert extracted.markdown == content
    assert extracted.title == "The main title"
    assert extracted.media_type == "text/markdown"


@pytest.mark.parametrize(
    ("content", "title", "metadata"),
    [
        ("---\ntitle: From YAML\ntags:\n  - a\n  - 'b c'\nlang: de-AT\n---\n# Heading\n", "From YAML", {"tags": ["a", "b c"]}),
        ('+++\ntitle = "From TOML"\ndate = 2024-05-01\n+++\ntext\n', "From TOML", {"date": "2024-05-01"}),
        ("---\nauthor: [Ada, Grace] \n---\nSetext\n======\n", "Setext", {"author": ["Ada", "Grace"]}),
        ("---\n\n# After a rule\n\n---\n", "After a rule", {}),
        ("```\n# comment\n```\ntext\n", "notes", {}),
        ("---\nx: !!python/object/apply:os.system [ls]\n---\ntext", "notes", {"x": "!!python/object/apply:os.system [ls]"}),
    ],
)
def test_front_matter_and_titles(read, content, title, metadata):
    extracted = read(content, name="notes.md")
    assert extracted.title == title
    assert metadata.items() <= extracted.metadata.items()


def test_front_matter_is_no_text_and_names_the_language(read):
    extracted = read("---\ntitle: T\nlang: de-AT\n---\n\nWords only.\n", name="a.md")
    assert extracted.markdown == "Words only.\n"
    assert extracted.language == "de"


def test_unclosed_front_matter_is_text(read):
    assert read("---\ntitle: T\nand so on\n", name="a.md").markdown.startswith("---\n")
