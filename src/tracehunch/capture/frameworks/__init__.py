"""Callbacks of training frameworks: each a thin wrapper on ``TrainingRecorder``.

A framework is imported in functions only, when a callback is made. Users call ``tracehunch.callbacks``.
"""
