"""The documents make a site: no link, anchor or place in its order is missing, no page needs a network."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
LOADED = re.compile(r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="((?:https?:)?//[^"]+)"')
OF_A_STYLE = re.compile(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')]+)")


def build(root: Path, into: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(into)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


def test_the_site_is_whole_and_loads_nothing_from_the_network(tmp_path: Path):
    answer = build(ROOT, tmp_path)
    assert answer.returncode == 0, answer.stderr
    pages = {path: path.read_text() for path in tmp_path.rglob("*.html")}
    assert len(pages) > 25
    assert [(path.name, url) for path, text in pages.items() for url in LOADED.findall(text)] == []
    assert '<span class="filename">rules.yaml</span>' in pages[tmp_path / "index.html"]
    # the search of pages that are opened as files: `make browser` tries it
    assert (tmp_path / "search" / "search_index.js").read_text().startswith("var __index = {")
    assert '<script src="docs/iframe-worker.js"></script>' in pages[tmp_path / "index.html"]
    assert (tmp_path / "docs" / "iframe-worker.js").is_file()
    assert [path.name for path, text in pages.items() if "```" in text] == []
    styles = [path.read_text() for path in tmp_path.rglob("*.css")]
    assert styles and [url for text in styles for url in OF_A_STYLE.findall(text)] == []


def test_what_is_missing_fails_the_site(tmp_path: Path):
    root = tmp_path / "repository"
    for folder in ("docs", "conf", "examples/pairs", "examples/logs"):
        shutil.copytree(ROOT / folder, root / folder)
    for path in (ROOT / "mkdocs.yml", *ROOT.glob("*.md")):
        shutil.copy(path, root)
    links = ("gone.md", "../spark_pace/gone.py", "rules.md#lost", "../README.md#lost")
    text = "\n".join(f"- [lost]({link})" for link in links)
    (root / "docs" / "new.md").write_text(f"# New\n\n{text}\n")
    with (root / "README.md").open("a") as document:
        document.write("\n[lost](docs/python.md#lost)\n")
    answer = build(root, tmp_path / "site")
    assert answer.returncode != 0
    assert "- docs/new.md" in answer.stderr
    assert [link for link in (*links, "docs/python.md#lost") if f"'{link}'" not in answer.stderr] == []
