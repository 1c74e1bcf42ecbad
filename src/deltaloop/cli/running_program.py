"""Queries of running programs, by the address of the health server or through the API server.

The API server can forward a request to a Pod, but removes the credentials of the user. The request therefore has a
short-lived token of the Pod's service account, which is useless everywhere else. The program sends it to the API server
for a review.
"""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, final

import typer

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.json_values import at, text
from deltaloop.api.plain_text import one_line

if TYPE_CHECKING:
    from deltaloop.api.resource import Resource

DEFAULT_HEALTH: Final = "127.0.0.1:8081"  # same as in RunOptions, without its long import
EXPLAIN_PATH: Final = "/explain"
DOCTOR_PATH: Final = "/doctor"
TOKEN_HEADER: Final = "X-Deltaloop-Token"
TOKEN_AUDIENCE: Final = "deltaloop.dev"
ACTION_HEADER: Final = "X-Deltaloop-Action"

_TIMEOUT: Final = 5.0
_MOST: Final = 10 * 2**20
_TOKEN_SECONDS: Final = 600  # the shortest that API servers issue
_DEFAULT_PORT: Final = "8081"

AddressFlag: TypeAlias = Annotated[
    str, typer.Option("--address", "--url", metavar="HOST:PORT", help="Address of the program's health server.")
]
PodFlag: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="NAMESPACE/POD[:PORT]", help="Pod to query through the API server, instead of an address. Port 8081."
    ),
]
LeaseFlag: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="NAMESPACE/LEASE[:PORT]", help="Lease, to query the Pod of its holder through the API server."
    ),
]


class NoAnswerError(DeltaloopError):
    """A program cannot be queried. The message contains the address and a fix.

    Attributes:
        reason: ``address`` if it is invalid, ``unreachable``, ``silent`` if it accepts connections but does not
            respond, ``denied``, or ``foreign`` for another server.
    """

    def __init__(
        self, problem: str, *, reason: Literal["address", "unreachable", "silent", "denied", "foreign"]
    ) -> None:
        super().__init__(problem)
        self.reason = reason


@final
@dataclass(frozen=True, slots=True)
class RunningProgram:
    """Place of a running program, from the flags of a command; ``pod`` and ``lease`` take precedence."""

    address: str = DEFAULT_HEALTH
    pod: str = ""
    lease: str = ""
    kubeconfig: Path | None = None
    context: str | None = None

    def ask(self, path: str, query: Mapping[str, str], *, method: str = "GET") -> tuple[int, bytes]:
        """Send a request, and return the status and the body of the response, or raise NoAnswerError."""
        if self.pod or self.lease:
            return asyncio.run(self._through_server(path, query, method))
        base = self.address if "://" in self.address else f"http://{self.address}"
        if not base.startswith(("http://", "https://")):
            raise NoAnswerError(f"--address must be HOST:PORT or a URL, got {self.address!r}.", reason="address")
        url = f"{base.rstrip('/')}{path}?{urllib.parse.urlencode(query)}"
        # Never use a proxy for the local machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            request = urllib.request.Request(url, method=method, headers={ACTION_HEADER: "1"})  # noqa: S310 - checked above
            with opener.open(request, timeout=_TIMEOUT) as answer:
                return int(answer.status), answer.read(_MOST)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(_MOST)
        except (OSError, ValueError, HTTPException) as error:
            reason: Any = getattr(error, "reason", error)
            if isinstance(error, TimeoutError):
                raise NoAnswerError(
                    f"the program at {base} accepts connections but does not respond within {_TIMEOUT:g} s. "
                    "Its process is stopped, or a call without Python code blocks it.",
                    reason="silent",
                ) from None
            raise NoAnswerError(
                f"cannot connect to the health server at {base}: {reason}. Set --address to the value of"
                " --health-probe-bind-address of the program.",
                reason="unreachable",
            ) from None

    async def _through_server(self, path: str, query: Mapping[str, str], method: str) -> tuple[int, bytes]:
        from deltaloop.api.kinds import LEASE, POD
        from deltaloop.client import Client, load_config
        from deltaloop.client.transport.http_transport import HttpTransport
        from deltaloop.client.transport.protocol import HttpRequest

        namespace, name, port = _place("--lease" if self.lease else "--pod", self.lease or self.pod)
        config = load_config(kubeconfig=self.kubeconfig, context=self.context or None)
        transport = HttpTransport(config)
        async with Client(config, transport=transport) as client:
            if self.lease:
                lease = await client.get(LEASE, name, namespace=namespace, timeout=_TIMEOUT)
                holder = _field(lease, "spec", "holderIdentity")
                if not holder:
                    raise NoAnswerError(f"the Lease {self.lease} has no holder.", reason="unreachable")
                name = holder.partition("_")[0]  # the host name, which is the name of the Pod
            pod = await client.get(POD, name, namespace=namespace, timeout=_TIMEOUT)
            account = _field(pod, "spec", "serviceAccountName") or "default"
            asked = {"spec": {"audiences": [TOKEN_AUDIENCE], "expirationSeconds": _TOKEN_SECONDS}}
            made = await client.create_subresource(
                "v1/ServiceAccount", account, "token", asked, namespace=namespace, timeout=_TIMEOUT
            )
            token = _field(made, "status", "token")
            place = f"/api/v1/namespaces/{namespace}/pods/http:{name}:{port}/proxy{path}"
            headers = {TOKEN_HEADER: token, ACTION_HEADER: "1"}
            answer = await transport.request(
                HttpRequest(method=method, path=place, query=query, headers=headers, timeout=_TIMEOUT)
            )
        return answer.status, answer.body


def _field(obj: Resource, part: str, name: str) -> str:
    return text(at(obj.to_dict(), part, name))


def _place(flag: str, given: str) -> tuple[str, str, str]:
    place, _, port = given.partition(":")
    namespace, _, name = place.partition("/")
    if not namespace or not name or "/" in name or not (port or _DEFAULT_PORT).isdigit():
        raise NoAnswerError(f"{flag} must be NAMESPACE/NAME or NAMESPACE/NAME:PORT, got {given!r}.", reason="address")
    return namespace, name, port or _DEFAULT_PORT


def refused(place: str, code: int, body: bytes) -> NoAnswerError:
    """Return the error for a response that is not the requested document."""
    said = one_line(body[:200].decode(errors="replace").strip())
    if code == 403:
        return NoAnswerError(
            f"{place} rejects the request: {said}. Run the command on the machine of the program, forward the port, or"
            " grant the service account of the Pod the verbs get and post of this path.",
            reason="denied",
        )
    return foreign(f"{place} ({code} {said})")


def foreign(place: str) -> NoAnswerError:
    """Return the error for another server."""
    problem = f"the server at {place} is not a health server of deltaloop, or has a different version"
    return NoAnswerError(problem, reason="foreign")
