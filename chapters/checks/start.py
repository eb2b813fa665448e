"""Checkers of the first page."""

from exercises import as_number, checker, close


@checker("start-noise")
def noise_share(answer):
    """What α = 0 calls noise on the tumours: 0.232 of the variance of the target, 0.482 of its standard deviation."""
    share = as_number(answer)
    if close(share, 0.482, rtol=0.01):
        return "That is the noise as a standard deviation. Variances add up, standard deviations do not: square it."
    if close(share, 23.2, rtol=0.02):
        return "Right in percent. Give it as a fraction, a number between 0 and 1."
    if close(share, 1 - 0.232, rtol=0.01):
        return "That is the rest: the part that the curve explains."
    if not 0 < share < 1:
        return "A share of the variance lies between 0 and 1."
    if not close(share, 0.232, rtol=0.02):
        return ("That is not it. The target has standard deviation 1 here, so that the noise variance, `models[0.0].noise`, "
                "is already the share.")
