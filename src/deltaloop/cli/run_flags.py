"""The flags of ``deltaloop run``, some of which ``rbac`` has, too, and what they ask for, as a ``RunCommand``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, cast, final, get_args, get_type_hints

import typer

from deltaloop.api.logs import configure_logging
from deltaloop.cli.connection import ContextFlag, KubeconfigFlag

if TYPE_CHECKING:
    from deltaloop.cli.run import ClusterFlags, LeaderElection, RunCommand
    from deltaloop.cli.run_webhooks import RunWebhooks
    from deltaloop.client.transport.opening import Http
    from deltaloop.events import EventApi
    from deltaloop.leaderelection import LeaderElectionConfig
    from deltaloop.runtime import Controller
    from deltaloop.runtime.program.pages import Listen
    from deltaloop.webhooks.declaring import Webhook

DEFAULT_METRICS: Final = "127.0.0.1:8080"
DEFAULT_HEALTH: Final = "127.0.0.1:8081"
DEFAULT_WEBHOOKS: Final = ":9443"

TargetArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="MODULE[:OBJECT]",
        help="Module or file, whose controllers all run; or one controller, list or function in it.",
    ),
]
OnlyNamespaceFlag: TypeAlias = Annotated[
    str, typer.Option("--namespace", "-n", metavar="NAME", help="Watch this namespace only; all by default.")
]
EmbeddedFlag: TypeAlias = Annotated[bool, typer.Option("--embedded", help="Run against an embedded API server.")]
RbacFlag: TypeAlias = Annotated[
    bool, typer.Option("--rbac", help="With --embedded: under exactly the roles that `deltaloop rbac` prints.")
]
LoadFlag: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(metavar="PATH", help="With --embedded: manifests to begin with, such as CRDs. Repeatable."),
]
WriteKubeconfigFlag: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="With --embedded: write a kubeconfig for kubectl here.")
]
LeaderElectFlag: TypeAlias = Annotated[
    bool, typer.Option("--leader-elect", help="Work only while holding a Lease; standbys keep their caches warm.")
]
LeaseNameFlag: TypeAlias = Annotated[
    str, typer.Option(metavar="NAME", help="Name of the Lease; the controllers' names by default.")
]
LeaseNamespaceFlag: TypeAlias = Annotated[
    str, typer.Option(metavar="NAME", help="Namespace of the Lease; that of the connection by default.")
]
IdentityFlag: TypeAlias = Annotated[str, typer.Option("--id", help="Name of this candidate; made up by default.")]
LeaseDurationFlag: TypeAlias = Annotated[float, typer.Option(help="Seconds that others wait before they take over.")]
RenewDeadlineFlag: TypeAlias = Annotated[float, typer.Option(help="Seconds that a leader leads without a renewal.")]
RetryPeriodFlag: TypeAlias = Annotated[float, typer.Option(help="Seconds from one try to the next.")]
EventApiFlag: TypeAlias = Annotated[
    str, typer.Option(metavar="API", help="What Events are written in: v1, or events.k8s.io/v1 (series).")
]
MetricsAddressFlag: TypeAlias = Annotated[
    str, typer.Option(metavar="HOST:PORT", help=f"Where /metrics is; {DEFAULT_METRICS} by default, 0 for none.")
]
HealthAddressFlag: TypeAlias = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="Where /healthz, /readyz and /explain are; 0 for none.")
]
MetricsCertFlag: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Certificate of /metrics, as PEM.")
]
MetricsKeyFlag: TypeAlias = Annotated[Path | None, typer.Option(metavar="FILE", help="Its key, as PEM.")]
TokenReviewFlag: TypeAlias = Annotated[
    bool,
    typer.Option("--metrics-token-review", help="Answer /metrics only to those whom the API server allows to get it."),
]
WebhookAddressFlag: TypeAlias = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="Where webhooks are served, if there are some; 0 for nowhere.")
]
WebhookNameFlag: TypeAlias = Annotated[
    str, typer.Option(metavar="NAME", help="Their configurations, with the Secret NAME-webhooks; MODULE by default.")
]
WebhookServiceFlag: TypeAlias = Annotated[
    str, typer.Option(metavar="NAME", help="Their Service; NAME-webhooks by default.")
]
WebhookUrlFlag: TypeAlias = Annotated[
    str, typer.Option(metavar="URL", help="In place of a Service: https://HOST:PORT, which the cluster can reach.")
]
WebhookCertificatesFlag: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER", help="Where another tool, such as cert-manager, keeps tls.crt and tls.key for them."
    ),
]
WebhookClientCaFlag: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Authorities (PEM) of which webhook clients must present a certificate."),
]
WebhookGraceFlag: TypeAlias = Annotated[
    float, typer.Option(help="Seconds for which webhooks are served after the program began to end.")
]
DrainTimeoutFlag: TypeAlias = Annotated[float, typer.Option(help="Seconds that reconciles have to end by themselves.")]
ShutdownTimeoutFlag: TypeAlias = Annotated[float, typer.Option(help="Seconds that the whole end may take.")]
PreflightFlag: TypeAlias = Annotated[
    bool, typer.Option("--preflight/--no-preflight", help="Ask first if this account may do what is declared.")
]
RecordAccessFlag: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="At the end, write down what was done, for `deltaloop rbac --from`."),
]
HttpFlag: TypeAlias = Annotated[
    str, typer.Option(metavar="NAME", help="What speaks HTTP: aiohttp, or asyncio, which costs less.")
]
LogFormatFlag: TypeAlias = Annotated[str, typer.Option(help="text or json.")]
LogLevelFlag: TypeAlias = Annotated[str, typer.Option(help="DEBUG, INFO, WARNING or ERROR.")]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunFlags:
    """The command line of ``deltaloop run``: one field is one flag, and its annotation says the help."""

    target: TargetArgument
    kubeconfig: KubeconfigFlag = None
    context: ContextFlag = None
    namespace: OnlyNamespaceFlag = ""
    embedded: EmbeddedFlag = False
    rbac: RbacFlag = False
    load: LoadFlag = None
    write_kubeconfig: WriteKubeconfigFlag = None
    leader_elect: LeaderElectFlag = False
    leader_election_id: LeaseNameFlag = ""
    leader_election_namespace: LeaseNamespaceFlag = ""
    identity: IdentityFlag = ""
    lease_duration: LeaseDurationFlag = 15.0
    renew_deadline: RenewDeadlineFlag = 10.0
    retry_period: RetryPeriodFlag = 2.0
    event_api: EventApiFlag = "v1"
    metrics_bind_address: MetricsAddressFlag = ""
    health_probe_bind_address: HealthAddressFlag = DEFAULT_HEALTH
    metrics_cert: MetricsCertFlag = None
    metrics_key: MetricsKeyFlag = None
    metrics_token_review: TokenReviewFlag = False
    webhook_bind_address: WebhookAddressFlag = DEFAULT_WEBHOOKS
    webhook_name: WebhookNameFlag = ""
    webhook_service: WebhookServiceFlag = ""
    webhook_url: WebhookUrlFlag = ""
    webhook_certificates: WebhookCertificatesFlag = None
    webhook_client_ca: WebhookClientCaFlag = None
    webhook_grace: WebhookGraceFlag = 5.0
    drain_timeout: DrainTimeoutFlag = 20.0
    shutdown_timeout: ShutdownTimeoutFlag = 30.0
    preflight: PreflightFlag = True
    record_access: RecordAccessFlag = None
    http: HttpFlag = "aiohttp"
    log_format: LogFormatFlag = "text"
    log_level: LogLevelFlag = "INFO"

    def command(self) -> RunCommand:
        """Load the controllers; return what is to be run.

        Raises:
            typer.BadParameter: Naming a flag whose value cannot be used.
            DeltaloopError: If there are no controllers to be had, or a name is none.
        """
        from deltaloop.cli.load_controllers import load_declared
        from deltaloop.cli.run import RunCommand

        with _as_bad_parameters():
            cluster, timing, metrics, health = self._cluster(), self._timing(), self._metrics(), self._health()
        events, http = event_api(self.event_api), http_of(self.http)
        module, controllers, webhooks = load_declared(self.target)
        definitions = list[dict[str, Any]]()
        if self.embedded:
            from deltaloop.cli.crd import program_definitions

            definitions = program_definitions(module, controllers, webhooks)
        election = self._election(controllers, timing)
        return RunCommand(
            controllers=controllers,
            cluster=cluster,
            definitions=tuple(definitions),
            namespace=self.namespace or None,
            election=election if self.leader_elect else None,
            event_api=events,
            metrics=metrics,
            metrics_required=bool(self.metrics_bind_address),
            health=health,
            drain_timeout=self.drain_timeout,
            shutdown_timeout=self.shutdown_timeout,
            preflight=self.preflight,
            record_access=self.record_access,
            http=http,
            webhooks=self._webhooks(webhooks),
        )

    def _cluster(self) -> ClusterFlags:
        from deltaloop.cli.run import ClusterFlags

        return ClusterFlags(
            kubeconfig=self.kubeconfig,
            context=self.context,
            embedded=self.embedded,
            rbac=self.rbac,
            load=tuple(self.load or ()),
            write_kubeconfig=self.write_kubeconfig,
        )

    def _timing(self) -> LeaderElectionConfig:
        from deltaloop.leaderelection import LeaderElectionConfig

        return LeaderElectionConfig(
            lease_duration=self.lease_duration, renew_deadline=self.renew_deadline, retry_period=self.retry_period
        )

    def _election(self, controllers: Sequence[Controller], timing: LeaderElectionConfig) -> LeaderElection:
        from deltaloop.cli.run import LeaderElection
        from deltaloop.cli.webhooks import program_name

        name = self.leader_election_id or "-".join(controller.name for controller in controllers)
        name = name or program_name(self.target)
        return LeaderElection(
            name=name, namespace=self.leader_election_namespace, identity=self.identity, config=timing
        )

    def _metrics(self) -> Listen | None:
        from deltaloop.runtime.program.pages import Listen

        return Listen.parse(
            self.metrics_bind_address or DEFAULT_METRICS,
            certificate=self.metrics_cert,
            key=self.metrics_key,
            token_review=self.metrics_token_review,
        )

    def _webhooks(self, webhooks: tuple[Webhook, ...]) -> RunWebhooks:
        from deltaloop.cli.run_webhooks import RunWebhooks
        from deltaloop.cli.webhooks import program_name
        from deltaloop.webhooks import WebhookServerOptions

        with _as_bad_parameters():
            listen = WebhookServerOptions.parse(self.webhook_bind_address)
            if listen is not None:
                listen = replace(listen, client_ca=self.webhook_client_ca, grace=self.webhook_grace)
        return RunWebhooks(
            name=self.webhook_name or program_name(self.target),
            webhooks=webhooks,
            listen=listen,
            service=self.webhook_service,
            url=self.webhook_url,
            folder=self.webhook_certificates,
        )

    def _health(self) -> Listen | None:
        from deltaloop.runtime.program.pages import Listen

        return Listen.parse(self.health_probe_bind_address)


def with_flags_of(kind: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command one flag for each field of a dataclass; it gets their values as keyword arguments."""

    def declare(function: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(kind, include_extras=True)
        fields = inspect.signature(kind).parameters.values()
        parameters = [field.replace(annotation=hints[field.name]) for field in fields]
        setattr(function, "__signature__", inspect.Signature(parameters))  # noqa: B010 - functions declare none
        function.__annotations__ = {name: hints[name] for name in hints}
        return function

    return declare


def configure(log_format: str, log_level: str) -> None:
    """Set the log up as the flags say.

    Raises:
        typer.BadParameter: If one of them is none.
    """
    if log_format not in ("text", "json"):
        raise typer.BadParameter(f"--log-format {log_format!r} is not text or json")
    try:
        configure_logging(output="json" if log_format == "json" else "text", level=log_level.upper())
    except ValueError:
        raise typer.BadParameter(f"{log_level!r} is not a level: DEBUG, INFO, WARNING or ERROR") from None


def http_of(name: str) -> Http:
    """Return what a flag says of who speaks HTTP.

    Raises:
        typer.BadParameter: If it is not known.
    """
    from deltaloop.client.transport.opening import Http

    for known in get_args(Http):
        if name == known:
            return cast("Http", known)
    raise typer.BadParameter(f"--http {name!r} is not {' or '.join(get_args(Http))}")


def event_api(name: str) -> EventApi:
    """Return the API of Events that a flag names.

    Raises:
        typer.BadParameter: If there is none of that name.
    """
    from deltaloop.events import EventApi

    try:
        return EventApi(name.removeprefix("core/"))
    except ValueError:
        known = " or ".join(api.value for api in EventApi)
        raise typer.BadParameter(f"--event-api {name!r} is not {known}") from None


@contextmanager
def _as_bad_parameters() -> Generator[None]:
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
