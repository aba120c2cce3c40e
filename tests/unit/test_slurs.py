"""The list of words that no public vocabulary may hold."""

from pathlib import Path

import pytest

from hf_dxprivacy import EmbeddingSpace
from hf_dxprivacy.spaces import builtin_names
from hf_dxprivacy.text import slurs
from hf_dxprivacy.text.slurs import is_slur

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


@pytest.mark.parametrize("word", ORDINARY)
def test_an_ordinary_word_is_not_listed(word: str) -> None:
    assert not is_slur(word)


@pytest.mark.parametrize("word", LISTED)
def test_hard_words_and_their_forms_are_listed(word: str) -> None:
    assert is_slur(word)


@pytest.mark.parametrize("name", builtin_names())
def test_no_built_in_vocabulary_holds_a_listed_word(name: str) -> None:
    assert [word for word in EmbeddingSpace.from_pretrained(name).words if is_slur(word)] == []


def test_no_name_that_a_shape_may_become_is_listed() -> None:
    names = Path(slurs.__file__).with_name("names.txt").read_text("utf-8").split()
    assert len(names) > 1000
    assert [name for name in names if is_slur(name.lower())] == []
