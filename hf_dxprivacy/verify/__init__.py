"""Verification of guarantees: exactly where the law is known, else by draws; nothing is trusted."""

from hf_dxprivacy.verify.check import GuaranteeCheck
from hf_dxprivacy.verify.companions import verify_companions
from hf_dxprivacy.verify.laws import verify_guarantee
from hf_dxprivacy.verify.release_claims import ClaimCheck, verify_claim
from hf_dxprivacy.verify.workers import WorkersCheck, verify_workers

__all__ = [
    "ClaimCheck",
    "GuaranteeCheck",
    "WorkersCheck",
    "verify_claim",
    "verify_companions",
    "verify_guarantee",
    "verify_workers",
]
