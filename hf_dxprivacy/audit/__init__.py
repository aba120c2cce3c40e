"""Verification of guarantees, and attacks on released text."""

from hf_dxprivacy.audit.adversary import BayesAdversary
from hf_dxprivacy.audit.attribution import Attribution, author_attribution
from hf_dxprivacy.audit.bigrams import BigramModel
from hf_dxprivacy.audit.check import GuaranteeCheck
from hf_dxprivacy.audit.companions import verify_companions
from hf_dxprivacy.audit.masked_words import MaskedWordModel
from hf_dxprivacy.audit.reconstruction import (
    Reconstruction,
    averaging,
    reconstruct_texts,
    reconstruction,
)
from hf_dxprivacy.audit.release_claims import ClaimCheck, verify_claim
from hf_dxprivacy.audit.shadow import membership_inference, user_audit
from hf_dxprivacy.audit.verify import verify_guarantee
from hf_dxprivacy.audit.workers import WorkersCheck, verify_workers

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
