"""Runs the notebooks of examples/notebooks from top to bottom, as a reader would: their cells assert what they say."""
import pathlib
import tempfile
import unittest

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples/notebooks"
TIMEOUT_S = 300  # of a cell


class TestNotebooks(unittest.TestCase):
    def test_all(self):
        paths = sorted(FOLDER.glob("*.ipynb"))
        self.assertTrue(paths)
        for path in paths:
            with self.subTest(path.name), tempfile.TemporaryDirectory() as folder:
                book = nbformat.read(path, as_version=4)
                nbformat.validate(book)
                stored = [cell.get("outputs", []) for cell in book.cells]
                NotebookClient(book, timeout=TIMEOUT_S, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
                for cell, outputs in zip(book.cells, stored):
                    # What is shown in the repository was made by these cells: as many outputs, of the same kinds.
                    self.assertEqual([o.output_type for o in cell.get("outputs", [])], [o.output_type for o in outputs], cell.source)

    def test_a_cell_that_fails_is_a_failure(self):
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("assert 1 == 2")])
        with self.assertRaises(CellExecutionError):
            NotebookClient(book, timeout=TIMEOUT_S, kernel_name="python3").execute()


if __name__ == "__main__":
    unittest.main()
