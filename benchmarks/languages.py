"""Spaces of other languages, end to end: vectors from real text, a tree, releases, losses.

Trains small vectors (positive pointwise mutual information, reduced by an SVD) from folders of HTML
and manual pages in one language, writes them as a fastText .vec file, reads that as anybody's, and
releases paragraphs of files that were held back. The pages docs/languages.md shows came from
packages of Debian 12, whose texts are free (MPL-2.0, GPL, GFDL, CC-BY-SA; see `copyright` in each):

    apt-get download libreoffice-help-de gimp-help-de manpages-de debian-reference-de \
        debian-handbook fortunes-de libreoffice-help-zh-cn gimp-help-zh-cn manpages-zh \
        debian-reference-zh-cn fortunes-zh
    for package in *.deb; do dpkg -x $package texts; done
    python benchmarks/languages.py de --texts texts
    python benchmarks/languages.py zh --texts texts --segmenter jieba
    python benchmarks/languages.py scripts
"""

import argparse
import gzip
import html
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.calibration import privacy_statistics, sample_words
from hf_dxprivacy.text import RowReader
from hf_dxprivacy.text.segmenters import WORDS

WINDOW, DIMENSIONS, LEAST = 5, 100, 5
HELD_BACK = 20  # one file of so many
FOLDERS = {"de": r"(?:^|[-_/])de(?:[-_/]|$)", "zh": r"(?:^|[-_/])zh(?:[-_](?:CN|cn))?(?:[-_/]|$)"}
# A paragraph that is not in the language has none of these.
MARKS = {"de": r"[äöüß]|\b(?:der|die|das|und|ist|nicht)\b", "zh": r"(?:[\u4e00-\u9fff].*?){5}"}
SPOKEN = {
    "de": (
        "Klicken Sie auf die Schaltfläche, um das Dokument zu speichern.",
        "Die Häuser in der Straße sind alt und groß.",
        "Der Benutzer kann die Datei im Verzeichnis /home/anna öffnen.",
        "Was man nicht aufgibt, hat man nie verloren.",
    ),
    "zh": (
        "单击按钮以保存文档。",
        "请输入您的用户名和密码，然后重新启动计算机。",
        "王小明住在北京，他的电话是13912345678。",
        "如果文件不存在，系统会显示错误信息。",
    ),
}
SAMPLES = {
    "German": "Die Häuser der Bundesregierung sind groß.",
    "Chinese": "我在北京大学学习自然语言处理。",
    "Japanese": "東京大学で自然言語処理を学んでいます。",
    "Thai": "ฉันเรียนภาษาไทยที่กรุงเทพ",
    "Korean": "저는 서울에서 한국어를 배웁니다.",
    "Arabic": "أدرس اللغة العربية في القاهرة.",
    "Hindi": "मैं दिल्ली में हिन्दी पढ़ता हूँ।",
    "French": "L'homme n'a qu'aujourd'hui.",
    "emoji": "Danke 👍🏽👩‍👧 bis morgen 😀!",
}
_DROPPED = re.compile(r"<(script|style|head|nav|aside|header|pre)\b.*?</\1>", re.S | re.I)
_BLOCKS = re.compile(r"</?(?:p|h\d|li|td|th|dd|dt|div|tr|br|title)\b[^>]*>", re.I)
_ROFF = re.compile(r"\\f(?:\[[^\]]*\]|\(..|.)|\\[&|^/,]|^[.'].*$", re.M)


def paragraphs(path: Path) -> Iterator[str]:
    """Yield the paragraphs of a page in HTML, a manual page, or a file of sayings."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8", "ignore")
    if path.suffix == ".html":
        parts = _BLOCKS.split(_DROPPED.sub(" ", text))
        parts = [html.unescape(re.sub(r"<[^>]*>", "", part)) for part in parts]
    elif path.suffix == ".gz":
        plain = _ROFF.sub("", text).replace(r"\-", "-").replace(r"\e", "\\")
        parts = re.split(r"\n\s*\n", plain)
    else:
        parts = text.split("\n%\n")
    yield from (" ".join(part.split()) for part in parts)


def corpus(folder: Path, language: str) -> tuple[list[str], list[str]]:
    """Return the different paragraphs of a language, and those of files that are held back."""
    found: tuple[dict[str, None], dict[str, None]] = ({}, {})
    mark = re.compile(MARKS[language])
    files = (
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and (path.suffix in (".html", ".gz") or "fortunes" in path.parts)
        and path.suffix not in (".dat", ".u8")
        and "changelog" not in path.name
        and re.search(FOLDERS[language], str(path.parent.relative_to(folder)))
    )
    for number, path in enumerate(files):
        part = found[number % HELD_BACK == 0]
        part.update(dict.fromkeys(text for text in paragraphs(path) if mark.search(text)))
    return list(found[0]), [text for text in found[1] if text not in found[0]]


def write_vectors(rows: list[list[str]], path: Path) -> None:
    """Write vectors of the words of texts, the most frequent first, as fastText does."""
    counts = Counter(word for row in rows for word in row)
    words = [word for word, count in counts.most_common() if count >= LEAST]
    places = {word: at for at, word in enumerate(words)}
    ids = [np.array([places[w] for w in row if w in places], dtype=np.int64) for row in rows]
    table = sparse.csr_matrix((len(words), len(words)))
    for step in range(1, WINDOW + 1):
        left = np.concatenate([row[:-step] for row in ids])
        right = np.concatenate([row[step:] for row in ids])
        pairs = sparse.coo_matrix((np.full(len(left), 1 / step), (left, right)), table.shape)
        table = table + pairs.tocsr() + pairs.T.tocsr()
    table = table.tocoo()
    sums = np.asarray(table.sum(axis=1)).ravel()
    context = sums**0.75 / (sums**0.75).sum()
    information = np.log(table.data / (sums[table.row] * context[table.col]))
    keep = information > 0
    positive = sparse.csr_matrix(
        (information[keep], (table.row[keep], table.col[keep])), table.shape
    )
    left, values, _ = svds(positive, DIMENSIONS, random_state=0)
    vectors = left * np.sqrt(values)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-12
    with path.open("w", encoding="utf-8") as file:
        file.write(f"{len(words)} {DIMENSIONS}\n")
        for word, vector in zip(words, vectors, strict=True):
            file.write(f"{word} {' '.join(f'{value:.5f}' for value in vector)}\n")


def unknown(texts: list[str], space: EmbeddingSpace, segmenter: str) -> float:
    """Return the share of words out of vocabulary."""
    privatizer = DxPrivatizer(space, "krr", 1.0, segmenter=segmenter)
    privatizer.privatize(texts)
    return privatizer.unknown_share or 0.0


def language(options: argparse.Namespace) -> None:
    """Train, release and print."""
    reader = RowReader(options.segmenter)
    known, held_back = corpus(options.texts, options.what)
    rows = [reader.read_text(text).words for text in known]
    count = sum(map(len, rows))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.vec"
        write_vectors(rows, path)
        space = EmbeddingSpace.from_text_vectors(path, progress=False)
    space = space.rescale(1 / space.neighbour_distances()[1]).build_hierarchy(progress=False)
    print(f"{len(known):,} paragraphs, {count:,} words; {len(space):,} words x {space.dim}")
    for segmenter in dict.fromkeys((WORDS, options.segmenter)):
        share = unknown(held_back, space, segmenter)
        print(f"unknown in {len(held_back):,} held-back paragraphs, {segmenter}: {share:.1%}")
    for word in options.show:
        print(f"{word}: {', '.join(near for near, _ in space.neighbours(word, 6))}")
    for epsilon in options.epsilon:
        privatizer = DxPrivatizer(space, "hierarchical", epsilon, segmenter=options.segmenter)
        words = sample_words(space, 500, rng=np.random.default_rng(0))
        kept = privacy_statistics(privatizer.mechanism, words, progress=False).kept.mean()
        print(f"\nhierarchical, ε = {epsilon:g}: {kept:.0%} of words stay")
        for text in SPOKEN[options.what]:
            print(f"| {text} | {privatizer.privatize(text)} |")
    print(f"\n{privatizer.guarantee}")


def scripts(segmenters: tuple[str, ...] = (WORDS, "jieba")) -> None:
    """Print how texts in several scripts are split."""
    print(f"| script | text | {' | '.join(segmenters)} |")
    print("| --- | --- |" + " --- |" * len(segmenters))
    for script, text in SAMPLES.items():
        split = [" · ".join(RowReader(each).read_text(text).words) for each in segmenters]
        print(f"| {script} | {text} | {' | '.join(split)} |")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=(*FOLDERS, "scripts"))
    parser.add_argument("--texts", type=Path, help="folder of HTML and manual pages")
    parser.add_argument("--segmenter", default=WORDS)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.5, 2.0])
    parser.add_argument("--show", nargs="*", default=[], help="words whose neighbours to print")
    options = parser.parse_args()
    if options.what == "scripts":
        return scripts()
    if options.texts is None:
        parser.error("--texts is missing: the folder of the texts to train from")
    language(options)
    return None


if __name__ == "__main__":
    main()
