"""Runs code under PyTorch's profiler. torch is imported here inside functions only, so that reading traces needs none."""
