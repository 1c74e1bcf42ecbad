"""Declare webhooks with ``validate``, ``mutate`` and ``convert``. A ``Manager`` serves them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypedDict, TypeVar, Unpack, cast, final, overload

from deltaloop._internal.function_signatures import accepts, is_coroutine_function
from deltaloop.api.dns_names import subdomain_problems
from deltaloop.api.errors import InvalidArgumentError, UnknownResourceError
from deltaloop.api.kinds import parse_resource_type
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import Kind, ResourceType, TypedKind, as_kind
from deltaloop.webhooks.core.admission_review import FieldError, ReviewOperation
from deltaloop.webhooks.errors import InvalidWebhookError
from deltaloop.webhooks.request import AdmissionRequest

T = TypeVar("T")
S = TypeVar("S")

Fields: TypeAlias = dict[str, Any]
"""Object as decoded JSON, which the function may change."""

Findings: TypeAlias = Iterable[FieldError] | FieldError | None
"""Result of a validation: None or no errors if the object is valid."""

ValidateFunction: TypeAlias = Callable[[T], Findings] | Callable[[T, AdmissionRequest[T]], Findings]
MutateFunction: TypeAlias = Callable[[T], T | None] | Callable[[T, AdmissionRequest[T]], T | None]
Changed: TypeAlias = Mapping[str, Any] | None
"""Result of a function that changes fields: a new object, or None if it changed its argument."""

FieldsFunction: TypeAlias = Callable[[Fields], Changed] | Callable[[Fields, AdmissionRequest[Resource]], Changed]

FailurePolicy: TypeAlias = Literal["Fail", "Ignore"]

_MOST_SECONDS: Final = 30
_OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT")
_BEFORE_STORING: Final = ("CREATE", "UPDATE")


class WebhookKeywords(TypedDict, total=False):
    """Options of ``validate`` and ``mutate``.

    Attributes:
        name: Domain name with at least three parts. Defaults to ``FUNCTION.PLURAL.GROUP``.
        operations: ``CREATE``, ``UPDATE``, ``DELETE`` or ``CONNECT``. Defaults to the first two, and ``mutate``
            supports only these.
        subresources: Subresources to review instead of the object itself, for example ``("scale",)``.
        reads: Kinds whose caches the function reads with ``request.lister(kind)``.
        failure_policy: Decision of the API server if the webhook fails: ``Fail`` (the default) rejects the request,
            ``Ignore`` allows it.
        timeout: Timeout of the API server in seconds, 1 to 30. Defaults to 10.
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
    """Declared webhook that validates or mutates objects.

    Call it in unit tests like the decorated function.

    Attributes:
        function: Function from an object, and optionally its ``AdmissionRequest``, to errors or to the changed object.
        type: Kind of the reviewed objects.
        mutates: Whether the webhook changes objects instead of validating them.
        name: Name in the configuration, in rejections, logs and metrics. It must be unique in a program.
        operations: Operations that are reviewed.
        subresources: Subresources that are reviewed instead of the object itself.
        reads: Kinds whose caches the function reads.
        failure_policy: Decision of the API server if the webhook fails.
        timeout: Timeout of the API server in seconds.

    Raises:
        InvalidWebhookError: If the declaration cannot work.
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
        """Whether the function receives objects of a class."""
        return self.type.model not in (None, Resource, dict)

    @property
    def path(self) -> str:
        """Path of the webhook's URL."""
        return f"/{'mutate' if self.mutates else 'validate'}/{self.name}"

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def __repr__(self) -> str:
        return f"<AdmissionWebhook {self.name} of {self.type}>"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConversionFunction:
    """Declared conversion from one version of a kind to another.

    Call it in unit tests like the decorated function.

    Attributes:
        function: Function from an object in the source version to the same object in the target version.
        source: Kind in the source version.
        target: Kind in the target version.
        kind: Kind as declared, which can have a class although the function receives dicts. None if two classes were
            declared.

    Raises:
        InvalidWebhookError: If the declaration cannot work.
    """

    function: Callable[[Any], Any]
    source: ResourceType[Any]
    target: ResourceType[Any]
    kind: ResourceType[Any] | None = None

    def __post_init__(self) -> None:
        if takes_two(self.name, self.function):
            raise InvalidWebhookError(self.name, "its function takes an object, and nothing else")
        for what in ("group", "kind", "plural", "namespaced"):
            if getattr(self.source, what) != getattr(self.target, what):
                raise InvalidWebhookError(self.name, f"{self.source} and {self.target} are not versions of one kind")

    @property
    def name(self) -> str:
        """Name of the function, for errors."""
        return str(getattr(self.function, "__name__", "conversion"))

    @property
    def path(self) -> str:
        """Path of the URL for the kind's conversions."""
        return f"/convert/{self.source.group_resource}"

    def __call__(self, obj: Any) -> Any:
        return self.function(obj)

    def __repr__(self) -> str:
        return f"<ConversionFunction from {self.source} to {self.target}>"


Webhook: TypeAlias = AdmissionWebhook | ConversionFunction
"""Result of ``validate``, ``mutate`` or ``convert``."""


@overload
def validate(
    kind: TypedKind[T], **keywords: Unpack[WebhookKeywords]
) -> Callable[[ValidateFunction[T]], AdmissionWebhook]: ...
@overload
def validate(
    kind: str, **keywords: Unpack[WebhookKeywords]
) -> Callable[[ValidateFunction[Resource]], AdmissionWebhook]: ...
def validate(kind: Kind, **keywords: Unpack[WebhookKeywords]) -> Callable[[Callable[..., Any]], AdmissionWebhook]:
    """Declare a function that validates objects before they are stored.

    The function receives the object and, if it takes two arguments, its ``AdmissionRequest``. It returns or yields a
    ``FieldError`` for each problem. For ``DELETE`` the object is the stored object, and for ``CONNECT`` it contains the
    options of the connection, for example ``PodExecOptions``.

    The function must not be async, because it runs on the event loop and must not wait. Read other objects from caches
    with ``request.lister(kind)``. If the function raises, the failure policy decides.

    Args:
        kind: Class of ``custom_resource``, whose instances the function receives. With a ``ResourceType`` or the name
            of a built-in kind, for example ``apps/v1/Deployment``, it receives a ``Resource``.
        keywords: Options of ``WebhookKeywords``.

    Raises:
        InvalidWebhookError: If the declaration cannot work.
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
    """Declare a function that changes objects before they are validated and stored.

    The function changes its argument or returns a new object. The changes are sent as a JSON patch. The function must
    be idempotent, because the server can call it again with its own result. Objects may violate the schema, because the
    server validates them later. The other rules of ``validate`` also apply.

    Args:
        kind: Class of ``custom_resource``, whose instances the function receives. With a ``ResourceType`` or the name
            of a built-in kind, it receives a dict.
        keywords: Options of ``WebhookKeywords``.

    Raises:
        InvalidWebhookError: If the declaration cannot work.
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
    """Declare a function that converts objects from one version of a kind to another.

    ``@convert(OldDatabase, Database)`` converts instances of one class to another class. ``@convert(Database,
    "v1beta1", "v1")`` converts dicts: the function changes its argument or returns a new dict. It can change labels and
    annotations, for example to preserve values that the target version cannot express. Other metadata is
    preserved.

    Every kind has one hub version, to and from which all other versions are converted.

    Args:
        kind: Kind in any version, or the source class.
        source: Source version, or the target class.
        target: Target version. None if the other arguments are classes.

    Raises:
        InvalidWebhookError: If the declaration cannot work.
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
    """Return the resource type of a kind, without a request to the server, or raise InvalidWebhookError."""
    try:
        named = as_kind(kind)
        return named if isinstance(named, ResourceType) else parse_resource_type(named)
    except UnknownResourceError:
        problem = f"{kind} is no built-in kind: give a class of @dl.custom_resource, or a dl.ResourceType"
        raise InvalidWebhookError(webhook, problem) from None
    except InvalidArgumentError as error:
        raise InvalidWebhookError(webhook, str(error)) from None


def default_name(function: Callable[..., Any], kind: ResourceType[Any]) -> str:
    """Return ``FUNCTION.PLURAL.GROUP`` as a domain name."""
    own = _called(function).strip("_").replace("_", "-").lower()
    return f"{own or 'webhook'}.{kind.plural}.{kind.group or 'core'}"


def takes_two(name: str, function: Callable[..., Any]) -> bool:
    """Return whether a function takes the request in addition to the object."""
    if not callable(function):
        raise InvalidWebhookError(name, "it decorates a function")
    if is_coroutine_function(function):
        problem = "its function is `async`: make it a plain one. It asks nobody; what it reads comes from caches"
        raise InvalidWebhookError(name, problem)
    if accepts(function, None):  # a second parameter with a default is not for the request
        return False
    if accepts(function, None, None):
        return True
    raise InvalidWebhookError(name, "its function takes the object, and the request if it wants to")


def _check_kind(decorator: str, kind: object) -> None:
    """Reject a decorator without a kind, which would otherwise silently not declare a webhook."""
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
