"""The studies behind the figures: the runner, the ledger of claims, and a folder for each paper.

A new study is a module in the folder of its paper (`book` for those of no paper) and a line in `studies.STUDIES`;
`studies` says what such a module holds.
"""
