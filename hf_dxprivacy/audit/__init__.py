"""What an adversary gets, and whether a mechanism keeps what it promises."""

from hf_dxprivacy.audit.adversary import BayesAdversary
from hf_dxprivacy.audit.attribution import Attribution, author_attribution
from hf_dxprivacy.audit.averaging import averaging
from hf_dxprivacy.audit.guarantee import verify_guarantee
from hf_dxprivacy.audit.guarantee_check import GuaranteeCheck
from hf_dxprivacy.audit.masked_words import MaskedWordModel
from hf_dxprivacy.audit.membership import membership_inference
from hf_dxprivacy.audit.reconstruction import Reconstruction, reconstruction
from hf_dxprivacy.audit.subject import Subject
from hf_dxprivacy.audit.texts import reconstruct_texts
from hf_dxprivacy.audit.users import user_audit
from hf_dxprivacy.audit.workers import WorkersCheck, verify_workers

__all__ = [
    "Attribution",
    "BayesAdversary",
    "GuaranteeCheck",
    "MaskedWordModel",
    "Reconstruction",
    "Subject",
    "WorkersCheck",
    "author_attribution",
    "averaging",
    "membership_inference",
    "reconstruct_texts",
    "reconstruction",
    "user_audit",
    "verify_guarantee",
    "verify_workers",
]
