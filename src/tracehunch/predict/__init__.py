"""Prediction: what a trace should show, before it exists; neither a GPU nor torch is needed.

`environment` says where a call runs, `sdpa` which backend PyTorch picks and why not another.
"""
