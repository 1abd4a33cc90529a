"""What the site shows beside the pages of docs/, for mkdocs (`hooks` in mkdocs.yml).

- A page for each folder of crates/observe/diagnosis/causes: its page.md under its title, with its messages.
- A list of the decisions and of the schemas, and the pages of the repository's root.
- Links: a path of the repository becomes the page of the site; a file that is no page becomes its plain path. A path
  that does not exist ends the build. The id of a cause in code becomes a link to the cause.
"""

import json
import posixpath
import re
from pathlib import Path

import yaml
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
CAUSES = "crates/observe/diagnosis/causes"
LIST_OF_CAUSES = "reference/causes.md"
FAMILIES = "crates/observe/diagnosis/families.txt"
OF_THE_ROOT = ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]
ASSETS = ["site.css", "site.js", "iframe-worker.js"]
# Without a place in cause.yaml, a cause stands behind all others (CONTRIBUTING.md).
LAST = 1 << 30

FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2 *$", re.S | re.M)
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
CODE = re.compile(r"(?<![\[`])`(ullage explain )?([a-z0-9-]+)`(?!`)")


def causes():
    """Each cause by its id: cause.yaml, and whether a rule detects it in a recording."""
    found = {}
    for folder in sorted((ROOT / CAUSES).iterdir()):
        cause = yaml.safe_load((folder / "cause.yaml").read_text(encoding="utf-8"))
        found[folder.name] = {**cause, "rule": (folder / "rule.rs").exists()}
    if len(found) < 80:
        raise PluginError(f"only {len(found)} causes in {CAUSES}")
    return found


def families():
    lines = (ROOT / FAMILIES).read_text(encoding="utf-8").splitlines()
    return dict(line.split(maxsplit=1) for line in lines if line.strip())


KNOWN = causes()
DECISIONS = sorted(path.name for path in (ROOT / "docs/decisions").glob("[0-9]*.md"))
# Paths of the repository, and the pages of the site that show them.
SHOWN = {
    "README.md": "README.md",
    "docs/decisions": "decisions/index.md",
    "docs/schema": "schema/index.md",
    **{name: name for name in OF_THE_ROOT},
    **{f"{CAUSES}/{cause}/page.md": f"causes/{cause}.md" for cause in KNOWN},
}
PLACES = {page: path for path, page in SHOWN.items() if page != "README.md"}


def on_config(config):
    def filled(entry):
        ((title, place),) = entry.items()
        if place == "causes/":
            return {title: [{"All causes": LIST_OF_CAUSES}, *nav_of_causes()]}
        if isinstance(place, list):
            return {title: [filled(one) for one in place]}
        if place == "decisions/":
            return {title: [{"All decisions": "decisions/index.md"}, *(f"decisions/{name}" for name in DECISIONS)]}
        return entry

    config.nav = [filled(entry) for entry in config.nav]
    return config


def nav_of_causes():
    for family, title in families().items():
        members = [cause for cause in KNOWN if KNOWN[cause]["family"] == family]
        members.sort(key=lambda cause: (KNOWN[cause].get("place", LAST), cause))
        yield {title: [{cause: f"causes/{cause}.md"} for cause in members]}


def on_files(files, config):
    def add(path, content):
        files.append(File.generated(config, path, content=content))

    for name in ASSETS:
        add(f"assets/{name}", (ROOT / "packaging/site" / name).read_text(encoding="utf-8"))
    for name in OF_THE_ROOT:
        add(name, (ROOT / name).read_text(encoding="utf-8"))
    for cause in KNOWN:
        add(f"causes/{cause}.md", cause_page(cause))
    add("decisions/index.md", list_of_decisions())
    add("schema/index.md", list_of_schemas())
    return files


def cause_page(cause):
    facts = KNOWN[cause]
    text = (ROOT / CAUSES / cause / "page.md").read_text(encoding="utf-8")
    heading, _, body = text.partition("\n")
    if heading.strip() != f"# {cause}":
        raise PluginError(f"{CAUSES}/{cause}/page.md does not begin with its id")
    how = "A run under ullage detects it." if facts["rule"] else "Known from messages in logs; no run detects it."
    page = f"---\ntitle: {json.dumps(facts['title'])}\n---\n# {facts['title']}\n\n`{cause}` · {how}\n{body}"
    messages = facts.get("messages", [])
    if messages:
        page += "\n## Messages\n`ullage explain FILE` names this cause first for these lines.\n"
    for message in messages:
        page += f"\n```text\n{message['example'].rstrip()}\n```\n"
        others = ", ".join(f"`{other}`" for other in message.get("may_also_be", []))
        page += f"\nIt may also be {others}.\n" if others else ""
    return page


def list_of_decisions():
    page = "# Decisions\n\nEach record answers one question: what was decided, why, and what follows.\n\n"
    for name in DECISIONS:
        title = (ROOT / "docs/decisions" / name).read_text(encoding="utf-8").split("\n", 1)[0].lstrip("# ")
        page += f"- [{title}](docs/decisions/{name})\n"
    return page


def list_of_schemas():
    page = "# Schemas\n\nJSON Schemas of what ullage prints for programs.\n\n"
    for path in sorted((ROOT / "docs/schema").glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        page += f"- [{path.name}](docs/schema/{path.name}): {schema.get('title', schema.get('description', ''))}\n"
    return page


def on_page_markdown(markdown, page, config, files):
    here = page.file.src_uri
    if here == "README.md":
        page.meta["hide"] = ["navigation"]
    # Lists that stand above name paths from the root.
    origin = "" if here in ("decisions/index.md", "schema/index.md") else PLACES.get(here, f"docs/{here}")
    pieces, end = [], 0
    for fence in FENCE.finditer(markdown):
        pieces += [prose(markdown[end : fence.start()], here, origin), fence.group()]
        end = fence.end()
    return "".join([*pieces, prose(markdown[end:], here, origin)])


def prose(text, here, origin):
    def link(match):
        words, target, anchor = match[1], match[2], match[3] or ""
        if not target or "://" in target or target.startswith("mailto:"):
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), target))
        shown = SHOWN.get(path) or (path[len("docs/") :] if path.startswith("docs/") else None)
        if not (ROOT / path).exists():
            raise PluginError(f"{origin or here}: the link to {target} leads nowhere")
        if shown is None or shown == "sentences.txt":
            return words if words.strip("`") == path else f"{words} (`{path}`)"
        return f"[{words}]({relative(shown, here)}{anchor})"

    def code(match):
        cause = match[2]
        if cause not in KNOWN or here == f"causes/{cause}.md":
            return match[0]
        return f"[{match[0]}]({relative(f'causes/{cause}.md', here)})"

    lines = LINK.sub(link, text).split("\n")
    return "\n".join(line if line.startswith("#") else CODE.sub(code, line) for line in lines)


def on_post_page(output, page, config):
    """The theme's search has no name for a screen reader."""
    dialog = 'data-md-component="search" role="dialog"'
    if dialog not in output:
        raise PluginError("the theme's search is not where it was: see on_post_page")
    return output.replace(dialog, f'{dialog} aria-label="Search"')


def relative(page, here):
    return posixpath.relpath(page, posixpath.dirname(here) or ".")
