"""The verb completion: a script with which a shell completes what is typed."""

import argparse

from hf_dxprivacy.cli.arguments import Parser
from hf_dxprivacy.cli.terminal import PROGRAM

SHELLS = ("bash", "zsh", "fish")
# What values are, by the name that the usage has for them.
_FILES = "INPUT OUT FILE PATH ORIGINAL RELEASED VECTORS RELEASE|FOLDER english|none|FILE".split()
_SPACES = ("space", "pool", "encoder")


def completion_arguments(parser: Parser) -> None:
    """Declare the arguments."""
    parser.usage = "%(prog)s SHELL"
    parser.add("shell", "SHELL", ", ".join(SHELLS), choices=SHELLS)


def completion(args: argparse.Namespace) -> None:
    """Print a script that lets the Tab key complete verbs, options and their values.

      # bash, for new shells
      hf-dxprivacy completion bash > ~/.local/share/bash-completion/completions/hf-dxprivacy

      # zsh; ~/.zfunc must be in fpath before compinit is called
      hf-dxprivacy completion zsh > ~/.zfunc/_hf-dxprivacy

      # fish
      hf-dxprivacy completion fish > ~/.config/fish/completions/hf-dxprivacy.fish

    To try it in this shell only: eval "$(hf-dxprivacy completion bash)". Print it again after an
    upgrade.
    """
    import shtab

    print(shtab.complete(_whole_parser(), args.shell))


def _whole_parser() -> argparse.ArgumentParser:
    """Return a parser of all verbs."""
    from hf_dxprivacy.cli.main import VERBS, parser_of
    from hf_dxprivacy.hub import builtin_names, builtin_pools

    whole = argparse.ArgumentParser(PROGRAM)
    verbs = whole.add_subparsers(parser_class=Parser)
    for verb in VERBS:
        _say_what_values_are(parser_of(verb, verbs), [*builtin_names(), *builtin_pools()])
    return whole


def _say_what_values_are(parser: argparse.ArgumentParser, spaces: list[str]) -> None:
    """Tell the options of a parser, and of those within it, what their values are."""
    import shtab

    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for within in action.choices.values():
                _say_what_values_are(within, spaces)
        elif action.dest in _SPACES:
            action.choices = spaces
        elif action.metavar in (*_FILES, "FOLDER"):
            kind = shtab.DIRECTORY if action.metavar == "FOLDER" else shtab.FILE
            action.complete = kind  # type: ignore[attr-defined]
