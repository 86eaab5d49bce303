"""Guesses: what somebody expects of a trace. Claims, hunch.toml, and the baseline of an earlier trace."""

from tracehunch.guess.model import Claim, Confidence, Guess, Relation, Who

__all__ = ["Claim", "Confidence", "Guess", "Relation", "Who"]
