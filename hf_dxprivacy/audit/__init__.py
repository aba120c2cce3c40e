"""Verification of guarantees, and attacks on released text."""

from hf_dxprivacy.evaluation.adversary import BayesAdversary
from hf_dxprivacy.evaluation.attribution import Attribution, author_attribution
from hf_dxprivacy.evaluation.bigrams import BigramModel
from hf_dxprivacy.evaluation.masked_words import MaskedWordModel
from hf_dxprivacy.evaluation.reconstruction import (
    Reconstruction,
    averaging,
    reconstruct_texts,
    reconstruction,
)
from hf_dxprivacy.evaluation.shadow import membership_inference, user_audit
from hf_dxprivacy.verify.check import GuaranteeCheck
from hf_dxprivacy.verify.companions import verify_companions
from hf_dxprivacy.verify.laws import verify_guarantee
from hf_dxprivacy.verify.release_claims import ClaimCheck, verify_claim
from hf_dxprivacy.verify.workers import WorkersCheck, verify_workers

__all__ = [
    "Attribution",
    "BayesAdversary",
    "BigramModel",
    "ClaimCheck",
    "GuaranteeCheck",
    "MaskedWordModel",
    "Reconstruction",
    "WorkersCheck",
    "author_attribution",
    "averaging",
    "membership_inference",
    "reconstruct_texts",
    "reconstruction",
    "user_audit",
    "verify_claim",
    "verify_companions",
    "verify_guarantee",
    "verify_workers",
]
