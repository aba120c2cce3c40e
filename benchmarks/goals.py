"""The goals of speed and size, and the figures that decide them."""

from speed_page import Goal

PEER = "mldp-text 0.1.2"
SEARCH = "faiss flat search of as many vectors"
LARGE = "400,000 × 300"


def beside_peer(what: str, theirs: str, ours: str, bound: float) -> Goal:
    """Return the goal of a mechanism beside mldp-text."""
    row = {"peer": "mldp-text==0.1.2", "its mechanism": theirs, "our mechanism": ours}
    return Goal(what, PEER, "peers", row, "times the peer", bound, beside="our words/s")


def mapped(
    what: str, against: str, row: str, column: str, bound: float, unit: str = "×", beside: str = ""
) -> Goal:
    """Return a goal of `Dataset.map` on MR."""
    return Goal(what, against, "map_speed", {"what": row}, column, bound, unit, beside=beside)


def start_up(what: str, row: str, bound: float, unit: str = "s") -> Goal:
    """Return a goal of start-up or memory."""
    return Goal(what, "", "startup", {"what": row}, "figure", bound, unit, at_most=True)


GOALS = (
    beside_peer("Laplace, `Dataset.map`", "multivariate_calibrated", "laplace", 120),
    mapped(
        "Laplace, one call of the mechanism",
        SEARCH,
        "laplace, one call of the mechanism",
        "of bare search",
        0.9,
        beside="words/s",
    ),
    mapped(
        "Laplace, `Dataset.map`", SEARCH, "laplace, map", "of bare search", 0.8, beside="words/s"
    ),
    beside_peer("Mahalanobis, `Dataset.map`", "mahalanobis", "mahalanobis", 400),
    beside_peer("TEM, `Dataset.map`, cold", "tem", "tem", 5_000),
    beside_peer("calibrated, `Dataset.map`, cold", "tem", "calibrated", 5_000),
    *(
        mapped(f"{what}, `Dataset.map`, {how}", "", f"{name}, {row}", "words/s", 100_000, "words/s")
        for what, name in (("TEM", "tem"), ("calibrated", "calibrated"))
        for how, row in (
            ("cold", "map, cold"),
            ("cold, with stored lists", "map, cold, with lists"),
            ("cold, MR and IMDB mixed", "MR and IMDB mixed, map, cold"),
        )
    ),
    *(
        mapped(
            f"{name}, two processes",
            "`num_proc=1`",
            f"{name}, num_proc=2",
            "of num_proc=1",
            1.7,
            beside="words/s",
        )
        for name in (
            "laplace",
            "tem, MR and IMDB mixed",
            "tem, MR and IMDB mixed, with lists",
            "calibrated, MR and IMDB mixed",
            "calibrated, MR and IMDB mixed, with lists",
        )
    ),
    *(
        Goal(
            f"Laplace, {LARGE}, {index}, noise {noise:g}",
            "exact search",
            "index_speed",
            {"vectors": "random 400,000 x 300", "noise": noise, "index": kind},
            "of flat",
            5,
            beside="agreement",
        )
        for index, kind in (("index", "ivf"), ("index of codes", "pq"))
        for noise in (0.125, 0.25)
    ),
    *(
        Goal(
            f"exact noise in the ball, n = {dim}, as many independent draws",
            "Metropolis–Hastings walk of the paper",
            "hyperbolic_noise",
            {"n": dim},
            "of walk",
            1_000,
            beside="lebesgue draws/s",
        )
        for dim in (2, 5, 10, 50)
    ),
    *(
        Goal(
            f"{law} noise in the ball, n = 10",
            "",
            "hyperbolic_noise",
            {"n": 10},
            f"{law} draws/s",
            1_000_000,
            "draws/s",
        )
        for law in ("riemannian", "lebesgue")
    ),
    Goal(
        "time by rows, 10⁴ to 10⁶, exponent",
        "",
        "growth",
        {"grows": "rows", "mechanism": "calibrated, map", "size": 1_000_000},
        "exponent",
        1.05,
        "",
        at_most=True,
        beside="words/s",
    ),
    *(
        Goal(
            f"TEM, {LARGE}, Zipfian corpus, {name}",
            "",
            script,
            {"vectors": "random", "words": 400_000},
            f"{column}, tokens/s",
            20_000,
            "words/s",
            beside="tokens",
        )
        for name, script, column in (
            ("cold", "exponential_rows", "cold"),
            ("warm", "exponential_rows", "again"),
            ("cold, with stored lists", "exponential_lists", "lists"),
        )
    ),
    start_up("import", "import hf_dxprivacy", 1.5),
    start_up("built-in space", "load wordnet-gloss", 1.0),
    start_up("first row, calibrated", "import, load, first row (calibrated)", 3.0),
    start_up("first row, laplace", "import, load, first row (laplace)", 3.0),
    start_up(f"memory of 4 workers, {LARGE}, laplace", "laplace, 4 workers / 1 worker", 1.3, "×"),
    start_up(f"memory of 4 workers, {LARGE}, tem", "tem, 4 workers / 1 worker", 1.3, "×"),
    Goal(
        "Poincaré training, CPU time",
        "gensim 4.4.0",
        "poincare_training",
        {"system": "train_poincare"},
        "times gensim",
        50,
        beside="relations per CPU second",
    ),
    *(
        Goal(
            "nouns, 10 dimensions, MAP",
            "",
            "nouns",
            {"dimensions": 10, "system": "train_poincare"},
            "MAP",
            goal,
            "",
            beside="mean rank",
        )
        for goal in (0.85, 0.92)
    ),
    Goal(
        "nouns, 10 dimensions, training",
        "",
        "nouns",
        {"dimensions": 10, "system": "train_poincare"},
        "minutes",
        60,
        "minutes",
        at_most=True,
    ),
    Goal(
        "WebIsADB, 10⁷ rows of csv",
        "",
        "webisadb",
        {"what": "csv", "rows": 10_000_000},
        "million rows/s",
        1,
        "million rows/s",
    ),
    Goal(
        "WebIsADB, memory",
        "",
        "webisadb",
        {"what": "csv", "rows": 10_000_000},
        "peak MiB",
        4_096,
        "MiB",
        at_most=True,
    ),
)
