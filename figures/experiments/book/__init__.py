"""The studies and pictures that belong to no paper."""
