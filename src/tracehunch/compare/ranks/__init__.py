"""All ranks of a job in one report: who waits for whom, what is exposed, and which rank is unlike others."""

from tracehunch.compare.ranks.together import compare

__all__ = ["compare"]
