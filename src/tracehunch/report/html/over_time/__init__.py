"""A run over time on a page: what changed, with pictures of its series; what did not; what was read."""

from tracehunch.report.html.over_time.changes import changes_section
from tracehunch.report.html.over_time.rest import files_section, rest_section, warnings_section

__all__ = ["changes_section", "files_section", "rest_section", "warnings_section"]
