"""Runs code under PyTorch's profiler. torch is imported inside functions only: reading traces needs none."""
