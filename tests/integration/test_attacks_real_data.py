"""Attacks on real texts: they succeed without noise, and less with it."""

import gzip
import json
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hf_dxprivacy.evaluation import author_attribution, membership_inference, user_audit
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer

pytestmark = pytest.mark.realdata


def rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def released(texts: list[str], epsilon: float) -> list[str]:
    privatizer = DxPrivatizer("wordnet-gloss", "tem", epsilon, seed=1)
    return [str(text) for text in privatizer.privatize(texts)]


def test_who_wrote_news(data: Path) -> None:
    articles = rows(data / "authorship" / "reuters_c50.jsonl.gz")
    names = sorted({row["author"] for row in articles})[:10]
    mine = [row for row in articles if row["author"] in names]
    known = [row for row in mine if row["split"] == "train"][::5]
    asked = [row for row in mine if row["split"] == "test"][::10]
    texts, authors = [row["text"] for row in asked], [row["author"] for row in asked]
    found = [
        author_attribution(
            [row["text"] for row in known],
            [row["author"] for row in known],
            version,
            authors,
            subsets=30,
            rng=np.random.default_rng(0),
        ).results[0]
        for version in (texts, released(texts, 10.0), released(texts, 2.0))
    ]
    assert found[0].value > 0.6
    assert found[0].value >= found[1].value > found[2].value
    assert found[2].high < 0.4


def test_which_reviews_were_trained_on(data: Path) -> None:
    reviews = rows(data / "utility" / "mr.jsonl.gz")
    part = [reviews[i] for i in np.random.default_rng(0).permutation(len(reviews))[:600]]
    texts, labels = [row["text"] for row in part], [row["label"] for row in part]
    plain, private = (
        membership_inference(texts, version, labels, repeats=1, rng=np.random.default_rng(0))
        for version in (texts, released(texts, 2.0))
    )
    assert plain[0].value > 0.8
    assert private[0].value == pytest.approx(0.5, abs=0.1)


def test_whose_news_were_trained_on(data: Path) -> None:
    articles = rows(data / "authorship" / "reuters_c50.jsonl.gz")
    texts, users = [], []
    for name in sorted({row["author"] for row in articles})[:12]:
        for row in islice((row for row in articles if row["author"] == name), 2):
            texts.append(" ".join(row["text"].split()[:200]))
            users.append(name)
    plain, private = (
        user_audit(texts, version, users, repeats=1, rng=np.random.default_rng(0))
        for version in (texts, released(texts, 2.0))
    )
    assert plain.where(metric="AUC")[0].value > 0.9
    assert private.where(metric="AUC")[0].value < 0.8
