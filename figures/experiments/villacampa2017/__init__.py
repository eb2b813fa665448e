"""The studies and drawings of villacampa2017, what measures its claims, and what they share."""
