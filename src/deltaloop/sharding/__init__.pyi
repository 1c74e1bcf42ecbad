from deltaloop.sharding.core.ownership import RangeState as RangeState
from deltaloop.sharding.core.ownership import ShardState as ShardState
from deltaloop.sharding.member import ShardMember as ShardMember
from deltaloop.sharding.objects import ShardOptions as ShardOptions
