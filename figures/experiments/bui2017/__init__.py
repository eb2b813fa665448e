"""The studies and drawings of bui2017, what measures its claims, and what they share."""
