"""The input embedding of a `transformers` model: one tensor, read without the rest of the model.

Only safetensors files are opened, so that nothing in them is executed, and of a model in several
files only the one that holds the embedding is fetched.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from hf_dxprivacy._optional import require
from hf_dxprivacy.errors import ArtifactError, HubError, HubFileNotFoundError, InvalidValueError
from hf_dxprivacy.hub import HubAccess, HubCommit, fetch

EXTRA = "models"

_CONFIG = "config.json"
_WHOLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"


@dataclass(frozen=True)
class Checkpoint:
    """A model of `transformers`: a folder, or one commit of a repository on the Hub.

    Attributes:
        name: The folder or the repository.
        commit: The commit; None for a folder.
        access: How to reach the Hub.
    """

    name: str
    commit: HubCommit | None
    access: HubAccess

    @classmethod
    def find(
        cls, name: str | Path, revision: str | None = None, access: HubAccess | None = None
    ) -> "Checkpoint":
        """Find a model, and resolve the revision, once, to a commit.

        Args:
            name: A local folder, or a repository on the Hub.
            revision: Branch, tag or commit on the Hub.
            access: How to reach the Hub.

        Raises:
            InvalidValueError: If it is no folder and can not be a repository, or a revision of a
                folder is asked for.
            HubError: If the Hub refuses it or can not be reached.
        """
        access = access or HubAccess()
        if Path(name).is_dir():
            if revision is not None:
                raise InvalidValueError(
                    f"revision={revision!r} is for repositories on the Hub, and {str(name)!r} is "
                    "a local folder"
                )
            return cls(str(name), None, access)
        _, commit = fetch(str(name), [_CONFIG], revision, access)
        return cls(str(name), commit, access)

    @property
    def origin(self) -> dict[str, str]:
        """Where this comes from, for the provenance of what is made of it."""
        if self.commit is None:
            return {"source": Path(self.name).resolve().name}
        return {"source": self.commit.repo_id, "commit": self.commit.sha}

    def load(self, factory: Any, what: str) -> Any:
        """Load a part with a class of `transformers`, and never run code that comes with it.

        Args:
            factory: Such as `AutoConfig`.
            what: What the part is called in messages.

        Raises:
            InvalidValueError: If `transformers` can not load it.
        """
        hub: dict[str, Any] = {}
        if self.commit is not None:
            hub = asdict(self.access) | {"revision": self.commit.sha}
        with self._explained(what):
            return factory.from_pretrained(self.name, trust_remote_code=False, **hub)

    def input_embedding(self, rows: Sequence[int]) -> tuple[str, NDArray[np.float32]]:
        """Read rows of the input embedding.

        Args:
            rows: Ids of tokens.

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
        file = self._first_of(_WHOLE, _INDEX)
        if file.name == _INDEX:
            file = self._part_with(name, file)
        try:
            with safe_open(file, framework="pt") as tensors:
                return tensors.get_tensor(self._stored_name(name, tensors.keys()))
        except SafetensorError as error:
            raise ArtifactError(f"{file}: {error}; fetch it again") from error

    def _part_with(self, name: str, index: Path) -> Path:
        try:
            files = dict(json.loads(index.read_text("utf-8"))["weight_map"])
        except (ValueError, KeyError, TypeError) as error:
            raise ArtifactError(f"{index}: expected an index of safetensors files") from error
        return self._first_of(files[self._stored_name(name, files)])

    def _first_of(self, *names: str) -> Path:
        """Return the first file of these names that there is."""
        failure: HubError | None = None
        for name in names:
            try:
                path = self._file(name)
            except HubFileNotFoundError:
                continue
            except HubError as error:
                # Without network, a file that does not exist looks like one that was not fetched.
                failure = failure or error
                continue
            if path.is_file():
                return path
        raise failure or ArtifactError(
            f"{self.name}: there is no {' or '.join(names)}; only safetensors files are read, for "
            "others can execute code, so convert the weights"
        )

    def _file(self, name: str) -> Path:
        if Path(str(name)).name != name:
            raise ArtifactError(f"{self.name}: expected the name of a file, got {name!r}")
        if self.commit is None:
            return Path(self.name) / name
        return fetch(self.commit.repo_id, [name], self.commit.sha, self.access)[0] / name

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
        except (OSError, ValueError, KeyError, AttributeError, ImportError) as error:
            raise InvalidValueError(
                f"{self.name}: transformers can not load the {what}: {error}"
            ) from error
