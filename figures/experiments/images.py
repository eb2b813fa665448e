"""Draw the figures of a study into image files."""

import matplotlib.pyplot as plt

from figures.drawing import style
from figures.experiments import runner

FORMATS = (".png", ".svg", ".pdf")


def draw(study, output, figure=None, force=False):
    """Write the study's figures, or the one of the given name, and return the paths.

    Parameters
    ----------
    study : Study
    output : Path
        Of the image; the name of each figure is added to it if there are several.
    figure : str, optional
    force : bool, replace files that are there

    Raises
    ------
    ValueError
        If the study has no figures or none of that name, nothing has been computed yet, the suffix is none of .png, .svg
        and .pdf, or a file is there already and `force` is not set.
    """
    figures = getattr(study.module, "FIGURES", {})
    if not figures:
        raise ValueError(f"study {study.id} has no figures of its own; the chapters draw from {study.file}")
    if figure is not None and figure not in figures:
        raise ValueError(f"study {study.id} has no figure {figure!r}; choose one of: {', '.join(figures)}")
    if output.suffix not in FORMATS:
        raise ValueError(f"{output} must end in one of {', '.join(FORMATS)}")
    if not runner.read_rows(study):
        raise ValueError(f"study {study.id} has no results yet; compute some with: python -m figures run {study.id}")
    names = list(figures) if figure is None else [figure]
    paths = {name: output.with_stem(f"{output.stem}-{name}") if len(names) > 1 else output for name in names}
    there = [str(path) for path in paths.values() if path.exists()]
    if there and not force:
        raise ValueError(f"there already: {', '.join(there)}; give another name, or --force to replace")
    output.parent.mkdir(parents=True, exist_ok=True)
    results = runner.results(study.id)
    for name, path in paths.items():
        drawer, size = figures[name]
        with plt.rc_context():
            style.use()
            fig = plt.figure(figsize=size)
            drawer(fig, results)
            fig.savefig(path)
            plt.close(fig)
    return list(paths.values())
