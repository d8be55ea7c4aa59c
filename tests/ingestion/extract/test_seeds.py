"""The sound files that the soak `extraction` damages are sound."""

from tests.benchmarks.soak.seeds import ENDINGS, seeds


def test_every_seed_is_read(read, tmp_path):
    known = seeds(tmp_path)
    assert {name.rpartition(".")[2] for name in known} == set(ENDINGS)
    for name, content in known.items():
        extracted = read(content, name=name)
        assert extracted.markdown.strip(), name
        assert not extracted.warnings or name == "a.xml", (name, extracted.warnings)
