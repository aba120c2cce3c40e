"""Privatize a column of texts in a csv file, and save the rows that may be published.

python examples/map_dataset.py reviews.csv released --column text --epsilon 1.5
"""

import argparse

from datasets import load_dataset

from hf_dxprivacy import DxPrivatizer, publishable


def main() -> None:
    """Read, privatize, save, and print the guarantee and a few rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("input", help="a csv file")
    parser.add_argument("output", help="a folder, for load_from_disk")
    parser.add_argument("--column", default="text")
    parser.add_argument("--epsilon", type=float, default=1.5)
    options = parser.parse_args()

    rows = load_dataset("csv", data_files=options.input, split="train")
    privatizer = DxPrivatizer.from_pretrained(
        "english",
        mechanism="hierarchical",
        epsilon=options.epsilon,
        text_column=options.column,
    )
    mapped = rows.map(privatizer, batched=True, num_proc=min(2, len(rows)))
    released = publishable(mapped, privatizer)
    released.save_to_disk(options.output)
    print(privatizer.guarantee)
    for text in released[:3][options.column]:
        print("-", text)


if __name__ == "__main__":
    main()
