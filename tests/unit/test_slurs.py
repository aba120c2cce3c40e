"""The lists of words that public vocabularies may not hold."""

from pathlib import Path

import pytest

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.spaces import builtin_names
from hf_dxprivacy.text import slurs
from hf_dxprivacy.text.slurs import is_harsh, is_slur

# Ordinary words that a careless pattern would take for listed ones.
ORDINARY = """
    assassin bass class glass association cocktail cockpit peacock hancock woodcock dickens dick
    raccoon tycoon cocoon coonhound spice spices spike spikes conspicuous suspicious auspicious
    niggle niggling snigger denigrate montenegro japan japanese jape pakistan pakistani
    sauerkraut homogeneous homosexual homonym homology gay lesbian queer transgender transsexual
    tit titmouse titter titanic shiitake shitake shittah shittim mishit analysis analyst
    cumulative cumin cummings cumberland circumstance document scum hermaphrodite hospice
    scunthorpe essex sussex middlesex penistone therapist manuscript retardant retardation
    bastard damn crap hell sex sexual breast prostitute pornography nazi jew jewish gypsy eskimo
    chicken kitchen chinese china spade pansy fairy slag skunk spasm spasms
    squawk squawbush honk honks honking yiddish yidam boycott blackboard mongolia mongol
    sheen greasy caffeine kaftan sambuca gypsum wangle swank swanky thotmes putty
    """.split()
LISTED = """
    nigger Niggers NIGGA negro negroes faggot faggots fag fags kike spic spics chink chinks coon
    paki pakis gook gooks wetback wetbacks retard retards retarded spaz dyke dykes tranny trannies
    shemale bitch bitches bitchy bitching slut sluts slutty cunt cunts whore whores whorehouse twat
    fuck fucks fucked fucking motherfucker motherfucking shit shits shitty shitting bullshit
    asshole assholes cocksucker blowjob pussy pussies honky gringos squaw darkies piccaninny
    pickaninnies faggot's
    """.split()


# Names of groups, words that medicine, law and feelings need, and neighbours of harsh words.
PLAIN = """
    gay lesbian queer transgender homosexual jewish muslim christian black indian woman
    breast cancer blood vomiting urine hiv pregnant injury pain epilepsy schizophrenia morphine
    death die dead war soldier gun crime police prison court attack shoot beat hit hate stupid
    assess assessment cockpit cocktail hancock dickens peacock classic analog analysis
    skill killjoy stability instability constable drape grape rapid rapport sextant essex unisex
    heroine grapefruit pimple therapist farthing farther addicted alcohol wine drug medicine
    seminar disseminate penalty pennant nudge niggle raccoon hoe screw affair passion kiss love
    """.split()
HARSH = """
    porn porno Pornography horny sexual sexy sexist rape raped rapes rapist murder murderer killed
    killing kills stabbed suicide overdosed abused abusive molested tortured genocide massacre nazi
    Nazis hitler jihad terrorists racist lynching heroin cocaine marijuana drunk drunken crap damn
    pissed idiots moron bastards prostitutes nude panties orgasm penis vagina incest corpse nigger
    """.split()


@pytest.mark.parametrize("word", ORDINARY)
def test_an_ordinary_word_is_not_listed(word: str) -> None:
    assert not is_slur(word)


@pytest.mark.parametrize("word", LISTED)
def test_hard_words_and_their_forms_are_listed(word: str) -> None:
    assert is_slur(word)


@pytest.mark.parametrize("word", PLAIN)
def test_a_plain_word_is_not_harsh(word: str) -> None:
    assert not is_harsh(word)


@pytest.mark.parametrize("word", HARSH)
def test_harsh_words_and_their_forms_are_listed(word: str) -> None:
    assert is_harsh(word)


def test_english_lacks_harsh_words_and_takes_them_for_unknown_ones() -> None:
    space = EmbeddingSpace.from_pretrained("english")
    assert [word for word in space.words if is_harsh(word)] == []
    assert (space.ids(map(str.lower, HARSH)) < 0).all()
    assert (space.ids(["gay", "jewish", "muslim", "breast", "cancer", "hiv", "death"]) >= 0).all()
    dropping = DxPrivatizer("english", "hierarchical", 1.5, oov="drop", seed=2**100 + 7)
    assert len(dropping.privatize("one genocide porn day").split()) == 2


@pytest.mark.parametrize("name", builtin_names())
def test_no_built_in_vocabulary_holds_a_listed_word(name: str) -> None:
    assert [word for word in EmbeddingSpace.from_pretrained(name).words if is_slur(word)] == []


def test_no_name_that_a_shape_may_become_is_listed() -> None:
    names = Path(slurs.__file__).with_name("names.txt").read_text("utf-8").split()
    assert len(names) > 1000
    assert [name for name in names if is_harsh(name)] == []
