"""What the tests of the planner share."""

import json
import tempfile
import unittest
from pathlib import Path


class FolderTest(unittest.TestCase):
    """A test with a folder of its own, and configs in it."""

    longMessage = True

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def config(self, content, name="config.json"):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path
