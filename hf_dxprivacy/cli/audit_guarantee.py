"""The check of a guarantee by the verb audit; the docstring is its help."""

import argparse
import json

from hf_dxprivacy.cli.mechanism import given_options, load_space
from hf_dxprivacy.cli.usage import usage


def guarantee(args: argparse.Namespace) -> None:
    """Check that a mechanism keeps its guarantee over the words of a space.

    Exactly, over all pairs of words, for the mechanisms calibrated and tem (--inputs looks at some
    of them only); by draws for the others, which finds faults but can not prove that there are
    none. The exit code is 1 if the guarantee is broken.

    Raises:
        DxPrivacyError: If there is no such space, or the guarantee is broken.
    """
    # Late, because they take a while to load, which help should not.
    from hf_dxprivacy.audit import verify_guarantee
    from hf_dxprivacy.errors import InvalidValueError
    from hf_dxprivacy.files import check_output, replacing
    from hf_dxprivacy.mechanisms import create_mechanism
    from hf_dxprivacy.randomness import keyed_generator, process_generator

    space = load_space(args)
    rng = process_generator() if args.seed is None else keyed_generator(args.seed, "audit")
    with usage():
        if args.output:
            check_output(args.output, args.overwrite)
        mechanism = create_mechanism(args.mechanism, space, args.epsilon, **given_options(args))
        found = verify_guarantee(
            mechanism, inputs=args.inputs, draws=args.draws, alpha=args.alpha, rng=rng
        )
    print(found)
    if args.output:
        with replacing(args.output, overwrite=args.overwrite) as file:
            file.write(f"{json.dumps(found.to_dict(), ensure_ascii=False)}\n".encode())
    if not found.passed:
        raise InvalidValueError("the guarantee is broken; see above")
