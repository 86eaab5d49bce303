"""The cell magic that asks for a guess before it runs the cell."""
