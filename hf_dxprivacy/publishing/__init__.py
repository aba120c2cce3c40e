"""Released datasets: what is claimed of them, their cards, and the way to the Hub."""

from hf_dxprivacy.publishing.released_dataset import ReleasedDataset

__all__ = ["ReleasedDataset"]
