"""The checkers of the exercises: one module per chapter, named after the prefix of its exercises; `declared` serves all."""
