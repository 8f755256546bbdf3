"""What the package is to its users."""

import subprocess
import sys


def test_without_the_framework_the_import_says_how_to_install_it() -> None:
    program = """
import sys
sys.modules["llama_index"] = None
import llamaindex_posrag
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert run.stderr.splitlines()[-1] == (
        "shared_core.errors.MissingExtraError: llama_index is not installed; "
        "run: pip install 'posrag[llamaindex]'"
    )
