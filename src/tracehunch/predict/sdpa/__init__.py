"""SDPA's dispatcher: which backend PyTorch picks, why not another, and what is known to go wrong."""

from tracehunch.predict.sdpa.call import SdpaCall, sdpa_call
from tracehunch.predict.sdpa.dispatch import across_versions, predict_sdpa
from tracehunch.predict.sdpa.hazards import Hazard, hazards
from tracehunch.predict.sdpa.prediction import BackendAnswer, Rejection, SdpaPrediction
from tracehunch.predict.sdpa.rows import call_from_row, predict_rows
from tracehunch.predict.sdpa.tensor import LAYOUTS, TensorSpec, tensor

__all__ = [
    "LAYOUTS",
    "BackendAnswer",
    "Hazard",
    "Rejection",
    "SdpaCall",
    "SdpaPrediction",
    "TensorSpec",
    "across_versions",
    "call_from_row",
    "hazards",
    "predict_rows",
    "predict_sdpa",
    "sdpa_call",
    "tensor",
]
