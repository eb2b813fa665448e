"""Sparse Power EP: `regression` in closed form for Gaussian noise, `infer` for any other likelihood."""

from pepcore.power_ep.closed_form import add_data, regression
from pepcore.power_ep.iterative import infer

__all__ = ["add_data", "infer", "regression"]
