import json
import time

import pytest

from ingestion.extract import Limits, probe

SENTENCES = {
    "cp1252": "Die Größe der Prüfung über Straßen – „schön“ und äußerst öde. Très élégant, garçon à l'été.",
    "cp1250": "Příliš žluťoučký kůň úpěl ďábelské ódy. Zażółć gęślą jaźń.",
    "cp1251": "Съешь же ещё этих мягких французских булок, да выпей чаю. Это простой текст на русском языке.",
    "koi8_r": "Съешь же ещё этих мягких французских булок, да выпей чаю. Это простой текст на русском языке.",
    "cp1253": "Η βάση γνώσεων αποθηκεύει έγγραφα και απαντά σε ερωτήσεις.",
    "cp1255": "בסיס הידע שומר מסמכים ועונה על שאלות המשתמשים",
    "cp1256": "قاعدة المعرفة تخزن الوثائق وتجيب على أسئلة المستخدمين",
    "gb18030": "知识库是一个存储知识的地方,用户可以在其中搜索文档并得到引用。",
    "big5": "知識庫是一個儲存知識的地方,使用者可以搜尋文件。",
    "shift_jis": "これは日本語の文章です。検索システムは文書を読み取り、引用を返します。",
    "euc_jp": "これは日本語の文章です。検索システムは文書を読み取り、引用を返します。",
    "euc_kr": "지식 베이스는 문서를 저장하고 검색하는 곳입니다. 사용자는 인용을 받습니다.",
    "utf-8": "Grüße – 知识 – Ελλάδα",
    "utf-8-sig": "Grüße – 知识 – Ελλάδα",
    "utf-16": "Grüße – 知识 – Ελλάδα",
    "utf-32": "Grüße – 知识 – Ελλάδα",
}


@pytest.mark.parametrize("times", [1, 300])
@pytest.mark.parametrize("encoding", SENTENCES)
def test_encodings(read, encoding, times):
    text = "\n".join([SENTENCES[encoding]] * times)
    extracted = read(text.encode(encoding))
    assert extracted.markdown == text
    assert extracted.warnings == []


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["Grüße an alle – 知识,一二\n" * 40, "name;n\r\nÅsa;1", "Съешь же ещё булок, да выпей чаю"])
def test_utf16_without_its_mark(read, text, encoding):
    assert read(text.encode(encoding)).markdown == text.replace("\r\n", "\n").rstrip("\0")


@pytest.mark.parametrize("text", ["Größe für Müller", "café", "naïve", "50 € für 3 ½ Stück"])
def test_short_western_texts_are_windows_1252(read, text):
    assert read(text.encode("cp1252")).markdown == text


@pytest.mark.parametrize(
    ("content", "markdown", "warning"),
    [
        (b"x" * 9000 + b"a\0b", "x" * 9000 + "ab", "NUL characters were removed"),
        (b"before \xed\xa0\x80 after", "before \ufffd after", "Lone surrogates"),
        ("é è ü ö ä ß ñ å ø æ ".encode() + b"\xff end", "é è ü ö ä ß ñ å ø æ \ufffd end", "not UTF-8"),
        ("lone \ud800 half".encode("utf-16", "surrogatepass"), "lone \ufffd half", "could not be read"),
        (b"one\r\ntwo\rthree\x1b[0m", "one\ntwo\nthree[0m", None),
    ],
)
def test_odd_characters(read, content, markdown, warning):
    extracted = read(content)
    assert extracted.markdown == markdown
    assert (not extracted.warnings) if warning is None else any(warning in each for each in extracted.warnings)
    json.dumps(extracted.to_json()).encode("ascii")


def test_long_text_is_cut_visibly_and_quickly(tmp_path, read):
    line = "A line of a log that goes on and on, word after word.\n"
    started = time.monotonic()
    extracted = read(line * (30 * 1024 * 1024 // len(line)))
    assert time.monotonic() - started < 5
    assert extracted.truncated
    assert 99_000 < len(extracted.markdown) <= 100_000
    assert extracted.markdown.endswith("word after word.")
    assert any("Only the first" in warning and "Raise the limit" in warning for warning in extracted.warnings)


def test_cut_in_the_middle_of_a_character(read):
    extracted = read(("知" * 200_000).encode(), max_chars=1_000)
    assert extracted.markdown == "知" * 1_000
    assert extracted.warnings[0].startswith("Only the first 1,000 characters")


@pytest.mark.parametrize(
    ("name", "language"),
    [("code.py", "python"), ("data.json", "json"), ("conf.yml", "yaml"), ("feed.xml", "xml"), ("server.log", "log"), ("main.RS", "rust")],
)
def test_code_and_data_are_fenced(read, name, language):
    content = "first: line\n\n    second = `line`\n"
    assert read(content, name=name).markdown == f"```{language}\n{content}```\n"


def test_a_fence_is_longer_than_those_inside_and_closed_when_cut(read):
    content = "text\n```\ninner\n````\n" + "x = 1\n" * 1_000
    extracted = read(content, name="notes.tex", max_chars=500)
    assert extracted.truncated
    assert len(extracted.markdown) <= 500
    assert extracted.markdown.startswith("`````latex\n")
    assert extracted.markdown.endswith("\n`````\n")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("氏名,部署,役職\n田中,営業部,部長\n佐藤,総務部,課長\n", "shift_jis"),
        ("氏名,部署\n田中,営業部\n佐藤,総務部\n", "shift_jis"),
        ("이름,주소\n김철수,서울특별시 강남구\n", "euc_kr"),
        ("姓名,部门\n张,销售\n", "gb18030"),
        ("姓名,部門\n陳,業務\n", "big5"),
        ("氏名,部署\n田中,営業部\n佐藤,総務部\n", "euc_jp"),
    ],
)
@pytest.mark.parametrize("ending", ["txt", "csv"])
def test_a_few_east_asian_signs_are_read_as_they_were_meant(read, text, encoding, ending):
    assert text.split(",")[0] in read(text.encode(encoding), name=f"a.{ending}").markdown


def test_an_encoding_that_was_only_guessed_is_named(read):
    extracted = read("지역,매출\n서울,부산\n".encode("euc_kr"), name="a.txt")
    assert "서울" in extracted.markdown
    assert extracted.warnings == ["Too little text to tell its encoding: it was read as cp949. If letters are wrong, save it as UTF-8."]


def test_one_visible_character_is_a_text(read):
    assert read("x").markdown == "x"


def test_probe_reads_the_beginning_only(tmp_path):
    path = tmp_path / "big.txt"
    path.write_text("word " * 1_000_000)
    assert len(probe(path, name="big.txt").markdown) < 10_000
    assert len(probe(path, name="big.txt", limits=Limits(max_chars=10)).markdown) <= 10


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The lectern is a reading desk with a slanted top on which documents are placed as support.", "en"),
        ("Das Lesepult ist ein Tisch mit schräger Platte, auf den Bücher zum Vorlesen gelegt werden.", "de"),
        (SENTENCES["gb18030"], "zh"),
        (SENTENCES["shift_jis"], "ja"),
        ("too short", None),
        ("1234567890 " * 20, None),
    ],
)
def test_language(read, text, language):
    assert read(text).language == language


@pytest.mark.parametrize("limit", [2_000_000_000, 2**53])
def test_a_limit_beyond_all_memory_costs_no_memory(read, limit):
    extracted = read("Short.", max_chars=limit)
    assert (extracted.markdown, extracted.truncated) == ("Short.", False)
