"""Decides what keeps a checkout from being released; what it is asked about is read by ``__main__``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_SECTION = re.compile(
    r"^## (?P<title>\S+)(?: \((?P<note>[^)]*)\))?\n(?P<text>.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE
)
PLACEHOLDER = "(address to be filled in by the owner of the project)"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of ``CHANGELOG.md``.

    Attributes:
        title: A version, or ``Unreleased``.
        note: What stands in parentheses: the day of the release, or that there was none.
        text: What is below the heading.
    """

    title: str
    note: str
    text: str

    @property
    def is_released(self) -> bool:
        """Whether the heading has the day of the release."""
        return _DATE.fullmatch(self.note) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """What is about to be released.

    Attributes:
        version: As ``pyproject.toml`` has it.
        tags: Of the commit that is checked out.
        changed: Files that differ from the commit, and those that it does not have.
        changelog: The text of ``CHANGELOG.md``.
        security: The text of ``SECURITY.md``.
        signers: The keys that users accept.
        signs: True if a key or ``--unsigned`` was passed.
    """

    version: str
    tags: Sequence[str]
    changed: Sequence[str]
    changelog: str
    security: str = ""
    signers: str = ""
    signs: bool = False


def sections(changelog: str) -> list[Section]:
    """Return the sections of a changelog, newest first."""
    return [
        Section(title=each["title"], note=each["note"] or "", text=each["text"].strip())
        for each in _SECTION.finditer(changelog)
    ]


def unreleased(changelog: str) -> str:
    """Return what the changelog says above the newest version, released or prepared."""
    return "\n".join(each.text for each in sections(changelog) if each.title == "Unreleased")


def refusals(checkout: Checkout) -> list[str]:
    """Return each thing that keeps this checkout from being released, and what to do about it."""
    version, tag = checkout.version, f"v{checkout.version}"
    found: list[str] = []
    if checkout.changed:
        found.append(f"the tree differs from the commit: {', '.join(checkout.changed)}; commit or remove what differs")
    if tag not in checkout.tags:
        others = f"its tags are {', '.join(checkout.tags)}" if checkout.tags else "it has no tag"
        found.append(f"pyproject.toml says {version}, so the commit must have the tag {tag}; {others}")
    own = next((each for each in sections(checkout.changelog) if each.title == version), None)
    if own is None:
        found.append(f"CHANGELOG.md has no section {version}; write `## {version} (YYYY-MM-DD)` and what changed")
    elif not own.is_released:
        found.append(f"CHANGELOG.md has no day for {version}; write `## {version} (YYYY-MM-DD)`")
    if unreleased(checkout.changelog):
        found.append(f"CHANGELOG.md has changes below Unreleased; they are part of {version}: move them there")
    if PLACEHOLDER in checkout.security:
        found.append("SECURITY.md has no address; replace the placeholder with the owner's")
    if not re.search(r"^deltaloop .*ssh-", checkout.signers, re.MULTILINE):
        found.append("tools/release/allowed_signers has no key; add the owner's public key")
    if not checkout.signs:
        found.append("nothing signs the checksums; pass --key FILE, or --unsigned where the owner signs elsewhere")
    return found
