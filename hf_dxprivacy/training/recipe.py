"""Settings of Poincaré training."""

from dataclasses import dataclass

from hf_dxprivacy import _validate

PARAMETRISATIONS = ("lorentz", "poincare")

# Share of near negatives in the refinement.
REFINEMENT_NEAR = 0.5


@dataclass(frozen=True)
class PoincareRecipe:
    """Settings of `train_poincare`.

    Attributes:
        parametrisation: Coordinates that the steps are taken in. "lorentz": geodesics on the
            hyperboloid, stable up to a distance of 28 from the centre. "poincare": straight lines
            in the ball, which end at a norm of 1 − 1e-5, a distance of 12.2.
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
    """

    parametrisation: str = "lorentz"
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

    def __post_init__(self) -> None:
        _validate.one_of(PARAMETRISATIONS, parametrisation=self.parametrisation)
        _validate.at_least(1, epochs=self.epochs, negatives=self.negatives)
        _validate.at_least(1, check_sample=self.check_sample, patience=self.patience)
        _validate.at_least(0, burn_in=self.burn_in, check_every=self.check_every, seed=self.seed)
        _validate.at_least(0, refinement=self.refinement)
        _validate.positive(refinement_rate=self.refinement_rate)
        _validate.positive(refinement_sharpness=self.refinement_sharpness)
        _validate.positive(learning_rate=self.learning_rate, sharpness=self.sharpness)
        _validate.within(0.0, 1.0, final_rate=self.final_rate, burn_in_rate=self.burn_in_rate)
        _validate.within(0.0, 1.0, near_negatives=self.near_negatives)
        _validate.within(
            0.0,
            10.0,
            negative_exponent=self.negative_exponent,
            burn_in_exponent=self.burn_in_exponent,
        )

    @property
    def all_epochs(self) -> int:
        """Epochs of the refinement included."""
        return self.epochs + self.refinement

    def rate(self, epoch: int) -> float:
        """Return the learning rate of an epoch, counted from 0."""
        if epoch < min(self.burn_in, self.epochs):
            return self.learning_rate * self.burn_in_rate
        start = self.refinement_rate if self.refines(epoch) else self.learning_rate
        return start * (1.0 + self._passed(epoch) * (self.final_rate - 1.0))

    def near(self, epoch: int) -> float:
        """Return the share of near negatives in an epoch, counted from 0."""
        if self.refines(epoch):
            return REFINEMENT_NEAR
        return float(self.near_negatives * self._passed(epoch) ** 2)

    def sharpness_at(self, epoch: int) -> float:
        """Return the factor on distances in an epoch, counted from 0."""
        return self.refinement_sharpness if self.refines(epoch) else self.sharpness

    def refines(self, epoch: int) -> bool:
        """Tell whether an epoch, counted from 0, is one of the refinement."""
        return self.refinement > 0 and epoch >= self.epochs

    def _passed(self, epoch: int) -> float:
        """Return the part that is over of the time after the burn-in, or of the refinement."""
        if self.refines(epoch):
            return (epoch - self.epochs) / self.refinement
        return max(0, epoch - self.burn_in) / max(1, self.epochs - self.burn_in)
