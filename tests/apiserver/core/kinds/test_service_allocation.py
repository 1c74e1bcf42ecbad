"""Addresses and ports of Services against a naive model: none is given twice; seeded bugs are found."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from deltaloop.api.json_values import at, integer, items, mapping
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core.kinds import service, service_allocation
from deltaloop.apiserver.core.kinds.service_allocation import Taken, allocate
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.strategy import Moment
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes.create import create
from deltaloop.apiserver.core.writes.delete import delete
from deltaloop.apiserver.core.writes.patch import patch
from deltaloop.apiserver.core.writes.patching import merge_patch
from tests.apiserver.core.facts import NAMESPACE, Cores
from tests.nightly import examples

TYPES = st.sampled_from(("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"))
NAMES = st.sampled_from("abcd")


class ServiceMachine(RuleBasedStateMachine):
    """Services are made, changed and removed; two addresses and two ports are asked for by name."""

    def __init__(self) -> None:
        super().__init__()
        self.cores = Cores()
        self.served = self.cores.served("", "v1", "services")
        self.specs: dict[str, dict[str, Any]] = {}

    def spec(self, kind: str, address: str, port: int) -> dict[str, Any]:
        ports: list[dict[str, Any]] = [{"name": "a", "port": 1}, {"name": "b", "port": 1, "protocol": "UDP"}]
        if port and kind in ("NodePort", "LoadBalancer"):
            ports[0]["nodePort"] = port
        more = {"externalName": "a.b"} if kind == "ExternalName" else {"clusterIP": address} if address else {}
        return {"type": kind, "ports": ports, **more}

    @rule(
        name=NAMES,
        kind=TYPES,
        address=st.sampled_from(("", "10.0.0.7", "None")),
        port=st.sampled_from((0, 30_007)),
        dry=st.booleans(),
    )
    def create(self, name: str, kind: str, address: str, port: int, dry: bool) -> None:
        body = {"metadata": {"name": name}, "spec": self.spec(kind, address if kind == "ClusterIP" else "", port)}
        sent = body["spec"]
        free = name not in self.specs and sent.get("clusterIP", "") not in self.addresses() - {"None"}
        free = free and at(sent["ports"][0], "nodePort") not in self.ports("TCP")
        try:
            made = create(
                self.cores.state.own_write(self.served, NAMESPACE, "", self.cores.moment(), dry_run=dry), body
            )
        except ApiError as error:
            if free:
                raise AssertionError(error.status.message) from error
            return
        assert free
        if not dry:
            self.specs[name] = mapping(decode_object(self.served, made)["spec"])

    @precondition(lambda self: self.specs)
    @rule(data=st.data(), kind=TYPES, dry=st.booleans())
    def change_type(self, data: st.DataObject, kind: str, dry: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.specs)))
        before = self.specs[name]
        spec: dict[str, Any] = {"type": kind, "externalName": "a.b" if kind == "ExternalName" else None}
        if before.get("clusterIP") == "None":
            return
        changed = patch(
            self.cores.state.own_write(self.served, NAMESPACE, name, self.cores.moment(), dry_run=dry),
            lambda present: merge_patch(present, {"spec": spec}),
        )
        after = mapping(decode_object(self.served, changed)["spec"])
        if "ExternalName" not in (before["type"], kind):
            assert after["clusterIP"] == before["clusterIP"]
        if {before["type"], kind} <= {"NodePort", "LoadBalancer"}:
            assert after["ports"] == before["ports"]
        if not dry:
            self.specs[name] = after

    @precondition(lambda self: self.specs)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.specs)))
        delete(self.cores.state.own_write(self.served, NAMESPACE, name, Moment(now=0)), DeleteOptions())
        del self.specs[name]

    def addresses(self) -> set[str]:
        return {spec["clusterIP"] for spec in self.specs.values() if spec.get("clusterIP")}

    def ports(self, protocol: str) -> set[int]:
        ports = [port for spec in self.specs.values() for port in map(mapping, items(spec.get("ports")))]
        return {integer(port["nodePort"]) for port in ports if port.get("nodePort") and port["protocol"] == protocol}

    @invariant()
    def each_has_what_its_type_needs(self) -> None:
        for spec in self.specs.values():
            assert bool(spec.get("clusterIP")) == (spec["type"] != "ExternalName")
            for port in spec["ports"]:
                assert ("nodePort" in port) == (spec["type"] in ("NodePort", "LoadBalancer"))
                assert 30_000 <= port.get("nodePort", 30_000) < 32_768

    @invariant()
    def nothing_is_given_twice(self) -> None:
        given = [spec["clusterIP"] for spec in self.specs.values() if spec.get("clusterIP") not in (None, "None")]
        assert len(given) == len(set(given))
        ports = [
            (port["nodePort"], port["protocol"])
            for spec in self.specs.values()
            for port in spec["ports"]
            if port.get("nodePort")
        ]
        assert len(ports) == len(set(ports))


SHORT = settings(
    max_examples=examples(40), stateful_step_count=12, derandomize=True, database=None, phases=[Phase.generate]
)


def test_state_machine() -> None:
    run_state_machine_as_test(ServiceMachine, settings=SHORT)


def _nothing(*_: object, **__: object) -> None:
    return None


def _nothing_taken(_: object) -> Taken:
    return Taken()


def _first_address(*_: object) -> str:
    return "10.0.0.1"


def _first_port(*_: object) -> int:
    return 30_000


def _false(*_: object) -> bool:
    return False


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("module", "part", "broken"),
    [
        (service_allocation, "_free_address", _first_address),
        (service_allocation, "_free_port", _first_port),
        (service_allocation, "_FIRST_PORT", 40_000),
        (service_allocation, "needs_ports", _false),
        (service_allocation, "needs_address", _false),
        (service, "keep_allocated", _nothing),
        (service, "_taken", _nothing_taken),
    ],
)
def test_seeded_bugs_are_detected(module: object, part: str, broken: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, part, broken)
    with pytest.raises((AssertionError, ApiError, KeyError, ExceptionGroup)):
        run_state_machine_as_test(ServiceMachine, settings=settings(SHORT, max_examples=400))


def test_first_address_range_is_used_before_the_next() -> None:
    taken = Taken()
    for number in range(256):
        spec: dict[str, Any] = {"type": "ClusterIP"}
        assert allocate(spec, taken, before={}, random=number * 0.618 % 1) == []
    first = {address for address in taken.addresses if address.startswith("10.0.0.")}
    assert (len(taken.addresses), len(first)) == (256, 255)
    assert "10.0.0.0" not in first


def test_exhausted_ports_give_an_error_or_zero() -> None:
    taken = Taken(ports={(number, "TCP") for number in range(30_000, 32_767)})
    spec: dict[str, Any] = {"type": "NodePort", "ports": [{"port": 1, "protocol": "TCP"}]}
    assert allocate(spec, taken, before={}, random=0.5) == []
    assert spec["ports"][0]["nodePort"] == 32_767
