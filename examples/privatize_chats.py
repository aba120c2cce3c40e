"""Privatize what users said in chats, one JSON object with "messages" a line.

python examples/privatize_chats.py chats.jsonl released.jsonl --role user --epsilon 1.5
"""

import argparse

from datasets import load_dataset

from hf_dxprivacy import DxPrivatizer, publishable


def main() -> None:
    """Read, privatize, write, and print the guarantee and the first chat."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("input", help="a jsonl file")
    parser.add_argument("output", help="a jsonl file")
    parser.add_argument("--role", nargs="+", default=["user"], help="other roles stay as they are")
    parser.add_argument("--epsilon", type=float, default=1.5)
    options = parser.parse_args()

    chats = load_dataset("json", data_files=options.input, split="train")
    privatizer = DxPrivatizer.from_pretrained(
        "english",
        mechanism="hierarchical",
        epsilon=options.epsilon,
        text_column="messages[].content",
        roles=options.role,
    )
    released = publishable(chats.map(privatizer, batched=True), privatizer)
    released.to_json(options.output, force_ascii=False)
    print(privatizer.guarantee)
    for message in released[0]["messages"]:
        print(f"{message['role']}: {message['content']}")


if __name__ == "__main__":
    main()
