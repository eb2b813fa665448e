"""Studies and pictures of the book itself."""
