"""Why the embedded server answers some requests about built-in kinds differently: one row for each class."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from lab.corpus.comparing import Difference
from lab.corpus.outcomes import Outcome
from lab.corpus.requests import Request


@dataclass(frozen=True)
class Row:
    """A reason, and the differences that have it: patterns that match a whole text, or none for any text.

    Attributes:
        reason: Why the answers differ.
        what: What differs (``comparing.py``).
        kind: Plural name of the kind.
        action: What is done, or the name of the mutation.
        where: Path of the mutation.
        at: Path of the difference in the body.
        words: Something in the answer of either server.
    """

    reason: str
    what: str = ".*"
    kind: str = ".*"
    action: str = ".*"
    where: str = ".*"
    at: str = ".*"
    words: str = ""

    def holds(self, request: Request, difference: Difference, ours: Outcome, real: Outcome) -> bool:
        """Tell whether a difference is of this class."""
        texts = (
            (self.what, difference.what),
            (self.kind, request.kind.plural if request.kind is not None else ""),
            (self.action, request.mutation or request.action),
            (self.where, request.where),
            (self.at, difference.at),
        )
        if not all(re.fullmatch(pattern, text) for pattern, text in texts):
            return False
        said = [*(cause.message for cause in (*ours.causes, *real.causes)), real.message, *real.warnings]
        return not self.words or any(re.search(self.words, text) for text in said)


_EMPTY_ITEM: Final = "null as an item|null|an empty item|a small item"
ROWS: Final = (
    Row("the real server panics and closes the connection", "status", words="ServerDisconnected"),
    Row("a null in a list is an item with all defaults for the real server", "fields of causes", action=_EMPTY_ITEM),
    Row("a null in a list is an item with all defaults for the real server", "body", action=_EMPTY_ITEM, at=r".*\]"),
    Row("of two types of one volume, others are looked into", "fields of causes", "persistentvolumes|volumeattach.*"),
    Row("schemas of definitions have a corpus of their own", kind="customresourcedefinitions"),
    Row("an empty list is no list", "verdict", "horizontalpodautoscalers|resourceclaimtemplates|pods"),
    Row("a node port beside the range is refused in a dry run, too", "verdict", "services", words="valid range"),
    Row("addresses and ports of a dry run are other ones", "body", "services", at=r".*(clusterIPs?|nodePort)\W*.*"),
    Row("the corpus asks the embedded server without a user", "body", "certificatesigningrequests", at=r"\.spec\..*"),
    Row("a request for a certificate is parsed before it is checked", "status|fields.*", "certificatesigning.*"),
    Row("the count of changes goes otherwise where a default or a time is set", "body", at=r"\.metadata\.generation"),
    Row("who owns an empty list or struct, or a default, is seen otherwise", "body", at=r"\.metadata\.managedFields.*"),
    Row("a deletion gives no warning", "warnings", action="delete"),
    Row("the answer to a deletion names the object", "body", action="delete"),
    Row("the real server fails with a 500", "status", words="duplicate nodePort"),
    Row("what a Service of another type does not use is kept", "body", "services"),
    Row("leases keep the fields of coordinated leader election", "body", "leases", at=r".*(preferredHolder|strategy)"),
    Row("a reference of an account keeps more than a name", "body", "serviceaccounts"),
    Row("files of a volume that have one path give no warning", "warnings", "pods"),
    Row("an owner in the metadata of a template has no empty fields", "body", at=r".*\.ownerReferences.*"),
    Row("an address that takes no part warns, too", "warnings", "services"),
    Row("of several causes one server names more", "fields of causes"),
)  # fmt: skip


def builtin_reason(request: Request, difference: Difference, ours: Outcome, real: Outcome) -> str:
    """Return the reason for a difference; empty if there is none."""
    return next((row.reason for row in ROWS if row.holds(request, difference, ours, real)), "")
