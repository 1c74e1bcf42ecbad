import deltaloop as dl
from deltaloop.testing import Harness
from greeter import Greeting, Spec, reconcile


async def test_greeting_survives_crash(deltaloop_harness: Harness) -> None:
    await deltaloop_harness.install(Greeting)
    await deltaloop_harness.start(reconcile)
    client = deltaloop_harness.client
    hello = Greeting(dl.ObjectMeta(name="a"), Spec("hello"))
    await client.create(Greeting, hello)
    await deltaloop_harness.crash()
    await deltaloop_harness.restart()
    await deltaloop_harness.settled()
    found = await client.get(dl.kinds.CONFIG_MAP, "a")
    assert found["data"]["text"] == "hello"
