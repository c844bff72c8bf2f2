"""A hook of MkDocs: the site has the files of the repository under the names they have there.

So the links of README.md and of the documents, which people follow in the repository, are right on the
site too. MkDocs itself takes pages from one folder only, which must not be that of `mkdocs.yml`.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

# what links of the documents may name
SHOWN = (
    *("*.md", "docs/**/*.md", "docs/*.png", "docs/*.js"),
    *("examples/pairs/README.md", "examples/logs/*", "conf/*/*.yaml"),
)
NAMED_FENCE = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Return the files of the theme, and those of the repository in place of those of `docs`."""
    root = Path(config.config_file_path).parent
    for file in list(files):
        if file.src_dir == config.docs_dir:
            files.remove(file)
    for path in sorted({path for pattern in SHOWN for path in root.glob(pattern) if path.is_file()}):
        files.append(File(path.relative_to(root).as_posix(), str(root), config.site_dir, False))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return the page with the name of a file behind a fence as the title of the block."""
    return NAMED_FENCE.sub(r'```\1 title="\2"', markdown)
