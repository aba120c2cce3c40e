"""Fine-tune a classifier on privatized texts, and test it on plain ones.

python examples/train_classifier.py reviews.csv distilbert/distilbert-base-uncased --epsilon 1.5
"""

from argparse import ArgumentParser

import transformers
from datasets import load_dataset

from hf_dxprivacy import DxPrivatizer

parser = ArgumentParser(description="Fine-tune on privatized texts, test on plain ones.")
parser.add_argument("data", help="a csv file with the columns text and label")
parser.add_argument("model", help="a model of transformers")
parser.add_argument("--epsilon", type=float, default=1.5)
parser.add_argument("--epochs", type=float, default=3)
parser.add_argument("--learning-rate", type=float, default=5e-5)
options = parser.parse_args()

rows = load_dataset("csv", data_files=options.data, split="train").class_encode_column("label")
parts = rows.train_test_split(0.2, stratify_by_column="label", seed=0)
privatizer = DxPrivatizer("english", "hierarchical", options.epsilon)
parts["train"] = parts["train"].map(privatizer, batched=True)

tokenizer = transformers.AutoTokenizer.from_pretrained(options.model)
parts = parts.map(lambda batch: tokenizer(batch["text"], truncation=True), batched=True)
model = transformers.AutoModelForSequenceClassification.from_pretrained(
    options.model, num_labels=rows.features["label"].num_classes
)
settings = {"num_train_epochs": options.epochs, "learning_rate": options.learning_rate}
arguments = transformers.TrainingArguments("classifier", report_to="none", **settings)
trainer = transformers.Trainer(model, arguments, None, parts["train"], processing_class=tokenizer)
trainer.train()
found = trainer.predict(parts["test"])
accuracy = (found.predictions.argmax(1) == found.label_ids).mean()
print(privatizer.guarantee, f"accuracy on plain texts: {accuracy:.2f}", sep="\n")
