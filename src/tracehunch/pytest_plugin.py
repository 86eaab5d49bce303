"""pytest fixture and marker that hold a trace of a test against what was guessed."""
