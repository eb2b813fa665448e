"""Compare the committed outputs of the chapters with those that `make book` has computed, by nbval's own comparison.

nbval executes each notebook a second time. The build has just executed all of them, with the same package and in new
kernels, so `pytest --nbval-built tests chapters` takes the outputs from the build's cache. All else is nbval's: what it
collects, and when it calls outputs different.
"""

import copy

import build_book
import pytest
from nbval.plugin import IPyNbCell, IPyNbFile, coalesce_streams


def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".ipynb" and parent.config.getoption("nbval_built"):
        return BuiltNotebook.from_parent(parent, path=file_path)
    return None


class BuiltNotebook(IPyNbFile):
    """A notebook whose cells were executed by the build; it needs no kernel."""

    def collect(self):
        for cell in super().collect():
            yield BuiltCell.from_parent(self, name=cell.name, cell_num=cell.cell_num, cell=cell.cell, options=cell.options)

    def setup(self):
        from jupyter_cache import get_cache

        if not build_book.is_current():
            pytest.skip("the site was not built from the present sources: run `make book` first")
        _, executed = get_cache(build_book.CACHE).merge_match_into_notebook(copy.deepcopy(self.nb))
        self.built = [cell.outputs for cell in executed.cells if cell.cell_type == "code"]


class BuiltCell(IPyNbCell):
    """One cell: what the build computed must be what is committed."""

    def runtest(self):
        if self.options["skip"]:
            pytest.skip("have the tag nbval-skip")
        built = coalesce_streams(self.parent.built[self.cell_num])
        if self.options["check"] and not self.compare_outputs(built, coalesce_streams(self.cell.outputs)):
            self.raise_cell_error("Cell outputs differ", "\n".join(self.comparison_traceback))
