"""Is-a relations from WebIsADB, which were extracted from the web, and from other counted pairs.

[S]: Seitner et al., "A large database of hypernymy relations extracted from the web" (LREC 2016).
[H]: Feyisetan, Diethe & Drake, "Leveraging hierarchical representations for preserving privacy and
utility in text" (ICDM 2019).
[R]: Roller, Kiela & Nickel, "Hearst patterns revisited" (ACL 2018), whose pairs are CC BY-NC 4.0.
WebIsADB is published under CC BY-NC-SA 3.0, which also binds what is trained on it.
"""

import tempfile
from collections.abc import Iterable, Mapping, Set
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import (
    ArtifactError,
    InvalidTypeError,
    InvalidValueError,
    require_at_least,
    require_one_of,
)
from hf_dxprivacy.text import stop_words
from hf_dxprivacy.text.slurs import is_slur
from hf_dxprivacy.training import pruning
from hf_dxprivacy.training.archives import find_files, read_parts
from hf_dxprivacy.training.relations import Relations

WEBISADB = {
    "source": "WebIsADB (Seitner et al., LREC 2016), extracted from the Common Crawl",
    "licence": "cc-by-nc-sa-3.0",
    "language": "en",
}


@dataclass(frozen=True)
class WebIsADBSummary:
    """Counts of rows read of WebIsADB, and of pairs removed by each filter, in order.

    Attributes:
        rows: Rows read, blank lines left out.
        counted_pairs: Rows among them that are counted pairs, not of WebIsADB.
        nul_bytes: NUL bytes, which are taken out before anything else.
        undecodable: Rows with bytes that are not UTF-8, in whose place U+FFFD is read.
        incomplete: Rows left out since they end before the last field that is needed, since a
            quote is not closed, or since counted pairs have more fields than three.
        bad_frequency: Rows left out since their frequency is not a whole number of at least 0.
        broken_modifications: Rows whose modifications are not within the brackets of a JSON list.
            They are kept: the frequency that counts stands in a field of its own.
        outside_vocabulary: Rows left out since the instance or the class is not in the vocabulary.
        seconds: Time that reading took; two summaries that differ in nothing else are equal.
        pairs: Pairs of an instance and a class that are both in the vocabulary.
        infrequent: Pairs removed since they occur less than `min_frequency` times.
        reflexive: Pairs removed since a word stands with itself.
        stop_words: Pairs removed since one of the words is a stop word.
        offensive: Pairs removed since one of the words is offensive.
        opposite: Pairs removed since they occur at least as often the other way round.
        weak: Pairs removed since the word has `max_classes` more frequent ones.
        cyclic: Pairs removed to break cycles.
        few_links: Pairs removed since one of the words has less than `min_links` of them.
        disconnected: Pairs removed since no chain of pairs joins them to the largest part.
        relations: Pairs that are left.
    """

    rows: int = 0
    counted_pairs: int = 0
    nul_bytes: int = 0
    undecodable: int = 0
    incomplete: int = 0
    bad_frequency: int = 0
    broken_modifications: int = 0
    outside_vocabulary: int = 0
    seconds: float = field(default=0.0, compare=False)
    pairs: int = 0
    infrequent: int = 0
    reflexive: int = 0
    stop_words: int = 0
    offensive: int = 0
    opposite: int = 0
    weak: int = 0
    cyclic: int = 0
    few_links: int = 0
    disconnected: int = 0
    relations: int = 0

    def __str__(self) -> str:
        counts = asdict(self)
        seconds = counts.pop("seconds")
        lines = [f"{name.replace('_', ' '):<21}{count:>15,}" for name, count in counts.items()]
        return "\n".join([*lines, f"rows per second      {self.rows / seconds:>15,.0f}"])


@dataclass(frozen=True, eq=False)
class WebIsADB(Relations):
    """Relations of WebIsADB.

    Attributes:
        summary: What was read, and what was removed.
    """

    summary: WebIsADBSummary


def read_webisadb(
    paths: str | Path | Iterable[str | Path],
    *,
    vocabulary: Iterable[str],
    min_frequency: int = 10,
    min_links: int = 3,
    stopwords: str | Set[str] | None = "english",
    offensive: str | Path | Iterable[str] | None = "english",
    phrases: str = "whole",
    max_classes: int | None = None,
    acyclic: bool = False,
    connected: bool = False,
    work: str | Path | None = None,
    progress: bool = True,
) -> WebIsADB:
    """Read WebIsADB [S] or counted pairs, such as those of [R], by the recipe of [H].

    Read are the published dump (``_id,instance,class,frequency,pidspread,pldspread,modifications``)
    and the flattened ``webisa_N.csv`` of WebIsALOD, of which the columns ``ilemma`` and ``clemma``
    are what the dump has as instance and class; with or without a header, and in any nesting of
    gzip, bzip2, xz and tar; and counted pairs: a word, its class and how often the two were found,
    with tabs or commas between them (``hyponym,hypernym,count``). Files of several layouts are
    added up. A row is a line. Memory does not grow with the size of the files.

    Args:
        paths: A file, a folder, or several. Of the ``webisa_N.csv`` give one: each of them holds
            the rows of those with a larger N once more.
        vocabulary: Words that relations may be between. Letter case makes no difference here, and
            all names of the result are in lower case, phrases with underscores for blanks.
        min_frequency: How often a pair has to occur, all rows about it together.
        min_links: In how many of the relations that are returned each word takes part at least.
            Removing a word takes links from others, which are then looked at again until all have
            enough; [H] drops words with fewer than 3 links once.
        stopwords: None, "english" for the list of `hf_dxprivacy.text`, or a set of words.
        offensive: None, "english" for the list of the package better-profanity, a file with one
            word a line, or the words. Slurs (`hf_dxprivacy.text.slurs`) go as well unless it is
            None.
        phrases: "whole" to take phrases as they are, which the vocabulary must hold; "class" to
            take the head of a class only, as "country" for "member country of the union"; "head"
            to take it of the word, too, as WebIsADB itself sets modifiers apart.
        max_classes: Keep that many classes of each word, the most frequent ones; all by default.
        acyclic: Whether to keep the more frequent of two opposite pairs, or neither, and to break
            longer cycles at their least frequent pairs.
        connected: Whether to keep only the largest part that chains of relations join, which is
            what `train_poincare` asks for. The few words outside it come in small groups.
        work: A folder for what was read so far, about a hundredth of the files unpacked. A second
            call for the same files and vocabulary goes on from there, also if the first one was
            killed or had other filters. By default a temporary one.
        progress: Show a progress bar over the bytes of the files.

    Returns:
        The relations, whose `summary` says what was read and what every filter has removed.

    Raises:
        ArtifactError: If a file is missing, not of WebIsADB, or an archive is damaged, or there is
            no row at all. Damaged rows are counted and never an error.
        InvalidValueError: If the vocabulary is empty or an option out of its bounds.
        InvalidTypeError: If an option is of another type.
        MissingExtraError: If a package of the extra is not installed.
    """
    # Imported here because it needs the extra.
    from hf_dxprivacy.training.webisadb_reader import Segments

    require_at_least(0, min_frequency=min_frequency, min_links=min_links)
    require_at_least(1, max_classes=1 if max_classes is None else max_classes)
    require_one_of(("whole", "class", "head"), phrases=phrases)
    if isinstance(vocabulary, str):
        raise InvalidTypeError("expected vocabulary to be several words, got one string")
    words = sorted({word.lower().replace(" ", "_") for word in vocabulary})
    if not words:
        raise InvalidValueError("expected vocabulary to hold at least one word, it is empty")
    listed = offensive_words(offensive)
    slurs = () if offensive is None else filter(is_slur, words)
    unwanted = stop_words(stopwords), listed.union(slurs)
    files = find_files(paths)
    size = sum(file.stat().st_size for file in files)
    temporary = tempfile.TemporaryDirectory(prefix="webisadb-") if work is None else None
    with (
        temporary or nullcontext(str(work)) as folder,
        tqdm(total=size, desc="WebIsADB", unit="B", unit_scale=True, disable=not progress) as bar,
    ):
        segments = Segments(Path(folder), words, phrases)
        for _ in segments.include(read_parts(files, bar)):
            rows = segments.counts["rows"]
            bar.set_postfix_str(f"{rows:,} rows, {rows / segments.seconds:,.0f}/s")
        if not segments.counts["rows"]:
            raise ArtifactError(f"{files[0]}: expected rows of WebIsADB, found none")
        frequent, distinct = segments.totals(min_frequency)
    most = max_classes or len(words)
    kept, counts = _select(frequent, distinct, words, unwanted, most, acyclic, min_links)
    relations = kept.largest_component() if connected and len(kept) else kept
    counts |= {"disconnected": len(kept) - len(relations), "relations": len(relations)}
    summary = WebIsADBSummary(**segments.counts, **counts, seconds=segments.seconds)
    return WebIsADB(relations.nodes, relations.pairs, summary)


def webisadb_origin(relations: WebIsADB, filters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provenance of relations: licence if of WebIsADB, filters, what they removed.

    Args:
        relations: The relations.
        filters: The settings of `read_webisadb` that they were chosen by.
    """
    counts = asdict(relations.summary)
    # Two runs over the same files have the same provenance.
    del counts["seconds"]
    # Pairs of another source are under a licence of their own, which the files do not name.
    foreign = counts["counted_pairs"] == counts["rows"]
    source = {"source": "counted is-a pairs", "language": "en"} if foreign else WEBISADB
    return {**source, "filters": dict(filters), "counts": counts}


def offensive_words(choice: str | Path | Iterable[str] | None) -> frozenset[str]:
    """Return the words to leave out, in lower case.

    Args:
        choice: None for no word, "english" for the list that the package better-profanity ships, a
            file with one word a line, or the words. The English list is meant for chats and rather
            goes too far: it has words such as "organ" and "rum".

    Raises:
        InvalidValueError: If there is no such file, or it is not UTF-8.
        InvalidTypeError: If it is none of these.
        MissingExtraError: If the package is not installed.
    """
    if choice is None:
        return frozenset()
    if choice == "english":
        package = require("better_profanity", "train")
        listed = resources.files(package).joinpath("profanity_wordlist.txt")
        words = listed.read_text(encoding="utf-8").splitlines()
    elif isinstance(choice, str | Path):
        try:
            words = Path(choice).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidValueError(
                f"expected offensive to be None, 'english', the words, or a file in UTF-8 with one "
                f"word a line; {choice} cannot be read ({error})"
            ) from error
    else:
        words = list(choice)
        if not all(isinstance(word, str) for word in words):
            raise InvalidTypeError("expected the offensive words to be strings")
    return frozenset(word.strip().lower() for word in words)


def _select(
    rows: NDArray[np.int64],
    distinct: int,
    words: list[str],
    unwanted: tuple[Set[str], Set[str]],
    most: int,
    acyclic: bool,
    min_links: int,
) -> tuple[Relations, dict[str, int]]:
    """Apply the filters after that for frequency; return what is left and what each removed."""
    removed = {"infrequent": distinct - len(rows)}

    def keep(name: str, kept: Any) -> None:
        nonlocal rows
        removed[name] = removed.get(name, 0) + int((~kept).sum())
        rows = rows[kept]

    keep("reflexive", rows[:, 0] != rows[:, 1])
    for name, listed in zip(("stop_words", "offensive"), unwanted, strict=True):
        wanted = np.array([word not in listed for word in words])
        keep(name, wanted[rows[:, :2]].all(axis=1))
    if acyclic:
        keep("opposite", pruning.more_frequent_direction(rows[:, :2], rows[:, 2]))
    keep("weak", pruning.strongest(rows[:, :2], rows[:, 2], most))
    if acyclic:
        keep("cyclic", pruning.acyclic(rows[:, :2], rows[:, 2]))
    # A word that goes takes links from others.
    while True:
        enough = (np.bincount(rows[:, :2].ravel())[rows[:, :2]] >= min_links).all(axis=1)
        keep("few_links", enough)
        if enough.all():
            break
    used, numbers = np.unique(rows[:, :2], return_inverse=True)
    ordered = np.unique(numbers.reshape(-1, 2), axis=0).astype(np.int64)
    relations = Relations(tuple(words[row] for row in used), ordered)
    return relations, {"pairs": distinct, **removed}
