"""Check of a likelihood at the public door: whatever has `log_moment` is one."""

from pepcore.validation import check_part


def check_likelihood(likelihood):
    """The likelihood itself; ValueError for anything without `log_moment`, and for a class in place of its instance."""
    expected = "a likelihood, an object with the method log_moment"
    return check_part(likelihood, hasattr(likelihood, "log_moment"), "likelihood", expected, "Probit() or Gaussian(0.1)")
