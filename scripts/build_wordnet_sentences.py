"""Build the pool of sentences that ships inside the package from the examples of WordNet 3.0.

    pip install 'hf-dxprivacy[train]'
    apt-get install wordnet-base
    python scripts/build_wordnet_sentences.py

WordNet's glosses hold some 48,000 examples of use, more than half of them phrases ("a tall tree").
Taken are those of 4 to 20 words that have a subject and a finite verb, as far as rules can tell,
and whose words the built-in space `english` all has; without figures, without names of persons,
places and peoples, which a release should not state, without slurs, obscenities, innuendo,
violence, drunkenness and insults, as far as lists and a reader found them. They get a capital
letter at the start and a stop at the end; nothing else is changed. Build `english` first.

The tree is made from all dimensions of `english`, the vectors that are stored have fewer. Two runs
on one machine give the same bytes.
"""

import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import better_profanity
import numpy as np
from build_builtin_spaces import origin, wordnet_parser

from hf_dxprivacy.hub.writing import write_artifact
from hf_dxprivacy.sentences import SentencePool
from hf_dxprivacy.spaces import EmbeddingSpace, space_artifact
from hf_dxprivacy.text import RowReader
from hf_dxprivacy.text.shapes import public_names
from hf_dxprivacy.text.slurs import is_harsh
from hf_dxprivacy.training.wordnet import (
    LICENCE_FILE,
    Morphology,
    Synset,
    read_morphology,
    read_synsets,
)

NAME = "wordnet-sentences"
WORDS = (4, 20)
# More dimensions find nearer sentences than more sentences do, at equal size of the files.
DIM = 48

EXAMPLE = re.compile(r'"([^"]+)"')
# Brackets, lists, dialogues and pieces of quotations.
MARKS = re.compile(r"[()\[\]{};:_*/`\d]|--|\.\.|- |^\W|,$")
SUBJECTS = frozenset(
    "i you he she it we they there nobody everybody everyone somebody someone nothing everything "
    "anyone anything".split()
)
FINITE = frozenset(
    "am is are was were has have had do does did can could will would shall should may might must "
    "cannot can't won't don't doesn't didn't isn't aren't wasn't weren't hasn't haven't hadn't "
    "couldn't wouldn't shouldn't".split()
)
# What follows them is a clause, and may be all that has a verb ("the house that he built").
LINKS = frozenset(
    "that which who whom whose when where if because while as than whether what how why".split()
)
# Capital letters inside a sentence that name nobody.
CAPITALS = frozenset(
    "I Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May "
    "June July August September October November December Christmas Easter".split()
)
# Beginnings of words and phrases beside the lists of words, found by reading all sentences.
UNFIT = re.compile(
    r"""\b(?:
    # Violence against persons and animals, arms, and what they leave behind
    execut(?:ed|ion)|hang(?:ed|ing)\b|whip|slapp|punch|slugg|whacked|clobber|bash\b|clout|conk|
    brawl|thug|manhandl|strong-arm|fist-fight|cruel|brutal|severed|blinded|starv|victim|
    poison(?!ous|\ ivy)|attackers?\b|attack\ her|robb|burglar\b|shoplift|scalp|torch|smithereens|
    truss|hog-tied|pyre|shoot(?:ing)?\b|shot\ (?:down|to\ his)|gun|bullets?\b|rifle|pistol|revolver|
    sword|dagger|black\ eye|blazed\ away|choked\ (?:the|his)|being\ beaten|
    kicked\ (?:him|her|the\ (?:boy|dog))|hit\ (?:me|him|her|his|hard|the\ child)|
    struck\ (?:him|the\ child|the\ attacker|her\ thigh)|beats?\ (?:him|his|them|up\b|the\ students)|
    on\ (?:the|her)\ head\b|back\ of\ the\ head|across\ the\ face|(?:box|clip)\ on\ the\ ear|
    box\ your\ ears|passed\ out\.?$|get\ physical|bled\b|bleeding|bloody|pus\b|blood\ shed|
    blood-soaked|(?:trail|gush)\ of\ blood|(?:shedding\ the|streamed|in|her|the|away\ the)\ blood\b|
    vomit|pregnan|impregnat|dead\ (?:bod|man\b)|fell\ dead|(?:bury|found)\ the\ body|
    the\ body\ (?:washed|started)|bodies\ (?:decomposed|were)|
    drown(?:ed|ing)?\ (?:the\ kit|in\ the\ lake|his|her)|attempt\ on\ his\ life|liquidated\ the|
    dispatched\ by|agent\ was\ neutral|downed\ the|slashed\ her|(?:wanted\ to|sooner)\ die|
    stepped\ on\ a\ dud|locked\ her\ daughter|
    # Innuendo
    girls?\ in(?:to)?\ trouble|blonde\ bomb|abort|(?:young|pretty)\ girls?\b(?!\ danced)|
    pick\ up\ girls|lover\b|wedlock|intimate\ (?:with|parts)|put\ out\.?$|any\ love\ in|good\ head|
    sleeps\ with|all\ the\ way\ with|exposed\ (?:himself|by)|one-night|virginal|bed\ hops|
    (?:honest|loose|comfort|pretty|this)\ woman|gave\ herself|sells\ her\ body|strips\ in|
    felt\ the\ girl|hit\ on|cruising\ the|cheats\ on|unfaithful|keeping\ three|
    solicit(?:ing\ in|\ a\ man|\.?$)|(?:his|amorous)\ advances|flirt|pleasure\ of\ her|paw\ her|
    pinched\ her|pass\ at\ her|necking|skinny-dip|main\ squeeze|gets\ off\ on|score\ last|
    jock\ strap|brassiere|buttoned\ her|nice\ legs|riding\ up\ my|eyes\ over\ her|once\ over|
    (?:carrying|bearing)\ his\ child|whistled\ as\ she|stalked|bosom|trophy\ wife|fix\ you\ up|
    off(?:\ with)?\ my\ wife|picked\ a\ wife|touch\ her\ with|
    love\ with\ (?:his\ cousin|her\ former)|riding\ the\ cow|accepted\ the\ bull|covers\ the\ mare|
    # Excretion, drink and drugs
    urin|wets?\ (?:the|his)\ bed|make\ water|take\ a\ leak|bowel|had\ made\ (?:in|on)|ball-breaker|
    drink\ was|on\ drink|took\ to\ drink|much\ to\ drink|drinking\ (?:heavily|all|a\ secret)|
    never\ to\ drink|whisky|liquor|in\ alcohol|brain\ is\ swimming|load\ on|addict|huffing|
    (?:uses|took|off|illegal)\ drugs|drug\ (?:habit|ring)|drugs\ have|from\ the\ drugs|
    dropped\ acid|crack\ house|
    # Slights of groups and of persons
    slur\b|segregat|(?:illegal|unwanted)\ immigrant|white\ (?:stranger|adult)|black\ people|
    race\ (?:question|relations)|women\b|african\ men|curlers|unqualified\ to\ testify|
    suit\ a\ young|broad\ is|corrupting|dominates\ her|swine|manners\ of\ a\ pig|airhead|gutless|
    old\ bag|real\ dog|sod\b|dwarf|anorexic|stuttering|handicapped\ classmate|abnormal\.?$|
    abomination|satanic|to\ be\ committed
    )""",
    re.IGNORECASE | re.VERBOSE,
)


def main() -> int:
    """Build the pool."""
    arguments = wordnet_parser(__doc__).parse_args()
    sentences, left_out = chosen(arguments.wordnet)
    source = origin(arguments.wordnet)
    licence = source.pop("licence_text")
    described = {"script": f"scripts/{Path(__file__).name}", "examples_left_out": left_out}
    pool = build(sentences, source | described)
    save(pool, arguments.output / NAME, licence)
    print(f"{pool!r}, {pool.space.hierarchy!r}")
    return 0


def chosen(wordnet: Path) -> tuple[list[str], dict[str, int]]:
    """Return the sentences, and how many examples were left out by reason."""
    english, morphology = EmbeddingSpace.from_pretrained("english"), read_morphology(wordnet)
    people = {name.lower() for name in public_names()}
    listed = resources.files(better_profanity) / "profanity_wordlist.txt"
    obscene = {*listed.read_text("utf-8").splitlines()}
    reader, kept, reasons = RowReader(), list[str](), Counter[str]()
    for synset in read_synsets(wordnet):
        for example in EXAMPLE.findall(synset.gloss):
            text = " ".join(example.split())
            words = list(reader.read_text(text).words)
            reason = fault(text, words, people, obscene)
            if not reason and not is_sentence(words, synset, morphology):
                reason = "phrases"
            if not reason and (english.ids([word.lower() for word in words]) < 0).any():
                reason = "rare words"
            if reason:
                reasons[reason] += 1
            else:
                kept.append(text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else "."))
    return kept, dict(reasons)


def fault(text: str, words: Sequence[str], people: set[str], obscene: set[str]) -> str:
    """Return why an example is left out whatever its grammar, or an empty string."""
    if not WORDS[0] <= len(words) <= WORDS[1]:
        return "length"
    if MARKS.search(text):
        return "marks and figures"
    inside = (word.split("'")[0] for word in words[1:])
    if any(word != word.lower() and word not in CAPITALS for word in inside):
        return "names"
    if words[0] != words[0].lower() and words[0].lower() in people:
        return "names"
    if UNFIT.search(text) or any(word.lower() in obscene or is_harsh(word) for word in words):
        return "obscene or violent"
    return ""


def is_sentence(words: Sequence[str], synset: Synset, morphology: Morphology) -> bool:
    """Tell whether an example has a subject and a finite verb, as far as its words show."""
    lower = [word.lower() for word in words]
    if lower[0].split("'")[0] in SUBJECTS:
        return True
    of_verb = synset.key[0] == "v"
    if of_verb and (lower[0] in FINITE or words[0][0].isupper()):
        # Questions, and examples that WordNet writes as sentences.
        return True
    lemmas = {lemma.lower() for lemma in synset.lemmas}
    for at, word in enumerate(lower[1:], start=1):
        if word in LINKS:
            return False
        if word in FINITE:
            return True
        inflected = word.endswith(("s", "ed")) or word in morphology.exceptions["verb"]
        bases = lemmas.intersection(morphology.bases(word)) if inflected and of_verb else ()
        if at > 1 and bases and not word.endswith("ing"):
            return True
    return False


def build(sentences: Sequence[str], provenance: dict[str, Any]) -> SentencePool:
    """Make the pool; its points have fewer dimensions than its tree was made from."""
    pool = SentencePool.from_sentences(
        sentences, "english", words=WORDS, provenance=provenance, progress=False
    )
    points = pool.space.vectors[:, :DIM]
    points = points / np.linalg.norm(points, axis=1, keepdims=True)
    # Rounded as they are stored.
    space = EmbeddingSpace.from_vectors(
        pool.sentences, points.astype(np.float16), provenance=pool.space.provenance
    )
    space = space.with_hierarchy(pool.space.hierarchy)
    projection = np.ascontiguousarray(pool.projection[:, :DIM])
    # Measured again, where the points are now.
    return replace(pool, space=space, projection=projection)._covering(None)


def save(pool: SentencePool, folder: Path, licence: str) -> None:
    """Write the pool with its licence; vectors in half precision."""
    folder.mkdir(parents=True, exist_ok=True)
    pool._save(folder)
    entries, files = space_artifact.written_parts(pool.space)
    write_artifact(
        folder,
        vectors=pool.space.vectors.astype(np.float16),
        words=pool.sentences,
        config={"metric": "euclidean", "scale": 1.0, "provenance": pool.space.provenance} | entries,
        files={**files, LICENCE_FILE: [licence.encode()]},
    )


if __name__ == "__main__":
    sys.exit(main())
