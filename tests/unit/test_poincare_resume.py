"""Poincaré training that is interrupted and goes on from its checkpoint."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hf_dxprivacy.errors import ArtifactError, InvalidValueError
from hf_dxprivacy.spaces.space import EmbeddingSpace
from hf_dxprivacy.training.hyperparameters import PoincareConfig
from hf_dxprivacy.training.poincare import Epoch, train_poincare
from hf_dxprivacy.training.relations import Relations

NAMES = [
    (f"n{node}", f"n{node >> up}") for node in range(1, 64) for up in range(1, 7) if node >> up
]
RELATIONS = Relations.from_names(NAMES)
CONFIG = PoincareConfig(epochs=40, burn_in=5, negatives=10, check_every=10, patience=3)

CONFIGS = {
    "plain": CONFIG,
    "refined": replace(CONFIG, epochs=20, refinement=20, refinement_rank_weight=5.0, check_every=0),
}

# Trains like the tests, in a process that ends as if it had lost its power.
KILLED = """
import os, signal, sys
from test_poincare_resume import CONFIGS, RELATIONS
from hf_dxprivacy.training.poincare import train_poincare

def on_epoch(epoch):
    if epoch.number == 25:
        os.kill(os.getpid(), signal.SIGKILL)

train_poincare(
    *(RELATIONS, 3, CONFIGS[sys.argv[2]]),
    threads=1,
    checkpoint=sys.argv[1],
    progress=False,
    on_epoch=on_epoch,
)
"""


def _train(checkpoint: Path | None = None, config: PoincareConfig = CONFIG) -> EmbeddingSpace:
    return train_poincare(RELATIONS, 3, config, threads=1, checkpoint=checkpoint, progress=False)


def _stop_after(epochs: int, checkpoint: Path) -> None:
    def on_epoch(epoch: Epoch) -> None:
        if epoch.number == epochs:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        train_poincare(
            RELATIONS,
            3,
            CONFIG,
            threads=1,
            checkpoint=checkpoint,
            progress=False,
            on_epoch=on_epoch,
        )


@pytest.mark.parametrize("name", CONFIGS)
def test_a_killed_training_goes_on_to_the_same_points(tmp_path: Path, name: str) -> None:
    path = tmp_path / "training.npz"
    command = [sys.executable, "-c", KILLED, str(path), name]
    done = subprocess.run(command, cwd=Path(__file__).parent, check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.exists()
    numbers: list[int] = []
    resumed = train_poincare(
        RELATIONS,
        3,
        CONFIGS[name],
        threads=1,
        checkpoint=path,
        progress=False,
        on_epoch=lambda epoch: numbers.append(epoch.number),
    )
    assert 1 < numbers[0] <= 26
    assert numbers == list(range(numbers[0], 41))
    np.testing.assert_array_equal(resumed.vectors, _train(config=CONFIGS[name]).vectors)


def test_interrupting_again_and_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "training.npz"
    _stop_after(1, path)
    _stop_after(12, path)
    np.testing.assert_array_equal(_train(path).vectors, _train().vectors)
    assert [file.name for file in tmp_path.iterdir()] == ["training.npz"]


def test_a_finished_training_is_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / "training.npz"
    first = _train(path)
    written = path.stat().st_mtime_ns
    np.testing.assert_array_equal(_train(path).vectors, first.vectors)
    assert path.stat().st_mtime_ns == written


def test_the_checkpoint_of_another_training_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "training.npz"
    _stop_after(1, path)
    with pytest.raises(InvalidValueError, match=r"training with other config; name another file"):
        _train(path, replace(CONFIG, seed=1))
    other = Relations.from_names(NAMES[1:])
    with pytest.raises(InvalidValueError, match="training with other relations and dim;"):
        train_poincare(other, 4, CONFIG, threads=1, checkpoint=path, progress=False)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_damaged_checkpoint_is_refused(tmp_path: Path, share: float) -> None:
    path = tmp_path / "training.npz"
    _stop_after(1, path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ArtifactError, match=r"training.npz is not a whole checkpoint; delete it"):
        _train(path)
    np.savez(path, points=np.zeros((3, 3)))
    with pytest.raises(ArtifactError, match=r"training.npz is not a whole checkpoint; delete it"):
        _train(path)
    path.write_bytes(content.replace(b"points", b"paints"))
    with pytest.raises(ArtifactError, match=r"training.npz is not a whole checkpoint; delete it"):
        _train(path)
