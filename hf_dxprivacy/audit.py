"""Names that moved: `hf_dxprivacy.verify` has the verifiers, `hf_dxprivacy.evaluation` attacks."""

from hf_dxprivacy._lazy import moved

_VERIFIERS = (
    "ClaimCheck",
    "GuaranteeCheck",
    "WorkersCheck",
    "verify_claim",
    "verify_companions",
    "verify_guarantee",
    "verify_workers",
)
_ATTACKS = (
    "Attribution",
    "BayesAdversary",
    "BigramModel",
    "MaskedWordModel",
    "Reconstruction",
    "author_attribution",
    "averaging",
    "membership_inference",
    "reconstruct_texts",
    "reconstruction",
    "user_audit",
)

__getattr__ = moved(
    __name__,
    dict.fromkeys(_VERIFIERS, "hf_dxprivacy.verify")
    | dict.fromkeys(_ATTACKS, "hf_dxprivacy.evaluation"),
)
