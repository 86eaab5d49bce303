"""Reports as one HTML file that opens from disk: nothing in it comes from elsewhere, nothing leaves it."""
