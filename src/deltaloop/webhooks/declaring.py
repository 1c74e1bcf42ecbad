"""Declares webhooks: plain functions that check, complete or convert objects, and what each is asked about.

    @validate(Database)
    def check(database: Database, request: AdmissionRequest[Database]) -> Iterator[Finding]: ...

    @mutate("apps/v1/Deployment")
    def set_defaults(deployment: dict[str, Any]) -> None: ...

    @convert(OldDatabase, Database)
    def to_new(old: OldDatabase) -> Database: ...

Nothing is served and nothing is asked of a server until a ``Manager`` gets them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypedDict, TypeVar, Unpack, cast, final, overload

from deltaloop._internal.function_signatures import accepts, is_coroutine_function
from deltaloop.api.dns_names import subdomain_problems
from deltaloop.api.errors import InvalidArgumentError, UnknownResourceError
from deltaloop.api.kinds import parse_resource_type
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType, TypedKind, as_kind
from deltaloop.client.verbs.request_keywords import Kind
from deltaloop.webhooks.core.admission_review import ReviewOperation
from deltaloop.webhooks.core.findings import FieldError
from deltaloop.webhooks.errors import InvalidWebhookError
from deltaloop.webhooks.request import AdmissionRequest

T = TypeVar("T")
S = TypeVar("S")

Fields: TypeAlias = dict[str, Any]
"""An object as JSON has it, to change."""

Findings: TypeAlias = Iterable[FieldError] | FieldError | None
"""What a validation returns: nothing if all is well."""

ValidateFunction: TypeAlias = Callable[[T], Findings] | Callable[[T, AdmissionRequest[T]], Findings]
MutateFunction: TypeAlias = Callable[[T], T | None] | Callable[[T, AdmissionRequest[T]], T | None]
Changed: TypeAlias = Mapping[str, Any] | None
"""What a function returns that changes fields: others in their place, or nothing."""

FieldsFunction: TypeAlias = Callable[[Fields], Changed] | Callable[[Fields, AdmissionRequest[Resource]], Changed]

FailurePolicy: TypeAlias = Literal["Fail", "Ignore"]

_MOST_SECONDS: Final = 30
_OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT")
_BEFORE_STORING: Final = ("CREATE", "UPDATE")


class WebhookKeywords(TypedDict, total=False):
    """What may be said of a webhook that validates or mutates.

    Attributes:
        name: Its name, a domain name of three parts at least; ``FUNCTION.PLURAL.GROUP`` by default.
        operations: What it is asked about: ``CREATE``, ``UPDATE``, ``DELETE``, ``CONNECT``; the first two by default,
            which are all that can be mutated.
        subresources: It is asked about these and not about the object itself, such as ``("scale",)``.
        reads: Kinds whose caches its function may read, by ``request.lister(kind)``.
        failure_policy: What becomes of a request if nobody answers: ``Fail`` refuses it, ``Ignore`` lets it pass.
        timeout: Seconds that the API server waits, 1 to 30; 10 by default.
    """

    name: str
    operations: Sequence[ReviewOperation]
    subresources: Sequence[str]
    reads: Sequence[Kind]
    failure_policy: FailurePolicy
    timeout: int


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdmissionWebhook:
    """A declared webhook that validates or mutates.

    Calling it calls its function, for unit tests.

    Attributes:
        function: From an object, or an object and its ``AdmissionRequest``, to findings or to the changed object.
        type: What kind of objects it is asked about.
        mutates: Whether it changes objects, or judges them.
        name: In the configuration, in refusals, logs and metrics; unique in a program.
        operations: What it is asked about.
        subresources: It is asked about these and not about the object itself.
        reads: Kinds whose caches it may read.
        failure_policy: What becomes of a request if nobody answers.
        timeout: Seconds that the API server waits.
    """

    function: Callable[..., Any]
    type: ResourceType[Any]
    mutates: bool
    name: str = ""
    operations: Sequence[ReviewOperation] = _BEFORE_STORING
    subresources: Sequence[str] = ()
    reads: Sequence[Kind] = ()
    failure_policy: FailurePolicy = "Fail"
    timeout: int = 10
    takes_request: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            InvalidWebhookError: Naming the webhook and what to change.
        """
        name = self.name or default_name(self.function, self.type)
        object.__setattr__(self, "name", name)
        if name.count(".") < 2 or subdomain_problems(name):
            problem = "its name is no domain name of three parts; give one, by name='check.databases.example.com'"
            raise InvalidWebhookError(name, problem)
        object.__setattr__(self, "takes_request", takes_two(name, self.function))
        for what in ("operations", "subresources", "reads"):
            given: Any = getattr(self, what)
            if isinstance(given, str) or not isinstance(given, Iterable):
                raise InvalidWebhookError(name, f"{what} is one thing; it is a list: {what}=[...]")
        known = _BEFORE_STORING if self.mutates else _OPERATIONS
        if not self.operations or not set(self.operations) <= set(known):
            problem = f"operations is {[*self.operations]!r}; one or more of {', '.join(known)} are needed"
            raise InvalidWebhookError(name, problem)
        if self.failure_policy not in ("Fail", "Ignore"):
            raise InvalidWebhookError(name, f"failure_policy is {self.failure_policy!r}; it is 'Fail' or 'Ignore'")
        if type(self.timeout) is not int or not 1 <= self.timeout <= _MOST_SECONDS:
            problem = f"timeout is {self.timeout!r}; whole seconds from 1 to {_MOST_SECONDS} are needed"
            raise InvalidWebhookError(name, problem)
        if self.is_typed and set(self.subresources) - {"status"}:
            problem = "objects of other subresources than status are of another class: give the kind by its name"
            raise InvalidWebhookError(name, problem)
        object.__setattr__(self, "reads", tuple(known_kind(name, each) for each in self.reads))

    @property
    def is_typed(self) -> bool:
        """Whether its function is given objects of a class."""
        return self.type.model not in (None, Resource, dict)

    @property
    def path(self) -> str:
        """Path of its URL."""
        return f"/{'mutate' if self.mutates else 'validate'}/{self.name}"

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        return self.function(*arguments)

    def __repr__(self) -> str:
        return f"<AdmissionWebhook {self.name} of {self.type}>"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConversionFunction:
    """A declared conversion of one version of a kind to another.

    Calling it calls its function, for unit tests.

    Attributes:
        function: From an object of one version to the same object of the other.
        source: The kind in the version that it is given.
        target: The kind in the version that it returns.
        kind: The kind as it was given, which may have a class though the function takes dicts; None for two classes.
    """

    function: Callable[[Any], Any]
    source: ResourceType[Any]
    target: ResourceType[Any]
    kind: ResourceType[Any] | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            InvalidWebhookError: Naming the function and what to change.
        """
        if takes_two(self.name, self.function):
            raise InvalidWebhookError(self.name, "its function takes an object, and nothing else")
        for what in ("group", "kind", "plural", "namespaced"):
            if getattr(self.source, what) != getattr(self.target, what):
                raise InvalidWebhookError(self.name, f"{self.source} and {self.target} are not versions of one kind")

    @property
    def name(self) -> str:
        """What it is called in errors."""
        return str(getattr(self.function, "__name__", "conversion"))

    @property
    def path(self) -> str:
        """Path of the URL of the kind's conversions."""
        return f"/convert/{self.source.group_resource}"

    def __call__(self, obj: Any) -> Any:
        """Call the function."""
        return self.function(obj)

    def __repr__(self) -> str:
        return f"<ConversionFunction from {self.source} to {self.target}>"


Webhook: TypeAlias = AdmissionWebhook | ConversionFunction
"""What the three decorators make of a function."""


@overload
def validate(
    kind: TypedKind[T], **keywords: Unpack[WebhookKeywords]
) -> Callable[[ValidateFunction[T]], AdmissionWebhook]: ...
@overload
def validate(
    kind: str, **keywords: Unpack[WebhookKeywords]
) -> Callable[[ValidateFunction[Resource]], AdmissionWebhook]: ...
def validate(kind: Kind, **keywords: Unpack[WebhookKeywords]) -> Callable[[Callable[..., Any]], AdmissionWebhook]:
    """Declare the decorated function as one that judges objects before they are stored.

    It is given the object, and its ``AdmissionRequest`` if it takes two arguments, and returns or yields a
    ``FieldError`` for each thing that is wrong. For ``DELETE`` the object is the one that is there; for ``CONNECT`` it
    is what is asked for, such as ``PodExecOptions``. A plain function, called on the event loop: it asks nobody, and
    reads caches by ``request.lister(kind)``. What it raises is left to the failure policy.

    Args:
        kind: The kind: a class of ``custom_resource``, whose objects the function gets; a ``ResourceType``, or the name
            of a built-in kind, such as ``apps/v1/Deployment``: then it gets a ``Resource``.
        keywords: Name, operations and the like; see ``WebhookKeywords``.

    Raises:
        InvalidWebhookError: If that cannot work.
    """
    _check_kind("validate", kind)

    def declare(function: Callable[..., Any]) -> AdmissionWebhook:
        known = known_kind(_called(function), kind)
        return AdmissionWebhook(function=function, type=known, mutates=False, **_checked(function, keywords))

    return declare


@overload
def mutate(kind: type[T], **keywords: Unpack[WebhookKeywords]) -> Callable[[MutateFunction[T]], AdmissionWebhook]: ...
@overload
def mutate(
    kind: ResourceType[Any] | str, **keywords: Unpack[WebhookKeywords]
) -> Callable[[FieldsFunction], AdmissionWebhook]: ...
def mutate(kind: Kind, **keywords: Unpack[WebhookKeywords]) -> Callable[[Callable[..., Any]], AdmissionWebhook]:
    """Declare the decorated function as one that completes objects before they are judged and stored.

    It changes the object that it is given, or returns another one in its place; what has changed is sent, as a JSON
    patch, and nothing else. It has to come to the same when it is given its own result: the server may ask again. It
    may get objects that the schema refuses, since they are judged later. Otherwise as ``validate``.

    Args:
        kind: The kind: a class of ``custom_resource``, whose objects the function gets; a ``ResourceType``, or the name
            of a built-in kind: then it gets a dict.
        keywords: Name, operations and the like; see ``WebhookKeywords``.

    Raises:
        InvalidWebhookError: If that cannot work.
    """
    _check_kind("mutate", kind)

    def declare(function: Callable[..., Any]) -> AdmissionWebhook:
        known = known_kind(_called(function), kind)
        if not isinstance(kind, type):
            known = _in_version(known, known.version)
        return AdmissionWebhook(function=function, type=known, mutates=True, **_checked(function, keywords))

    return declare


@overload
def convert(source: type[S], target: type[T], /) -> Callable[[Callable[[S], T]], ConversionFunction]: ...
@overload
def convert(kind: Kind, source: str, target: str, /) -> Callable[[Callable[[Fields], Changed]], ConversionFunction]: ...
def convert(kind: Kind, source: Any, target: Any = None, /) -> Callable[[Callable[[Any], Any]], ConversionFunction]:
    """Declare the decorated function as the conversion of one version of a kind to another.

    ``@convert(OldDatabase, Database)`` is from the objects of one class to those of another. ``@convert(Database,
    "v1beta1", "v1")`` is from dict to dict: it changes what it is given, or returns another one; labels and annotations
    may change with it, so that what the other version cannot say can be kept there. Name, namespace and the like stay,
    and are not the function's affair. Every kind has one version, the hub, to and from which all others are converted.

    Args:
        kind: The kind, in any version; or the class that it is from.
        source: The version that it is from; or the class that it is to.
        target: The version that it is to.

    Raises:
        InvalidWebhookError: If that cannot work.
    """
    _check_kind("convert", kind)

    def declare(function: Callable[[Any], Any]) -> ConversionFunction:
        name = _called(function)
        if target is None:
            return ConversionFunction(
                function=function, source=_class_type(name, kind), target=_class_type(name, source)
            )
        known = known_kind(name, kind)
        sides = _in_version(known, source), _in_version(known, target)
        return ConversionFunction(function=function, source=sides[0], target=sides[1], kind=known)

    return declare


def known_kind(webhook: str, kind: Kind) -> ResourceType[Any]:
    """Return the resource type of a kind, without asking a server.

    Args:
        webhook: Name of the webhook, for errors.
        kind: The kind.

    Raises:
        InvalidWebhookError: If a name is not that of a built-in kind.
    """
    try:
        named = as_kind(kind)
        return named if isinstance(named, ResourceType) else parse_resource_type(named)
    except UnknownResourceError:
        problem = f"{kind} is no built-in kind: give a class of @dl.custom_resource, or a dl.ResourceType"
        raise InvalidWebhookError(webhook, problem) from None
    except InvalidArgumentError as error:
        raise InvalidWebhookError(webhook, str(error)) from None


def default_name(function: Callable[..., Any], kind: ResourceType[Any]) -> str:
    """Return ``FUNCTION.PLURAL.GROUP``, as a domain name."""
    own = _called(function).strip("_").replace("_", "-").lower()
    return f"{own or 'webhook'}.{kind.plural}.{kind.group or 'core'}"


def takes_two(name: str, function: Callable[..., Any]) -> bool:
    """Tell whether a function takes the request beside the object.

    Raises:
        InvalidWebhookError: If it takes neither one nor two arguments, or has to be awaited.
    """
    if not callable(function):
        raise InvalidWebhookError(name, "it decorates a function")
    if is_coroutine_function(function):
        problem = "its function is `async`: make it a plain one. It asks nobody; what it reads comes from caches"
        raise InvalidWebhookError(name, problem)
    if accepts(function, None):  # a second parameter with a default is its own affair
        return False
    if accepts(function, None, None):
        return True
    raise InvalidWebhookError(name, "its function takes the object, and the request if it wants to")


def _check_kind(decorator: str, kind: object) -> None:
    """Refuse what is no kind: a function that is decorated without one would be no webhook, and nobody would notice."""
    if isinstance(kind, type | ResourceType | str):
        return
    problem = f"{decorator} is given a kind, such as @dl.{decorator}(Database), and not a {type(kind).__name__}"
    raise InvalidWebhookError(_called(kind), problem)


def _class_type(name: str, cls: object) -> ResourceType[Any]:
    if not isinstance(cls, type):
        raise InvalidWebhookError(name, 'give two classes, or a kind and two versions: (Database, "v1beta1", "v1")')
    return known_kind(name, cast("type[Any]", cls))


def _in_version(kind: ResourceType[Any], version: str) -> ResourceType[Any]:
    return ResourceType[Any](kind.group, version, kind.kind, kind.plural, kind.namespaced)


def _called(function: object) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _checked(function: object, keywords: WebhookKeywords) -> WebhookKeywords:
    if unknown := sorted(keywords.keys() - WebhookKeywords.__optional_keys__):
        known = ", ".join(sorted(WebhookKeywords.__optional_keys__))
        raise InvalidWebhookError(_called(function), f"there is no {unknown[0]!r}; there are {known}")
    return keywords
