"""The study of kuss2005, and what measures its claims."""
