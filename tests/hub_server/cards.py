"""The checks that the Hub makes of a card's YAML header, as far as our cards touch them."""

import re
from typing import Any

import yaml

BLOCK = re.compile(r"\s*---(?:\r\n|\r|\n)(.*?)(?:\r\n|\r|\n)---[ \t]*(?:\r\n|\n|$)", re.DOTALL)
REPO_ID = re.compile(r"(?:[\w-]+/)?[\w.-]+")

# As the Hub lists them when it refuses one (huggingface_hub issue 4218, May 2026).
LICENSES = """
apache-2.0 mit openrail bigscience-openrail-m creativeml-openrail-m bigscience-bloom-rail-1.0
bigcode-openrail-m afl-3.0 artistic-2.0 bsl-1.0 bsd bsd-2-clause bsd-3-clause bsd-3-clause-clear
c-uda cc cc0-1.0 cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0
cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nd-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0
cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cdla-sharing-1.0 cdla-permissive-1.0 cdla-permissive-2.0 wtfpl
ecl-2.0 epl-1.0 epl-2.0 etalab-2.0 eupl-1.1 eupl-1.2 agpl-3.0 gfdl gpl gpl-2.0 gpl-3.0 lgpl lgpl-2.1
lgpl-3.0 isc h-research intel-research lppl-1.3c ms-pl apple-ascl apple-amlr mpl-2.0 odc-by odbl
openmdw-1.0 openrail++ osl-3.0 postgresql ofl-1.1 ncsa unlicense zlib pddl lgpl-lr
deepfloyd-if-license fair-noncommercial-research-license llama2 llama3 llama3.1 llama3.2 llama3.3
llama4 grok2-community gemma unknown other
""".split()


SIZES = "n<1K 1K<n<10K 10K<n<100K 100K<n<1M 1M<n<10M 10M<n<100M 100M<n<1B n>1B".split()


def check_card(content: str, kind: str = "model") -> tuple[list[str], list[str]]:
    """Return what the Hub refuses in a README of a model or a dataset, and what it warns of."""
    block = BLOCK.match(content)
    if block is None:
        return [], ["empty or missing yaml metadata in repo card"]
    try:
        header = yaml.safe_load(block[1])
    except yaml.YAMLError as error:
        return [f"YAML metadata error: {error}"], []
    if header is None:
        return [], ["empty or missing yaml metadata in repo card"]
    if not isinstance(header, dict):
        return ['"metadata" must be of type object'], []
    errors = _license(header) + _language(header) + _tags(header) + _sources(header)
    return errors + (_dataset(header) if kind == "dataset" else []), []


def _listed(header: dict[str, Any], key: str) -> list[tuple[str, Any]]:
    """Return the values of a key that holds one or many, with the names that errors give them."""
    value = header.get(key, [])
    if isinstance(value, list):
        return [(f'"{key}[{index}]"', item) for index, item in enumerate(value)]
    return [(f'"{key}"', value)]


def _license(header: dict[str, Any]) -> list[str]:
    wrong = [name for name, value in _listed(header, "license") if value not in LICENSES]
    return [f"{name} must be one of [{', '.join(LICENSES)}, array]" for name in wrong]


def _language(header: dict[str, Any]) -> list[str]:
    special = ("code", "multilingual")
    return [
        f'{name} with value "{value}" is not valid. It must be an ISO 639-1, 639-2 or 639-3 code '
        '(two/three letters), or a special value like "code", "multilingual". If you want to use '
        "BCP-47 identifiers, you can specify them in language_bcp47."
        for name, value in _listed(header, "language")
        if value not in special and not re.fullmatch("[a-z]{2,3}", str(value))
    ]


def _tags(header: dict[str, Any]) -> list[str]:
    tags = header.get("tags", [])
    if not isinstance(tags, list):
        return ['"tags" must be an array']
    wrong = [index for index, tag in enumerate(tags) if not isinstance(tag, str)]
    return [f'"tags[{index}]" must be a string' for index in wrong]


def _dataset(header: dict[str, Any]) -> list[str]:
    """Check what the headers of datasets have, as https://huggingface.co/docs/hub says."""
    errors = [
        f"{name} must be one of [{', '.join(SIZES)}]"
        for name, value in _listed(header, "size_categories")
        if value not in SIZES
    ]
    for name, config in _listed(header, "configs"):
        files = config.get("data_files") if isinstance(config, dict) else None
        if not files or not isinstance(config.get("config_name"), str):
            errors.append(f"{name} must have a config_name and data_files")
        elif not all({"split", "path"} == {*file} for file in files):
            errors.append(f"{name}.data_files must have split and path")
    return errors


def _sources(header: dict[str, Any]) -> list[str]:
    return [
        f'{name} with value "{value}" is not valid. Use the id of a repository on the Hub.'
        for key in ("base_model", "datasets")
        for name, value in _listed(header, key)
        if not REPO_ID.fullmatch(str(value))
    ]
