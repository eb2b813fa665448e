"""The studies of csato2002, what measures its claims, and what they share."""
