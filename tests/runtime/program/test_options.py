"""Options of ``dl.run``: invalid values are rejected at once, and each error names the options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deltaloop as dl
from deltaloop._internal.option_types import OptionTypeError
from deltaloop.errors import InvalidArgumentError, RunOptionError
from deltaloop.runtime.program.options import metrics_address
from tests.having import having


@dl.controller(dl.kinds.CONFIG_MAP)
async def reconcile(request: dl.Request, ctx: dl.Context) -> None: ...


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"load": (Path("crds"),)}, ("load", "embedded")),
        ({"embedded": True, "kubeconfig": Path("config")}, ("embedded", "kubeconfig")),
        ({"namespace": "A_B"}, ("namespace",)),
        ({"leader_election_id": "A"}, ("leader_election_id",)),
        ({"drain_timeout": -1.0}, ("drain_timeout",)),
        ({"webhook_url": "https://192.0.2.7:9443/path?query"}, ("webhook_url",)),
        ({"metrics_bind_address": "{nowhere}"}, ("metrics_bind_address",)),
        ({"processes": 0}, ("processes",)),
        ({"processes": 2, "leader_elect": True}, ("leader_elect", "shards")),
        ({"shard_by_name": True}, ("shard_by_name", "shards")),
        ({"processes": 2, "record_access": "file"}, ("record_access", "processes")),
        ({"retry_period": 20.0}, ("lease_duration", "renew_deadline", "retry_period")),
    ],
)
def test_invalid_value_raises_error_with_option_names(options: dict[str, Any], named: tuple[str, ...]) -> None:
    with pytest.raises(RunOptionError) as raised:
        dl.RunOptions(**options)
    assert raised.value.options == named
    assert f"RunOptions.{named[0]} " in str(raised.value).replace(",", " ")
    assert raised.value.described(str.upper).startswith(named[0].upper())


def test_files_can_be_strings(tmp_path: Path) -> None:
    options = dl.RunOptions(metrics_cert="tls.crt", metrics_key=Path("tls.key"), load=(str(tmp_path),), embedded=True)
    address = metrics_address(options)
    assert address is not None
    assert (address.certificate, address.key) == (Path("tls.crt"), Path("tls.key"))


def test_value_of_wrong_type_raises_error() -> None:
    with pytest.raises(OptionTypeError) as raised:
        dl.RunOptions(embedded="yes")  # type: ignore[arg-type]
    assert raised.value.option == "RunOptions.embedded"


async def test_arguments_that_are_not_controllers_or_webhooks_are_rejected() -> None:
    wrong: list[Any] = [(), (reconcile.function,), ([reconcile],)]
    for declared in wrong:
        with pytest.raises(InvalidArgumentError, check=having(argument="arguments of run()")):
            await dl.run(*declared)
