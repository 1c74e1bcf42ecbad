"""The flags of ``deltaloop run``, some of which ``rbac`` has, too; what they mean is in ``controller_commands.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

DEFAULT_METRICS: Final = "127.0.0.1:8080"
DEFAULT_HEALTH: Final = "127.0.0.1:8081"

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
    str, typer.Option(metavar="HOST:PORT", help="Where /healthz and /readyz are; 0 for none.")
]
MetricsCertFlag: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Certificate of /metrics, as PEM.")
]
MetricsKeyFlag: TypeAlias = Annotated[Path | None, typer.Option(metavar="FILE", help="Its key, as PEM.")]
TokenReviewFlag: TypeAlias = Annotated[
    bool,
    typer.Option("--metrics-token-review", help="Answer /metrics only to those whom the API server allows to get it."),
]
DrainTimeoutFlag: TypeAlias = Annotated[float, typer.Option(help="Seconds that reconciles have to end by themselves.")]
ShutdownTimeoutFlag: TypeAlias = Annotated[float, typer.Option(help="Seconds that the whole end may take.")]
PreflightFlag: TypeAlias = Annotated[
    bool, typer.Option("--preflight/--no-preflight", help="Ask first what this account may list and watch.")
]
RecordAccessFlag: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="At the end, write down what was done, for `deltaloop rbac --from`."),
]
LogFormatFlag: TypeAlias = Annotated[str, typer.Option(help="text or json.")]
LogLevelFlag: TypeAlias = Annotated[str, typer.Option(help="DEBUG, INFO, WARNING or ERROR.")]
