"""Send a sequence of steps to one server, and write down what it answers in words that do not depend on the server.

Uids and times become names. Resource versions become their rank among those of the objects that were answered, so that
their order is compared and their values are not; the version of a list, which other objects move too, becomes that of
the newest object that it is not older than.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast
from urllib.parse import quote, urlencode

from tests.apiserver.serving import Answer
from tests.conformance.target import CRDS, Api

from deltaloop.apiserver.core.writes.patching import merge_patch
from lab.conformance.fuzz import definitions
from lab.conformance.fuzz.sequences import FUZZED
from lab.conformance.fuzz.steps import COMPACT, Step

SENTINEL: Final = "zz-sentinel"
EVENT_SECONDS: Final = 8.0
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
# A number that stands alone: the examples in messages, such as '123-abc', are none of a server's, nor are versions.
_NUMBER: Final = re.compile(r"(?<![\w'.-])\d+(?![\w'-])")
_ENTRY: Final = ("manager", "operation", "subresource", "apiVersion")
_TIMES: Final = frozenset({"creationTimestamp", "deletionTimestamp", "lastTransitionTime", "disruptedPods", "time"})
_OLD: Final = "1"
# What messages say on one server only: input that is repeated, places in a program. The reasons are in the docs.
PLAIN: Final = tuple(
    (re.compile(pattern, re.DOTALL), kept)
    for pattern, kept in (
        (r"(continue key is not valid: ).*", r"\1..."),
        (r"( is invalid: ).*", r"\1..."),
        (r' in scheme "pkg/\S+"', ""),
        (r".*(Object 'Kind' is missing in ).*", r"\1..."),
        (r"(json: cannot unmarshal \w+ into Go struct field \.\w+ of type string) \(.*", r"\1"),
        (r"(, Key: )(/registry)", r"\1"),
        (r"(typed patch object \(.*?\): ).*", r"\1..."),
        # Why an object cannot be read: of several reasons another one may be told, and what Go calls a type.
        (r"( accessor error: ).*( is of the type )", r"\1...\2"),
        (r"( cannot be handled as an? \w+: )(?!strict).*", r"\1..."),
        (r"(Invalid value: ).*: (?:error .*json: )?(?:illegal|parsing|json:|convert|no kind|can|unreco).*", r"\1..."),
        (r"(Invalid value: ).*: (strict.*)", r"\1...: \2"),
        # What a list has that cannot be merged.
        (r".* does not contain (?:the )?declared merge key: (\w+)", r"no \1"),
        (r"(list element types are not identical).*", r"\1"),
        # Go's own words for what differs.
        (r"(Forbidden: pod updates may not change fields .*?previously negative\)).*", r"\1"),
        # What the cache of watches says, and what there is beneath it.
        (r"(too old resource version: ).*", r"\1..."),
        (r"The resourceVersion for the provided watch is too old.", r"too old resource version: ..."),
        (r"(convert new object )\(\S*/(.* to proper version: ).*", r"\1(\2..."),
    )
)


@dataclass
class Seen:
    """What a server has answered so far, for references and names."""

    values: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    objects: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    revisions: set[int] = field(default_factory=set[int])
    uids: dict[str, str] = field(default_factory=dict[str, str])

    def take(self, answer: Any) -> None:
        """Remember what an answer brought, its items before itself."""
        if not isinstance(answer, dict):
            return
        fields = cast("dict[str, Any]", answer)
        for item in fields.get("items") or ():
            self._take_object(item)
        metadata = fields.get("metadata")
        if not isinstance(metadata, dict):
            return
        metadata = cast("dict[str, Any]", metadata)
        if "items" in fields:
            if metadata.get("continue"):
                self.values["continue"].append(metadata["continue"])
        elif "name" in metadata:
            self._take_object(fields)
            if fields.get("kind") != "Namespace":
                self.objects.append(fields)

    def _take_object(self, fields: dict[str, Any]) -> None:
        metadata = fields["metadata"]
        uid, revision = metadata.get("uid"), metadata.get("resourceVersion")
        if uid:
            self.uids.setdefault(uid, f"uid-{len(self.uids)}")
            self.values["uid"].append(uid)
        if revision:
            self.revisions.add(int(revision))
            self.values["revision"].append(revision)

    def find(self, reference: str) -> str:
        """Return what ``$name:N`` means here; of what there is none, the same for both servers."""
        name, _, back = reference.removeprefix("$").partition(":")
        values = self.values[name]
        return values[max(-1 - int(back), -len(values))] if values else _OLD


def resolve(value: Any, seen: Seen, namespace: str, kind: str = "") -> Any:
    """Put values in the place of references."""
    if isinstance(value, str):
        if re.fullmatch(r"\$\w+:\d", value):
            return seen.find(value)
        return value.replace("NAMESPACE", namespace)
    if isinstance(value, list):
        return [resolve(item, seen, namespace) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        (name, changes), *rest = fields.items() or [("", None)]
        if name.startswith("$object:") and not rest:
            back = int(name.rpartition(":")[2])
            like = [each for each in seen.objects if each["kind"] == kind]
            base: dict[str, Any] = like[max(-1 - back, -len(like))] if like else {"kind": kind}
            return merge_patch(base, resolve(changes, seen, namespace))
        return {key: resolve(item, seen, namespace) for key, item in fields.items()}
    return value


@dataclass
class Transcript:
    """What one server answered to each step, and what its watches saw."""

    answers: list[Any] = field(default_factory=list[Any])
    watches: dict[int, list[Any]] = field(default_factory=dict[int, list[Any]])
    seen: Seen = field(default_factory=Seen)

    def normal(self, namespace: str) -> list[Any]:
        """Return it in words of no server: for each step the answer, then the events of each watch."""
        for events in self.watches.values():
            for event in events:
                self.seen.take(event["object"] if isinstance(event, dict) else None)
        ranks = {revision: rank for rank, revision in enumerate(sorted(self.seen.revisions), 1)}
        words = Words(namespace, self.seen, ranks)
        return [words.of(answer) for answer in self.answers] + [
            words.of(self.watches[at]) for at in sorted(self.watches)
        ]


@dataclass(frozen=True)
class Words:
    """The words for what one server calls its own."""

    namespace: str
    seen: Seen
    ranks: dict[int, int]

    def of(self, value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            if name == "details" and len(fields.get("causes", ())) > 1:
                # Go walks its maps in another order each time, and checks metadata twice; the message repeats it all.
                causes = sorted(fields["causes"], key=lambda cause: (cause.get("field", ""), cause["message"]))
                fields = {**fields, "causes": [cause for at, cause in enumerate(causes) if cause not in causes[:at]]}
            # A real server gives the link that was sent with a dry run back.
            kept = {key: item for key, item in fields.items() if (name, key) != ("metadata", "selfLink")}
            return {key: self.of(item, name if name == "disruptedPods" else key) for key, item in kept.items()}
        if isinstance(value, list):
            items = cast("list[Any]", value)
            if name == "managedFields" and all(isinstance(item, dict) for item in items):
                # They are in the order of their seconds, and a slow server needs more of them for the same sequence.
                items = sorted(items, key=lambda entry: [str(entry.get(key, "")) for key in _ENTRY])
            return [self.of(item, name) for item in items]
        if isinstance(value, str):
            return self._text(value, name)
        return value

    def _text(self, text: str, name: str) -> str:
        if name == "resourceVersion" and text.isdecimal():
            return f"revision-{self._rank(int(text))}"
        if name == "continue" and text:
            return "a token"
        if name in _TIMES and _TIME.fullmatch(text):
            return "a time"
        text = _UID.sub(lambda found: self.seen.uids.get(found[0], found[0]), text)
        if name == "message":
            for pattern, kept in PLAIN:
                text = pattern.sub(kept, text)
        if name in ("message", "reason", "warning"):
            text = _NUMBER.sub(lambda found: self._number(found[0]), text) if " " in text else text
        return text.replace(self.namespace, "NAMESPACE")

    def _rank(self, revision: int) -> int:
        return max((rank for known, rank in self.ranks.items() if known <= revision), default=0)

    def _number(self, text: str) -> str:
        rank = self.ranks.get(int(text))
        return text if rank is None or int(text) < 20 else f"revision-{rank}"


async def replay(api: Api, namespace: str, steps: Sequence[Step]) -> Transcript:
    """Send the steps one after the other, in a namespace of their own."""
    transcript = Transcript()
    made = await api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
    assert made.status == 201, made.text
    transcript.seen.take(made.json)
    async with contextlib.AsyncExitStack() as streams:
        following: dict[int, asyncio.Task[list[Any]]] = {}
        for number, step in enumerate(steps):
            path = _url(step, transcript.seen, namespace)
            if step.fresh:
                await api.get(path.partition("?")[0])
            if step.watches:
                response = await streams.enter_async_context(api.stream(path))
                transcript.answers.append(response.status)
                if response.status == 200:
                    following[number] = asyncio.create_task(_follow(response))
                    streams.callback(following[number].cancel)
            elif step == COMPACT:
                await _compact(api, f"{namespace} {number}")
                transcript.answers.append("compacted")
            elif definitions.defines(step):
                await _define(api, namespace, step, number, transcript)
            elif await _scales_oddly(api, path, step, transcript.seen, namespace):
                transcript.answers.append("not sent")
            else:
                answered = _answered(await _send(api, path, step, transcript.seen, namespace))
                transcript.answers.append(answered)
                transcript.seen.take(answered["body"])
        for plural in {step.path.rpartition("/")[2] for step in steps if step.watches}:
            await _send_sentinel(api, namespace, plural)
        for number, task in following.items():
            transcript.watches[number] = await task
        if any(map(definitions.defines, steps)):
            await api.delete(f"{CRDS}/{definitions.NAME.replace('NAMESPACE', namespace)}")
    return transcript


async def _send(api: Api, path: str, step: Step, seen: Seen, namespace: str) -> Answer:
    body = resolve(step.body, seen, namespace, _kind(step))
    data = None if body is None else json.dumps(body).encode()
    headers = {"Accept": step.accept} if step.accept else {}
    return await api.call(step.method, path, data, **{"Content-Type": step.content_type, **headers})


async def _scales_oddly(api: Api, path: str, step: Step, seen: Seen, namespace: str) -> bool:
    """Tell whether a write through ``/scale`` would leave the replicas, take them away, or make a spec for them.

    Who owns which field after such a write, or the next one, is a chance of how the real server turns a Scale into
    entries and back. It does so in the same way for both only if the number changes.
    """
    if step.method == "GET" or not step.path.endswith("/scale"):
        return False
    sent = resolve(step.body, seen, namespace).get("spec", {}).get("replicas")
    found = (await api.get(path.partition("?")[0].removesuffix("/scale"))).json
    there = found.get("spec", {}).get("size" if found["kind"] == "Widget" else "replicas")
    return not sent or sent == there or (found["kind"] == "Widget" and not found.get("spec"))


async def _compact(api: Api, why: str) -> None:
    """Forget the past; writes before it see to it that every version that was answered belongs to it.

    Two, because etcd keeps the last of the changes that it drops.
    """
    for time in ("once", "twice"):
        change = {"metadata": {"annotations": {"compact": f"{why} {time}"}}}
        written = await api.patch("/api/v1/namespaces/default", change)
        assert written.status == 200, written.text
    await api.compact()


async def _define(api: Api, namespace: str, step: Step, number: int, transcript: Transcript) -> None:
    """Send a step about a definition and wait until the server does as it says; that is what is compared."""
    marked = dataclasses.replace(step, body=definitions.marked(step.body, number))
    path = _url(step, transcript.seen, namespace)
    answered = _answered(await _send(api, path, marked, transcript.seen, namespace))
    if answered[""] < 400:
        # What it is at once has neither been accepted nor established on a real server.
        answered["body"] = "done"
    found = await definitions.settled(api, namespace)
    transcript.seen.take(found)
    answered["settled"] = None
    if found is not None:
        metadata = {name: value for name, value in found["metadata"].items() if name != "managedFields"}
        answered["settled"] = {**found, "metadata": metadata}
    transcript.answers.append(answered)


def _kind(step: Step) -> str:
    """Return the kind of what a step writes to; an object of another is of no use there."""
    if definitions.defines(step):
        return definitions.KIND
    return next((resource.kind for resource in FUZZED if f"/{resource.plural}/" in step.path), "")


def _url(step: Step, seen: Seen, namespace: str) -> str:
    query = [(name, resolve(value, seen, namespace)) for name, value in step.query]
    path = step.path.replace("NAMESPACE", namespace)
    return f"{path}?{urlencode(query, quote_via=quote)}" if query else path


def _answered(answer: Answer) -> dict[str, Any]:
    body: Any
    try:
        body = answer.json
    except ValueError:
        body = answer.text
    table = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
    if table.get("kind") == "Table":
        for column in table["columnDefinitions"]:
            # The real server's is the documentation of the field, a text of its own.
            if column["format"] == "name":
                column["description"] = ""
    warnings: list[str] = cast("Any", answer.headers).getall("Warning", [])  # a multi-dict
    if answer.status >= 400:
        # Some refusals of the real server come before its advice on finalizers, some after.
        warnings = [text for text in warnings if "prefer a domain-qualified finalizer name" not in text]
    return {"": answer.status, "body": body, "warning": [text.removeprefix("299 - ") for text in warnings]}


async def _send_sentinel(api: Api, namespace: str, plural: str) -> None:
    resource = next(resource for resource in FUZZED if resource.plural == plural)
    labels = {"app": "x", "tier": "1"}
    metadata = {"name": SENTINEL, "labels": labels}
    body = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata, **resource.least}
    made = await api.post(resource.path.replace("NAMESPACE", namespace), body)
    assert made.status == 201, made.text


async def _follow(response: Any) -> list[Any]:
    """Read events until the sentinel's, the end of the stream, or too long a silence."""
    events: list[Any] = []
    try:
        async with asyncio.timeout(EVENT_SECONDS):
            async for line in response.content:
                event = json.loads(line)
                if event["object"].get("metadata", {}).get("name") == SENTINEL:
                    return events
                if event["type"] == "BOOKMARK":
                    if not event["object"]["metadata"].get("annotations"):
                        continue
                    # Beside its metadata it is a struct of Go with nothing in it.
                    event["object"] = {name: event["object"][name] for name in ("kind", "apiVersion", "metadata")}
                events.append(event)
    except TimeoutError:
        return [*events, "the watch fell silent"]
    return [*events, "the watch ended"]
