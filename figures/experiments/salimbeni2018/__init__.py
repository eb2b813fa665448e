"""The studies and drawings of salimbeni2018, what measures its claims, and what they share."""
