"""Hyperparameters of Poincaré training."""

from dataclasses import dataclass
from typing import Any

from hf_dxprivacy.errors import require_at_least, require_positive, require_within

# Share of near negatives in the refinement.
REFINEMENT_NEAR = 0.5

# Relations that are passed over by default, all epochs together, and the bounds of the epochs.
PASSED = 74_000_000
EPOCHS = 100, 600


@dataclass(frozen=True)
class PoincareConfig:
    """Settings of `train_poincare`; the defaults are those for large graphs, see `for_size`.

    Attributes:
        epochs: Passes over the relations, burn-in included.
        learning_rate: Length of the step of a relation, in hyperbolic distance over `sharpness`,
            when it is wholly wrong; falls linearly after the burn-in to `final_rate` times that.
        final_rate: See `learning_rate`.
        burn_in: Epochs at the start, during which the nodes find their directions.
        burn_in_rate: Factor on the learning rate during the burn-in.
        negatives: Nodes drawn against the classes of each node.
        negative_exponent: They are drawn in proportion to their degree to this power after the
            burn-in; 0 is evenly.
        burn_in_exponent: The same during the burn-in.
        near_negatives: Share of them that are drawn among the members of the node's classes
            instead, at the end. These are the nodes that are hardest to tell from its classes, and
            rarely drawn otherwise; but they hinder the nodes in finding their places, so that the
            share grows from 0 after the burn-in, with the square of the time.
        sharpness: Factor on distances in the loss; [N] has 1. With larger ones less distance is
            enough to tell nodes apart, so that points stay away from the boundary.
        refinement: Epochs after the others in which half of the nodes that a node is compared with
            are drawn among the 256 nearest ones that are no classes of it. They decide the
            reconstruction, and there are too many nodes to meet them by chance. Every ten epochs
            all nodes are searched for them, in time that grows with the square of their number.
        refinement_rate: Learning rate at the start of it; falls to `final_rate` times that.
        refinement_sharpness: Sharpness in it. A large one makes the loss count who is nearer, more
            than by how much.
        check_every: Epochs between two looks at the reconstruction; 0 for none.
        check_sample: Nodes to look at.
        patience: Looks in a row without a better mean average precision that end the training.
            The points of the best look are the result.
        seed: Of the start, the order and the negatives.
        refinement_rank_weight: Weight in the refinement of a loss that draws a class nearer
            for each evenly drawn node that is nearer than it: in proportion to its rank, where the
            loss of [N] draws no more at rank 1,000 than at 10. The few classes that are far behind,
            and make most of the mean rank, catch up; the mean average precision falls a little.
    """

    epochs: int = 100
    learning_rate: float = 0.05
    final_rate: float = 0.1
    burn_in: int = 20
    burn_in_rate: float = 0.1
    negatives: int = 100
    negative_exponent: float = 0.0
    burn_in_exponent: float = 0.75
    near_negatives: float = 0.1
    sharpness: float = 1.0
    refinement: int = 0
    refinement_rate: float = 0.01
    refinement_sharpness: float = 4.0
    check_every: int = 0
    check_sample: int = 1000
    patience: int = 5
    seed: int = 0
    refinement_rank_weight: float = 0.0

    def __post_init__(self) -> None:
        require_at_least(1, epochs=self.epochs, negatives=self.negatives)
        require_at_least(1, check_sample=self.check_sample, patience=self.patience)
        require_at_least(0, burn_in=self.burn_in, check_every=self.check_every, seed=self.seed)
        require_at_least(0, refinement=self.refinement)
        require_within(0.0, 1000.0, refinement_rank_weight=self.refinement_rank_weight)
        require_positive(refinement_rate=self.refinement_rate)
        require_positive(refinement_sharpness=self.refinement_sharpness)
        require_positive(learning_rate=self.learning_rate, sharpness=self.sharpness)
        require_within(0.0, 1.0, final_rate=self.final_rate, burn_in_rate=self.burn_in_rate)
        require_within(0.0, 1.0, near_negatives=self.near_negatives)
        require_within(
            0.0,
            10.0,
            negative_exponent=self.negative_exponent,
            burn_in_exponent=self.burn_in_exponent,
        )

    @classmethod
    def for_size(cls, relations: int, **settings: Any) -> "PoincareConfig":
        """Return settings with defaults for a number of relations.

        Small graphs get more epochs with shorter steps, which costs little and reconstructs them
        better: WordNet's mammals reach a mean average precision of .98 with 600 epochs, .91 with
        the 100 that suffice for all its nouns (docs/results/poincare-training.md).

        Args:
            relations: How many relations there are to learn.
            **settings: Attributes that are not to be chosen.

        Raises:
            InvalidValueError: If a setting is out of range.
        """
        least, most = EPOCHS
        epochs = min(most, max(least, PASSED // max(1, relations)))
        chosen = {"epochs": epochs, "learning_rate": 0.03 if 2 * epochs >= most else 0.05}
        return cls(**(chosen | settings))

    @property
    def all_epochs(self) -> int:
        """Number of epochs, with those of the refinement."""
        return self.epochs + self.refinement

    def rate(self, epoch: int) -> float:
        """Return the learning rate of an epoch, counted from 0."""
        if epoch < min(self.burn_in, self.epochs):
            return self.learning_rate * self.burn_in_rate
        start = self.refinement_rate if self.refines(epoch) else self.learning_rate
        return start * (1.0 + self._passed(epoch) * (self.final_rate - 1.0))

    def near(self, epoch: int) -> int:
        """Return the number of near negatives in an epoch, counted from 0."""
        share = self.near_negatives * self._passed(epoch) ** 2
        return round(self.negatives * (REFINEMENT_NEAR if self.refines(epoch) else share))

    def ranks(self, epoch: int) -> float:
        """Return the weight of the loss by ranks in an epoch, counted from 0."""
        return self.refinement_rank_weight if self.refines(epoch) else 0.0

    def sharpness_at(self, epoch: int) -> float:
        """Return the factor on distances in an epoch, counted from 0."""
        return self.refinement_sharpness if self.refines(epoch) else self.sharpness

    def refines(self, epoch: int) -> bool:
        """Tell whether an epoch, counted from 0, is one of the refinement."""
        return self.refinement > 0 and epoch >= self.epochs

    def _passed(self, epoch: int) -> float:
        """Return the elapsed share of the epochs after the burn-in, or of the refinement."""
        if self.refines(epoch):
            return (epoch - self.epochs) / self.refinement
        return max(0, epoch - self.burn_in) / max(1, self.epochs - self.burn_in)
