"""Write the address of the repository where it belongs: once, when the repository has one.

::

    python .github/address.py https://github.com/OWNER/REPOSITORY

The project's URLs in ``pyproject.toml``, ``CITATION.cff`` and the site, whole links in the README,
which package indexes show too, and a badge on top of each notebook, which opens it in Colab. What
names an address already is left as it is, so that the release workflow can run this too.
"""

import json
import re
import sys
from pathlib import Path

BADGE = "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]({colab}/{notebook})"
SETUP = """import sys

if "google.colab" in sys.modules:
    !git clone -q --depth 1 {address} posrag
    %cd posrag
    %pip install -q -e ".[langchain,models,eval]" langchain-text-splitters
    %cd notebooks"""


def main(address: str) -> None:
    """Write `address` into the files of the folder that this runs in."""
    pages = {"Source": "", "Issues": "/issues", "Changelog": "/blob/main/CHANGELOG.md"}
    urls = "".join(f'{name} = "{address}{path}"\n' for name, path in pages.items())
    append("pyproject.toml", "[project.urls]", f"\n[project.urls]\n{urls}")
    append("CITATION.cff", "repository-code:", f"repository-code: {address}\n")
    append("mkdocs.yml", "repo_url:", f"repo_url: {address}\n")
    readme = Path("README.md")
    text = re.sub(r"(!\[[^]]*\]\()(?!http)", rf"\1{address}/raw/main/", readme.read_text("utf-8"))
    text = re.sub(r"(\]\()(?!http|#)", rf"\1{address}/blob/main/", text)
    readme.write_text(text, "utf-8")
    colab = address.replace("https://github.com", "https://colab.research.google.com/github")
    for file in Path("notebooks").glob("*.ipynb"):
        notebook = json.loads(file.read_text("utf-8"))
        if "colab-badge" in "".join(notebook["cells"][0]["source"]):
            continue
        badge = BADGE.format(colab=f"{colab}/blob/main/notebooks", notebook=file.name)
        setup = SETUP.format(address=address)
        notebook["cells"] = [
            cell("markdown", "badge", badge),
            {**cell("code", "colab", setup), "execution_count": None, "outputs": []},
            *notebook["cells"],
        ]
        file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


def cell(kind: str, name: str, text: str) -> dict[str, object]:
    """Return a cell of a notebook, without outputs."""
    lines = text.splitlines(keepends=True)
    return {"cell_type": kind, "id": name, "metadata": {}, "source": lines}


def append(file: str, sign: str, text: str) -> None:
    """Add `text` to a file that does not contain `sign`."""
    path = Path(file)
    before = path.read_text("utf-8")
    if sign not in before:
        path.write_text(before + text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1].rstrip("/"))
