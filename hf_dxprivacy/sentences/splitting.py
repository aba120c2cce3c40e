"""Sentences of texts, by the rules of sentencex (abbreviations, quotes, some 300 languages)."""

from hf_dxprivacy._runtime import require


def split_sentences(text: str, language: str = "en") -> list[str]:
    """Split a text into its sentences.

    A piece without a letter, such as the number of an item of a list, belongs to the sentence that
    follows; at the end, to the one before.

    Args:
        text: Any text.
        language: Its language, as a code of ISO 639-1; decides on abbreviations.

    Returns:
        The sentences without the spaces around them; none for a text of spaces only.

    Raises:
        MissingExtraError: If sentencex is not installed.
    """
    sentences: list[str] = []
    start = ""
    for piece in require("sentencex", "sentences").segment(language, text):
        start += piece
        if any(map(str.isalpha, start)):
            sentences.append(start.strip())
            start = ""
    if start.strip():
        sentences[-1:] = [" ".join([*sentences[-1:], start.strip()])]
    return sentences
