"""Data sets by name: found on disk, fetched or generated, verified, split and standardised.

`load("boston")` looks in the folder that the environment variable PEPCORE_DATA names, then in the folder `data` of a
checkout, then in the user's cache, then fetches the set from its public origin. In each case the values are verified
before you see them. Synthetic problems come from `pepcore.datasets.generators`, and are re-exported here.
"""

from pepcore.datasets.catalogue import DataError, Dataset, Info, registry
from pepcore.datasets.generators import banana, chain_1d, factors, snelson_like, stream, toy_ard_gp
from pepcore.datasets.loading import DataNotFoundError, load, location_scale, official_split, splits, standardise

__all__ = [
    "DataError", "DataNotFoundError", "Dataset", "Info", "banana", "chain_1d", "factors", "load", "location_scale",
    "official_split", "registry", "snelson_like", "splits", "standardise", "stream", "toy_ard_gp",
]
