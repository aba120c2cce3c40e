"""Formatter for pipelines of datatrove."""

from typing import TYPE_CHECKING, Any

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import DxPrivacyError, require_at_least
from hf_dxprivacy.integrations import require_texts_privatizer

require("datatrove", "datatrove")
from datatrove.pipeline.base import PipelineStep  # noqa: E402
from datatrove.utils.batching import batched  # noqa: E402
from datatrove.utils.typeshelper import StatHints  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from datatrove.data import Document

    from hf_dxprivacy.files.job import TextsPrivatizer


class DxFormatter(PipelineStep):  # type: ignore[misc]
    """Pipeline step that privatizes the text of each document, batch by batch.

    Only `document.text` is released under the guarantee. Ids, media and metadata stay IN CLEAR, and
    readers put every other field of a row, with the path of its file, into the metadata.

    Every task draws from a key of its own, so that ranks have independent noise. A task that is run
    again draws other noise: if somebody has seen what the first run wrote, that is a second
    release, and the bounds add up. A privatizer with ``memoize="row"`` makes all runs one release.

    >>> step = DxFormatter(DxPrivatizer("english", "hierarchical", 1.5))
    >>> LocalPipelineExecutor([JsonlReader("in"), step, JsonlWriter("out")], tasks=2).run()

    Args:
        privatizer: A `DxPrivatizer`, `SlotPrivatizer` or `SentencePrivatizer`, whose columns do not
            matter here. One over a stored space pickles to a reference to it, less than 1 kB.
        batch_size: Documents that are privatized at once; a step hands them on when all are done.

    Raises:
        InvalidTypeError: If the privatizer is something else.
        InvalidValueError: If the batch size is below 1.
        MissingExtraError: When this module is imported, if datatrove is not installed.
    """

    # No BaseFormatter: its package imports `regex`, which datatrove alone does not bring.
    type = "✂️ - FORMAT"
    name = "🎲 dχ-privacy"

    def __init__(self, privatizer: "TextsPrivatizer", batch_size: int = 1000) -> None:
        super().__init__()
        require_at_least(1, batch_size=batch_size)
        self.privatizer = require_texts_privatizer(privatizer)
        self.batch_size = batch_size

    def run(
        self, data: "Iterable[Document]", rank: int = 0, world_size: int = 1
    ) -> "Iterator[Document]":
        """Privatize the texts of documents in place.

        Raises:
            InvalidTypeError: If a text is no string. Nothing of its batch is handed on then.
        """
        for batch in batched(data, self.batch_size):
            try:
                with self.track_time("batch"):
                    for document, text in self._released(batch):
                        document.text = text
            except Exception as error:
                # datatrove logs the values of variables on the lines of a traceback, so that none
                # of them may have texts; nor does the message of an error of ours.
                known = isinstance(error, DxPrivacyError)
                problem = error if known else DxPrivacyError(f"unexpected {type(error).__name__}")
                raise problem.with_traceback(None) from None
            for document in batch:
                self.stat_update(StatHints.total)
                yield document

    def _released(self, batch: "list[Document]") -> "Iterator[tuple[Document, Any]]":
        texts = self.privatizer.privatize([document.text for document in batch])
        return zip(batch, texts, strict=True)
