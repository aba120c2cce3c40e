"""Words and vectors of language models: `transformers` input embeddings, and model2vec.

Only safetensors files are opened, so that nothing in them is executed, and of a model in several
files only the one that holds the embedding is fetched.
"""

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import (
    ArtifactError,
    HubError,
    HubFileNotFoundError,
    InvalidTypeError,
    InvalidValueError,
)
from hf_dxprivacy.hub import HubCommit, HubOptions, fetch
from hf_dxprivacy.text import TokenVocabulary

EXTRA = "models"

_WHOLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_STATIC_FILES = ("config.json", "model.safetensors", "tokenizer.json")

# The last is that of models of images and sounds, which embed no tokens.
_REFUSALS = OSError, ValueError, KeyError, AttributeError, ImportError, NotImplementedError

# Words, their vectors and where they come from.
Described = tuple[tuple[str, ...], NDArray[np.floating], dict[str, Any]]

# Names of scripts such as "latin"; "main", that of most words; None for all.
Scripts = Sequence[str] | Literal["main"] | None

# Letters whose Unicode name does not start with a script.
_NO_SCRIPT = {"modifier", "feminine", "masculine", "micro"}
_BROKEN = "\ufffd"


@dataclass(frozen=True)
class TransformersModel:
    """A model of `transformers`: a folder, or one commit of a repository on the Hub.

    Attributes:
        name: The folder or the repository.
        commit: The commit; None for a folder.
        access: How to reach the Hub.
    """

    name: str
    commit: HubCommit | None
    access: HubOptions

    @classmethod
    def find(
        cls, name: str | Path, revision: str | None = None, access: HubOptions | None = None
    ) -> "TransformersModel":
        """Find a model, and resolve the revision, once, to a commit.

        Args:
            name: A local folder, or a repository on the Hub.
            revision: Branch, tag or commit on the Hub.
            access: How to reach the Hub.

        Raises:
            InvalidValueError: If it is no folder and cannot be a repository, or a revision of a
                folder is asked for.
            HubError: If the Hub refuses it or cannot be reached.
        """
        access = access or HubOptions()
        if Path(name).is_dir():
            if revision is not None:
                raise InvalidValueError(
                    f"revision={revision!r} is for repositories on the Hub, and {str(name)!r} is "
                    "a local folder"
                )
            return cls(str(name), None, access)
        _, commit = fetch(str(name), ["config.json"], revision, access)
        return cls(str(name), commit, access)

    @property
    def origin(self) -> dict[str, str]:
        """Source of the model, for the provenance of a space."""
        if self.commit is None:
            return {"source": Path(self.name).resolve().name}
        return {"source": self.commit.repo_id, "commit": self.commit.sha}

    def load(self, factory: Any, what: str, **options: Any) -> Any:
        """Load a part with a class of `transformers`, and never run code that comes with it.

        Args:
            factory: Such as `AutoConfig`.
            what: What the part is called in messages.
            **options: Of its `from_pretrained`.

        Raises:
            InvalidValueError: If `transformers` cannot load it.
        """
        hub: dict[str, Any] = {}
        if self.commit is not None:
            hub = asdict(self.access) | {"revision": self.commit.sha}
        with self._explained(what):
            return factory.from_pretrained(self.name, trust_remote_code=False, **hub, **options)

    def static_model(self) -> Any:
        """Load a static model with model2vec.

        Raises:
            InvalidValueError: If model2vec cannot load it.
        """
        folder = Path(self.name)
        if self.commit is not None:
            folder, _ = fetch(self.commit.repo_id, _STATIC_FILES, self.commit.sha, self.access)
        try:
            return require("model2vec", EXTRA).StaticModel.from_pretrained(folder)
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            raise InvalidValueError(f"{self.name}: model2vec cannot load it: {error}") from error

    def input_embedding(self, rows: Sequence[int]) -> tuple[str, NDArray[np.float32]]:
        """Read some rows of the input embedding.

        Returns:
            The name of the model's class and a (len(rows), n) float32 matrix.

        Raises:
            InvalidValueError: If the model has no such embedding, or too few rows.
            ArtifactError: If there are no safetensors files, or they do not fit the model.
        """
        torch, transformers = require("torch", EXTRA), require("transformers", EXTRA)
        config = self.load(transformers.AutoConfig, "configuration")
        # On the meta device a model has names and shapes but no weights.
        with self._explained("model"), torch.device("meta"):
            model = transformers.AutoModel.from_config(config, trust_remote_code=False)
            weight = model.get_input_embeddings().weight
        if max(rows) >= len(weight):
            raise InvalidValueError(
                f"{self.name}: the tokenizer has {max(rows) + 1} tokens, but the input embedding "
                f"only {len(weight)} rows; they do not belong together"
            )
        name = next(name for name, value in model.named_parameters() if value is weight)
        stored = self._read(name)
        if stored.shape != weight.shape or not stored.is_floating_point():
            raise ArtifactError(
                f"{self.name}: expected {name!r} to be {tuple(weight.shape)} floating-point "
                f"numbers, got {tuple(stored.shape)} of {stored.dtype}"
            )
        return type(model).__name__, stored[torch.tensor(rows)].float().numpy()

    def _read(self, name: str) -> Any:
        """Read a tensor from the safetensors file, or from the one of several that has it."""
        file = self._first_of(_WHOLE, _INDEX)
        if file.name == _INDEX:
            try:
                files = dict(json.loads(file.read_text("utf-8"))["weight_map"])
            except (ValueError, KeyError, TypeError) as error:
                raise ArtifactError(f"{file}: expected an index of safetensors files") from error
            part = files[self._stored_name(name, files)]
            if Path(str(part)).name != part:
                raise ArtifactError(f"{self.name}: expected the name of a file, got {part!r}")
            file = self._first_of(part)
        try:
            with safe_open(file, framework="pt") as tensors:
                return tensors.get_tensor(self._stored_name(name, tensors.keys()))
        except SafetensorError as error:
            raise ArtifactError(f"{file}: {error}; fetch it again") from error

    def _first_of(self, *names: str) -> Path:
        """Return the first file of these names that there is."""
        failure: HubError | None = None
        folder = Path(self.name)
        for name in names:
            try:
                if self.commit is not None:
                    folder, _ = fetch(self.commit.repo_id, [name], self.commit.sha, self.access)
            except HubFileNotFoundError:
                continue
            except HubError as error:
                # Without network, a file that does not exist looks like one that was not fetched.
                failure = failure or error
                continue
            if (folder / name).is_file():
                return folder / name
        raise failure or ArtifactError(
            f"{self.name}: there is no {' or '.join(names)}; only safetensors files are read, for "
            "others can execute code, so convert the weights"
        )

    def _stored_name(self, name: str, stored: Iterable[str]) -> str:
        """Find a parameter, whose name in a file may have another prefix than in the model.

        A model with a head has one more ("bert.embeddings…"), and older checkpoints have others.
        """
        parts, stored = name.split("."), list(stored)
        for start in range(len(parts) - 1):
            tail = ".".join(parts[start:])
            found = [key for key in stored if key == tail or key.endswith(f".{tail}")]
            if len(found) == 1:
                return found[0]
        raise ArtifactError(f"{self.name}: the safetensors files have no tensor {name!r}")

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except _REFUSALS as error:
            raise InvalidValueError(
                f"{self.name}: transformers cannot load the {what}: {error}"
            ) from error


def read_transformers(
    model_id: str | Path,
    revision: str | None,
    access: HubOptions,
    subwords: bool,
    scripts: Scripts,
) -> Described:
    """Read the input embedding of a model; see `EmbeddingSpace.from_transformers`."""
    transformers = require("transformers", EXTRA)
    require("torch", EXTRA)
    checkpoint = TransformersModel.find(model_id, revision, access)
    vocabulary = TokenVocabulary.of(checkpoint.load(transformers.AutoTokenizer, "tokenizer"))
    tokens = vocabulary.whole_words()
    if subwords:
        # A vocabulary file has one token a line.
        ordinary = vocabulary.ordinary.items()
        tokens = {s: token for s, token in ordinary if s and "\n" not in s and "\r" not in s}
    chosen, described = _in_scripts(tokens, vocabulary, scripts, checkpoint.name)
    model, vectors = checkpoint.input_embedding(list(chosen.values()))
    return tuple(chosen), vectors, checkpoint.origin | {"model": model} | described


def read_static(model: Any, scripts: Scripts) -> Described:
    """Read a static model; see `EmbeddingSpace.from_static`."""
    static, origin = require("model2vec", EXTRA).StaticModel, {"source": "model2vec"}
    if isinstance(model, (str, Path)):
        source = TransformersModel.find(model)
        model, origin = source.static_model(), source.origin
    if not isinstance(model, static):
        raise InvalidTypeError(
            "expected a model2vec StaticModel, the folder of one or its repository on the Hub, "
            f"got a {type(model).__name__}"
        )
    vocabulary = TokenVocabulary.of(model.tokenizer)
    words = vocabulary.whole_words()
    chosen, described = _in_scripts(words, vocabulary, scripts, origin["source"])
    vectors = _static_vectors(model, np.array(list(chosen.values())))
    return tuple(chosen), vectors, origin | {"model": type(model).__name__} | described


def _static_vectors(model: Any, tokens: NDArray[np.int64]) -> NDArray[np.floating]:
    """Return the vector that the model adds up for each token."""
    size = len(model.tokens)
    rows = np.arange(size) if model.token_mapping is None else np.asarray(model.token_mapping)
    weights = np.ones(size, np.float32) if model.weights is None else np.asarray(model.weights)
    if rows.shape != (size,) or weights.shape != (size,):
        raise InvalidValueError(
            f"expected one vector and one weight for each of {size} tokens of the model, got "
            f"shapes {rows.shape} and {weights.shape}"
        )
    if rows.min() < 0 or rows.max() >= len(model.embedding):
        raise InvalidValueError(
            f"expected the tokens of the model to be mapped to rows 0 … {len(model.embedding) - 1} "
            f"of its embedding, got {rows.min()} … {rows.max()}"
        )
    vectors: NDArray[np.floating] = model.embedding[rows[tokens]] * weights[tokens, None]
    return vectors


def _in_scripts(
    tokens: dict[str, int], vocabulary: TokenVocabulary, scripts: Scripts, source: str
) -> tuple[dict[str, int], dict[str, Any]]:
    """Leave out the tokens with letters of other scripts, and describe for the provenance which."""
    if isinstance(scripts, str) and scripts != "main":
        raise InvalidTypeError(f"expected scripts to be a list of names, got {scripts!r}")
    wanted: set[str] = set()
    if scripts is not None:
        texts = {string: vocabulary.text(token) for string, token in tokens.items()}
        found = {string: _scripts_of(text) for string, text in texts.items()}
        if scripts == "main":
            counts = Counter(script for some in found.values() for script in some)
            wanted = {script for script, _ in counts.most_common(1)}
        else:
            wanted = {name.lower() for name in scripts}
        present = set().union(*found.values())
        if unknown := sorted(wanted - present):
            raise InvalidValueError(
                f"expected scripts that the words of the model have, got {', '.join(unknown)}; "
                f"they have {', '.join(sorted(present)) or 'none'}"
            )
        tokens = {
            string: token
            for string, token in tokens.items()
            if found[string] <= wanted and _BROKEN not in texts[string]
        }
    if not tokens:
        raise InvalidValueError(
            f"{source}: the tokenizer has nothing but special tokens and pieces of words; check "
            "that it is complete, or use another model"
        )
    total, special = len(vocabulary.strings), len(vocabulary.special)
    return tokens, {
        "tokens": {"all": total, "special": special, "taken": len(tokens)},
        "scripts": None if scripts is None else sorted(wanted),
    }


def _scripts_of(text: str) -> set[str]:
    """Return the scripts of the letters of a text, as their Unicode names begin."""
    names = (unicodedata.name(letter, "") for letter in text if letter.isalpha())
    plain = (name.removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ") for name in names)
    return {name.partition(" ")[0].lower() for name in plain if name} - _NO_SCRIPT
