"""Driver of one member: renewed Lease, watched map, hand-overs, and the coordinator's duties.

Lease ──▶ term ──▶ map ──▶ caches of new ranges ──▶ reconciles in own ranges
                    ▲                                          │ range moves: reconciles and writes end
                    └───────────── compare-and-swap ◀──────────┘
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Protocol, Self, final

from deltaloop._internal.tracebacks import leaves_of
from deltaloop.api.errors import DeltaloopError, InvalidArgumentError
from deltaloop.api.kinds import CONFIG_MAP, LEASE
from deltaloop.api.list_options import ListOptions
from deltaloop.api.redaction import redact
from deltaloop.api.resource import Resource
from deltaloop.api.resource_version import compare_resource_versions
from deltaloop.api.status import AlreadyExistsError, ConflictError, NotFoundError
from deltaloop.cache.factory import InformerFactory
from deltaloop.cache.handlers import HandlerFuncs
from deltaloop.cache.informer import Informer
from deltaloop.client import Client, DeleteOptions
from deltaloop.leaderelection import LeaderElectionMetrics, LeaderElector, LeaseLock, Term
from deltaloop.leaderelection.clock import boot_time
from deltaloop.sharding.core.key_ranges import KeyRanges, ShardKey
from deltaloop.sharding.core.member import Member
from deltaloop.sharding.core.membership import MemberLease, Membership, OtherKeys
from deltaloop.sharding.core.ownership import NOISE_AFTER, Ownership, RangeState, ShardState
from deltaloop.sharding.core.planning import Report, combined_load, plan
from deltaloop.sharding.core.shard_map import InvalidShardMapError, ShardMap, ShardRange
from deltaloop.sharding.labels import LabelDriver
from deltaloop.sharding.objects import (
    KEY_LABEL,
    LEAVING_LABEL,
    SEEN_LABEL,
    SHARDS_LABEL,
    ShardOptions,
    key_text,
    map_text,
    member_lease,
    new_map,
    report_patch,
    reports,
)
from deltaloop.sharding.share import Share

_log: Final = logging.getLogger("deltaloop.sharding")
_POLL: Final = 0.02
"""Time in seconds between two checks whether the work in a moving range has ended."""
_RETRY: Final = 1.0
_SWITCH: Final = 2.0
"""Longest time in seconds for which other changes of the map wait for the write of an owner."""
_REPORT_PERIOD: Final = 10.0
_REPORT_DISTANCE: Final = 0.1
_POINTS: Final = 2048  # in the reports of all members, about 50 KB
_FEWEST_POINTS: Final = 32
_MOST_POINTS: Final = 256
_NEW_MAP_AFTER: Final = 2.0
"""Time in seconds for which a member waits for the map of other members, before it creates a map."""

_FIRST_RANGES: Final = 64


class ShardWork(Protocol):
    async def hold(self, ranges: KeyRanges) -> None:
        """Cache exactly the objects of the ranges. Wait until the caches are complete."""
        ...

    def is_running(self, is_in: Callable[[str], bool]) -> bool: ...

    def interrupt(self, is_in: Callable[[str], bool]) -> None: ...

    def forget(self, is_in: Callable[[str], bool]) -> None: ...

    def queue(self, is_in: Callable[[str], bool]) -> None: ...

    def objects(self) -> Mapping[int, float]: ...

    def reached(self) -> int: ...

    def queue_keys(self, keys: list[str]) -> None: ...


@final
class ShardMember:
    """One member of a sharded program.

    Use it as an async context manager while the program runs. In each term of ``elector``, enter ``joined``.

    Attributes:
        elector: Elector of the member's own Lease.
        share: Keys of the member.
    """

    def __init__(
        self,
        client: Client,
        options: ShardOptions,
        *,
        identity: str,
        metrics: LeaderElectionMetrics | None = None,
        clock: Callable[[], float] = boot_time,
        random: Callable[[], float] = random.random,
    ) -> None:
        """Create a member that has not joined.

        Args:
            client: Client of the cluster. The member does not close it.
            options: Names and durations.
            identity: Unique name of the member.
            metrics: Metrics of the renewals.
            clock: Monotonic clock in seconds, which must run during suspend.
            random: Source of numbers in [0, 1) for jitter.
        """
        self.options = options
        self.identity = identity
        lease = options.lease_name(identity)
        self._labels = {SHARDS_LABEL: options.name, LEAVING_LABEL: "false", KEY_LABEL: key_text(options)}
        lock = LeaseLock(client, namespace=options.namespace, name=lease, identity=identity, labels=self._labels)
        self.elector: LeaderElector = LeaderElector(
            lock, options.election, client=client, metrics=metrics, clock=clock, random=random
        )
        duration = float(math.ceil(options.election.lease_duration))
        by: ShardKey = "label" if options.label else options.key
        self.share: Share = Share(by, member=identity, settling=duration, clock=clock, label=options.label)
        self.share.range_name = self._range_name
        self._client = client
        self._clock = clock
        self._lease = lease
        self._member = Member()
        self._membership = Membership(duration)
        self._ownership = Ownership(duration + NOISE_AFTER)
        self._changed = asyncio.Event()
        self._factory = InformerFactory(client, namespace=options.namespace)
        self._leases: Informer[Resource] = self._factory.informer(
            LEASE, label_selector=f"{SHARDS_LABEL}={options.name}"
        )
        self._maps: Informer[Resource] = self._factory.informer(
            CONFIG_MAP, field_selector=f"metadata.name={options.map_name}"
        )
        self._holders: dict[str, str] = {}
        self._stored: Resource | None = None
        self._decoded: Resource | None = None
        self._began_at = self._seen_at = 0.0
        self._stopping_since: dict[tuple[int, int, int], float] = {}
        self._reported: Report | None = None
        self._reported_at = -math.inf
        self._wait_until = self._retry_at = self._yield_until = -math.inf
        self._at_rest: object = None
        self._mine: Sequence[ShardRange] = ()
        self._unowned: frozenset[int] = frozenset()
        self._leaving = False
        self._invalid = ""
        self.on_left: Callable[[], object] = lambda: None
        """Function called when a leaving member has given away its ranges."""

    # -- state

    @property
    def state(self) -> ShardState:
        """Return the ranges and members in the view of this member."""
        now, member = self._clock(), self._member
        working = {(each.start, each.end) for each in member.working}
        ranges = tuple(
            RangeState(
                each.start,
                each.end,
                each.epoch,
                self._holders.get(each.owner, ""),
                self._holders.get(each.successor, ""),
                bool(member.uid) and each.owner == member.uid,
                (each.start, each.end) in working and self.share.owned.covers(each.start, each.end),
                self._ownership.unowned_for(each.start, now),
            )
            for each in member.map.ranges
        )
        unowned = tuple(each for each in ranges if (each.unowned_for or 0.0) > self._ownership.limit)
        members = tuple(sorted(holder for holder in self._holders.values() if holder))
        return ShardState(self.options.name, self.identity, members, ranges, unowned)

    def range_of(self, key: str) -> RangeState | None:
        """Return the range of a key, or None before the first map."""
        number = self.share.number_of(key)
        return next((each for each in self.state.ranges if each.start <= number < each.end), None)

    def _range_name(self, key: str) -> str:
        number = self.share.number_of(key)
        return self._member.map.find(number).name if self._member.map.ranges and number >= 0 else ""

    @property
    def has_left(self) -> bool:
        """True if the member wants to leave, and has no range or no other member exists."""
        if not self._leaving or not self.elector.is_leader:
            return self._leaving
        others = [lease for lease in self._membership.alive() if not lease.leaving and lease.uid != self._member.uid]
        return not self._member.held or not others

    # -- life

    async def __aenter__(self) -> Self:
        self._began_at = self._clock()
        for informer in (self._leases, self._maps):
            informer.add_event_handler(HandlerFuncs(on_add=self._wake, on_update=self._wake, on_delete=self._wake))
        await self._factory.__aenter__()
        await self._factory.wait_for_sync()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Delete the released Lease, and stop watching."""
        with suppress(DeltaloopError):
            found = await self._client.get(LEASE, self._lease, namespace=self.options.namespace, timeout=_RETRY)
            if not member_lease(found)[1]:
                await self._delete(member_lease(found)[0])
        await self._factory.shutdown()

    def leave(self) -> None:
        """Give all ranges to other members.

        The next renewal announces it. The member works until they are ready.
        """
        if not self._leaving:
            self._leaving = True
            self._labels[LEAVING_LABEL] = "true"
            self._changed.set()

    @asynccontextmanager
    async def joined(self, term: Term, work: ShardWork) -> AsyncGenerator[None, None]:
        """Take part in the distribution of the ranges during a term."""
        await self._require_same_key()
        self.share.is_valid = lambda: term.is_leading
        task = asyncio.create_task(self._take_part(work), name=f"shards of {self.options.name}")
        task.add_done_callback(_report_failure)
        try:
            yield
            if self._leaving and term.is_leading:
                await self._give_up(work)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self.share.change((), ())
            self.share.held = KeyRanges()
            self._own(work, ())
            self._member.uid = ""
            self._stopping_since.clear()

    async def _require_same_key(self) -> None:
        own, others = key_text(self.options), OtherKeys(self.options.election.lease_duration)
        selection = ListOptions(label_selector=f"{SHARDS_LABEL}={self.options.name}")
        while True:
            try:
                found = await self._client.list(
                    LEASE, namespace=self.options.namespace, options=selection, timeout=_RETRY
                )
            except (DeltaloopError, OSError) as error:
                self._failed("cannot read the members of a shard program, retrying", error)
            else:
                different = {
                    lease: (holder, key)
                    for lease, holder, key in (member_lease(stored) for stored in found)
                    if holder and key not in ("", own)
                }
                now = self._clock()
                alive = others.saw(different, now)
                if alive is not None:
                    holder, key = different[alive]
                    problem = f"must be {key!r} as in member {holder!r} of {self.options.name}, got {own!r}. "
                    remedy = "Stop all members before you change it."
                    raise InvalidArgumentError(problem + remedy, argument="ShardOptions.key")
                if others.have_expired(now):
                    return
            await asyncio.sleep(_RETRY / 4)

    async def _give_up(self, work: ShardWork) -> None:
        """Release the remaining ranges after the end of all work, so that the next member need not wait."""
        ranges = [each for each in self._member.map.ranges if each.owner == self._member.uid]
        self.share.change((), ())
        if work.is_running(lambda _: True) or any(self.share.writes_until(each) > self._clock() for each in ranges):
            return
        with suppress(DeltaloopError, TimeoutError):
            async with asyncio.timeout(_RETRY):
                await self._write(self._member.released_map())

    def _wake(self, *_: object) -> None:
        self._changed.set()

    # -- steps of one term

    async def _take_part(self, work: ShardWork) -> None:
        holding: asyncio.Task[None] | None = None
        wanted, held = None, KeyRanges()
        self._member.uid, published = await self._find_uid()
        following: asyncio.Task[None] | None = None
        if self.share.labels is not None:
            self.share.labels.restart()
            driver = LabelDriver(self._client, self.options, self.share.labels, self._labels, self._clock)
            following = asyncio.create_task(driver.run(self._member.uid, published, work), name="labels of members")
            following.add_done_callback(_report_failure)
        self._decoded = None  # the state of the last term must not remain
        try:
            while True:
                self._changed.clear()
                self._see()
                hold = KeyRanges((each.start, each.end) for each in self._member.held)
                held = held.common(hold)
                if holding is not None and holding.done() and wanted is not None:
                    failed, holding = holding.exception(), None
                    if failed is None:
                        held = wanted.common(hold)
                    else:
                        self._failed("caches of new ranges are not complete, retrying", failed)
                        wanted, self._wait_until = None, self._clock() + _RETRY
                # Changes of the caches must not overlap. If a change was canceled, it could take effect later.
                is_due = holding is None and (wanted is not None or self._clock() >= self._wait_until)
                if hold != wanted and is_due:
                    wanted = hold
                    new = [each for each in self._member.held if not held.covers(each.start, each.end)]
                    if new:
                        _log.info("filling caches of ranges", extra=self._about(new))
                    holding = asyncio.create_task(work.hold(hold), name=f"caches of {self.options.name}")
                    holding.add_done_callback(self._wake)
                self._share_out(work, held)
                if self.has_left and self._leaving:
                    self.on_left()
                if self.share.is_valid():
                    if await self._advance():
                        continue
                    await self._report(work, held, hold)
                await self._wait()
        finally:
            tasks = [task for task in (holding, following) if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _find_uid(self) -> tuple[str, str]:
        """Read the Lease of this term. A cached Lease could be an earlier one of the same name."""
        while True:
            try:
                found = await self._client.get(LEASE, self._lease, namespace=self.options.namespace, timeout=_RETRY)
            except (DeltaloopError, OSError) as error:
                self._failed("cannot read the Lease of a shard member, retrying", error)
                await asyncio.sleep(_RETRY)
            else:
                return found.uid, found.labels.get(SEEN_LABEL, "")

    async def _wait(self) -> None:
        now, seen_at = self._clock(), self._seen_at
        until = [self._membership.next_at(seen_at), now + _REPORT_PERIOD]
        if self._member.stopping:
            until.append(now + _POLL)
        unowned_at = (self._ownership.due_at() or -math.inf) + self._ownership.limit + _POLL
        until += [at for at in (self._wait_until, self._yield_until, unowned_at) if at > seen_at]
        if self._reported is None or not self._stored:
            until.append(now + _RETRY)
        with suppress(TimeoutError):
            async with asyncio.timeout(max(_POLL, min(until) - now)):
                await self._changed.wait()

    def _see(self) -> None:
        """Process the newest map and Leases."""
        now = self._seen_at = self._clock()
        found = next(iter(self._maps.indexer.list()), None)
        if found is not None and (
            self._stored is None
            or self._stored.uid != found.uid
            or compare_resource_versions(found.resource_version, self._stored.resource_version) > 0
        ):
            self._stored = found
            self._wait_until = min(self._wait_until, self._retry_at)
        if found is None and self._stored is not None and self._maps.has_synced:
            reached = self._maps.resource_version
            if compare_resource_versions(reached, self._stored.resource_version) >= 0:
                self._stored = None  # deleted; members with a known map create it again
        stored = self._stored
        if stored is not None and stored is not self._decoded:
            self._decoded = stored
            try:
                self._member.saw(ShardMap.decode(map_text(stored)), stored.resource_version)
                self._invalid = ""
            except InvalidShardMapError as error:
                if error.problem != self._invalid:
                    _log.error("shard map is invalid", extra={"map": self.options.map_name, "problem": error.problem})
                self._invalid = error.problem
        if not self._member.is_switching:
            self._yield_until = -math.inf
        elif self._yield_until == -math.inf:
            self._yield_until = now + _SWITCH
        leases = [member_lease(lease) for lease in self._leases.indexer.list()]
        owners = [each.owner for each in self._member.map.ranges]
        self._membership.saw([lease for lease, *_ in leases], owners, now)
        late = {lease.uid: lease.duration for lease in self._membership.to_evict(now)}
        self._holders = {lease.uid: holder for lease, holder, _ in leases if holder}
        alive = {uid: holder for uid, holder in self._holders.items() if uid not in late}
        self._ownership.saw(self._member.map, alive, late, now)
        unowned = () if self._ownership.due_at() is None else self.state.unowned
        if any(each.start not in self._unowned for each in unowned):
            _log.error("ranges have no owner", extra=self._about(unowned))
        self._unowned = frozenset(each.start for each in unowned)

    def _share_out(self, work: ShardWork, held: KeyRanges) -> None:
        """Give the ranges to the program, and check in which ranges the work has ended."""
        member, share, now = self._member, self.share, self._clock()
        for each in member.held:
            if held.covers(each.start, each.end):
                member.filled(each)
        working = [each for each in member.working if held.covers(each.start, each.end)]
        before, share.held = share.owned, held
        share.change(working, member.stopping)
        if work.is_running(share.loses):
            work.interrupt(share.loses)  # only after a person has changed the map
        self._own(work, [each for each in member.map.ranges if each.owner == member.uid])
        new = [each for each in working if not before.covers(each.start, each.end)]
        if new:
            _log.info("taking keys of ranges", extra=self._about(new))
            if self._stored is not None:
                gained = KeyRanges((each.start, each.end) for each in new)
                rates = combined_load(member.map, reports(self._stored)).rates
                share.time.expect(each for each in rates if each[0] in gained)
            work.queue(lambda key: share.number_of(key) in share.owned and share.number_of(key) not in before)
        since = self._stopping_since
        self._stopping_since = {_key(each): since.get(_key(each), now) for each in member.stopping}
        for each in member.stopping:
            is_in = self._is_in(each)
            if not work.is_running(is_in) and share.writes_until(each) <= now:
                member.idle(each)
            elif now >= self._stopping_since[_key(each)] + self.options.drain_timeout:
                work.interrupt(is_in)

    def _own(self, work: ShardWork, ranges: Sequence[ShardRange]) -> None:
        own = KeyRanges((each.start, each.end) for each in ranges)
        lost = [each for each in self._mine if not own.covers(each.start, each.end)]
        self._mine = ranges
        if lost:
            _log.info("gave up ranges", extra=self._about(lost))
            work.forget(self.share.loses)

    def _is_in(self, each: ShardRange) -> Callable[[str], bool]:
        return lambda key: self.share.is_in(key, each)

    async def _advance(self) -> bool:
        """Send at most one request that changes the map or the members, and return True after a request."""
        if self._clock() < self._wait_until:
            return False
        try:
            if self._stored is None or self._invalid:
                return await self._create_map()
            new = self._member.next_map(in_turn=not -math.inf < self._yield_until <= self._clock())
            if new is not None:
                return await self._write(new)
            return await self._coordinate()
        except (ConflictError, AlreadyExistsError) as error:
            # The watch delivers the newer version.
            self._retry_at = self._clock()
            self._wait_until = self._retry_at + _RETRY
            _log.debug("shard map has changed", extra={"map": self.options.map_name, "reason": redact(str(error))})
        except (DeltaloopError, OSError) as error:
            self._wait_until = self._retry_at = self._clock() + _RETRY
            self._failed("request of a shard member failed, retrying", error)
        return False

    async def _create_map(self) -> bool:
        known = self._member.map.ranges
        others = [lease for lease in self._membership.alive() if lease.uid != self._member.uid]
        if not known and not self._is_coordinator():
            return False
        # Members that know the map create it again. A member that does not must give them time.
        if not known and others and self._clock() < self._began_at + _NEW_MAP_AFTER:
            self._wait_until = self._began_at + _NEW_MAP_AFTER
            return False
        return await self._write(self._member.map if known else ShardMap.of_equal_ranges(_FIRST_RANGES))

    def _is_coordinator(self) -> bool:
        late = {lease.uid for lease in self._membership.to_evict(self._clock())}
        fresh = [lease for lease in self._membership.alive() if lease.uid in self._holders and lease.uid not in late]
        return min((lease.uid for lease in fresh), default="") == self._member.uid != ""

    async def _coordinate(self) -> bool:
        """Delete the Leases of crashed members, and distribute ranges."""
        if not self._is_coordinator() or self._stored is None:
            return False
        now = self._clock()
        for lease in self._membership.to_evict(now):
            if lease.uid != self._member.uid and await self._delete(lease):
                self._membership.evicted(lease)
                _log.warning("removed a member after its lease expired", extra={"lease": lease.name, "uid": lease.uid})
                return True
        if not any(each.owner in self._holders for each in self._member.map.ranges):
            first_plan_at = self._membership.first_plan_at(self._began_at)
            if now < first_plan_at:
                self._wait_until = first_plan_at
                return False
        members = [self._marked(lease) for lease in self._membership.alive()]
        dead, is_late = self._membership.dead(now), now >= self._began_at + _REPORT_PERIOD
        if now < self._yield_until and not dead:
            return False
        asked = (self._member.version, dead, is_late, *sorted((each.uid, each.leaving) for each in members))
        if asked == self._at_rest:
            return False
        load = combined_load(self._member.map, reports(self._stored))
        moves = load.covered or is_late
        new = plan(self._member.map, members, dead, load.points, moves=moves, cuts=load.exact, by_time=load.by_time)
        if new is None:
            self._at_rest = asked
            return False
        return await self._write(new)

    def _marked(self, lease: MemberLease) -> MemberLease:
        if lease.uid != self._member.uid or not self._leaving:
            return lease
        return MemberLease(lease.name, lease.uid, lease.version, lease.duration, leaving=True)

    async def _write(self, new: ShardMap) -> bool:
        stored, loads = self._stored, {} if self._stored is None else reports(self._stored)
        owners = {each.owner for each in new.ranges}
        keep = frozenset(uid for uid in loads if uid in owners or uid in self._holders)
        if not combined_load(new, {uid: loads[uid] for uid in keep}).covered:
            keep = frozenset(loads)  # the reports of former owners apply until the new owners have reported
        fields = new_map(self.options, new.encode(), stored, reporters=keep)
        if stored is None:
            answer = await self._client.create(CONFIG_MAP, fields, namespace=self.options.namespace, timeout=_RETRY)
        else:
            answer = await self._client.update(CONFIG_MAP, fields, timeout=_RETRY)
        self._stored = answer
        moved = [each for each in new.ranges if each not in self._member.map.ranges]
        _log.debug("changed the shard map", extra=self._about(moved))
        return True

    async def _delete(self, lease: MemberLease) -> bool:
        """Delete a Lease, and return False if it is missing, because its member may still work then."""
        options = DeleteOptions(uid=lease.uid, resource_version=lease.version)
        place = self.options.namespace
        try:
            await self._client.delete(LEASE, lease.name, namespace=place, options=options, timeout=_RETRY)
        except NotFoundError:
            return False
        return True

    async def _report(self, work: ShardWork, held: KeyRanges, hold: KeyRanges) -> None:
        """Write the load into the ConfigMap if it differs from the last report."""
        now = self._clock()
        if self._stored is None or held != hold or not held or now < self._reported_at + _RETRY:
            return
        before = self._reported
        moving = before is not None and any(each.successor for each in self._member.map.ranges)
        if moving or now < self._yield_until:
            return  # reports and hand-overs change the same object
        if before is not None and before.held == held and now < self._reported_at + _REPORT_PERIOD:
            return
        self._reported_at = now
        most = min(max(_FEWEST_POINTS, _POINTS // max(1, len(self._holders))), _MOST_POINTS)
        starts = [each.start for each in self._member.map.ranges]
        report = Report.of(held, work.objects(), most, starts, rates=self.share.time.rates(held, now))
        if before is not None and before.held == held and report.distance(before) < _REPORT_DISTANCE:
            return
        patch = report_patch(self._member.uid, report)
        try:
            await self._client.patch(
                CONFIG_MAP, self.options.map_name, patch, namespace=self.options.namespace, timeout=_RETRY
            )
        except (DeltaloopError, OSError) as error:
            self._failed("cannot report the load, retrying", error)
            return
        self._reported = report

    def _failed(self, message: str, error: BaseException) -> None:
        error = next(leaves_of(error))
        extra = {"shards": self.options.name, "error": type(error).__name__, "reason": redact(str(error))}
        _log.warning(message, extra=extra)

    def _about(self, ranges: Sequence[ShardRange | RangeState]) -> dict[str, Any]:
        return {
            "shards": self.options.name,
            "ranges": [each.name for each in ranges[:10]],
            "of": len(ranges),
        }


def _key(each: ShardRange) -> tuple[int, int, int]:
    return each.start, each.end, each.epoch


def _report_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        _log.critical("shard member failed, a bug of deltaloop", exc_info=task.exception())
