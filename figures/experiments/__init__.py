"""The studies behind the figures: the runner, the ledger of claims, and a folder for each paper."""
