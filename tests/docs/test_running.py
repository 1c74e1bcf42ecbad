"""The runner finds wrong snippets: each page here has one, and none of them goes by."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.docs import console, terminal
from tests.docs.running import SnippetError, open_page
from tests.docs.snippets import PageError, blocks

GOOD = """
    <!-- snippet: hidden
    name = "a"
    -->
    ```python
    import asyncio

    async with dl.connect() as client:
        made = await client.create(dl.kinds.CONFIG_MAP, {"metadata": {"name": name, "namespace": "default"}})
    print(made.name, "of", made.namespace)
    ```

    <!-- snippet: prints -->
    ```text
    a of ...
    ```

    <!-- snippet: fails with NotFoundError -->
    ```python
    async def main() -> None:
        async with dl.connect() as client:
            await client.get(dl.kinds.CONFIG_MAP, "b", namespace="default")


    asyncio.run(main())
    ```

    <!-- snippet: stops after 0.02 s -->
    ```python
    async def forever() -> None:
        await asyncio.sleep(100)


    asyncio.run(forever())
    ```

    ```python title="greeting.py"
    WORD = "hello"
    ```

    ```python
    from greeting import WORD

    assert WORD == "hello"
    ```

    ```console
    $ cat greeting.py
    WORD = ...
    ```

    ```sh
    deltaloop apiserver --write-kubeconfig other.kubeconfig
    ```

    ```sh
    cat other.kubeconfig
    ```

    <!-- snippet: without nonsense: nobody has such a file -->
    ```sh
    cat nonsense
    podman build .
    ```

    ```python title="test_greeting.py"
    import asyncio
    from greeting import WORD


    async def test_greeting() -> None:
        await asyncio.sleep(3600)
        assert WORD == "hello"
    ```

    <!-- snippet: skip: only to be compiled -->
    ```python
    await nobody.knows(this)
    ```

    ```yaml
    a: 1
    ```
"""

WRONG = {
    "a name that is not there": "```python\nnobody\n```",
    "an API that is not there": "```python\ndl.RateLimitingQueue(nam='a')\n```",
    "an assert that does not hold": "```python\nassert 1 == 2\n```",
    "a syntax error in what is skipped": "<!-- snippet: skip: needs a cluster -->\n```python\na b\n```",
    "an output that is another one": "```python\nprint(1)\n```\n<!-- snippet: prints -->\n```text\n2\n```",
    "an exception that does not come": "<!-- snippet: fails with KeyError -->\n```python\n1\n```",
    "another exception": "<!-- snippet: fails with KeyError -->\n```python\n1 / 0\n```",
    "an end of what has none": "<!-- snippet: stops after 5 s -->\n```python\nawait asyncio.sleep(0)\n```",
    "an option that is not there": "```sh\ndeltaloop apiserver --nonsense\n```",
    "a command that is not there": "```console\n$ deltaloop nonsense\n```",
    "a target that is not there": "```sh\nmake nonsense\n```",
    "a slip in a program's name": "```sh\ndetlaloop apiserver\n```",
    "a command that fails": "```sh\ncat nonsense\n```",
    "a program that does not start": "```sh\ndeltaloop run nonsense.py --embedded\n```",
    "commands to leave out that are not there": "<!-- snippet: without dog: no dogs are here -->\n```sh\ncat a\n```",
    "another output of a command": "```console\n$ cat examples/__init__.py\nnonsense\n```",
    "YAML that cannot be read": "```yaml\na: [1\n```",
    "TOML that cannot be read": "```toml\na =\n```",
    "a test that fails": "```python\ndef test_it() -> None:\n    assert False\n```",
    "a console without a prompt": "```console\nmake test\n```",
}

UNREADABLE = {
    "no language": "```\na\n```",
    "not closed": "```python\na",
    "unknown words": "<!-- snippet: run this -->\n```python\n```",
    "a skip without a reason": "<!-- snippet: skip -->\n```python\n```",
    "a comment above no fence": "<!-- snippet: prints -->\ntext",
    "a comment at the end": "```text\n```\n<!-- snippet: prints -->",
    "a command outside of a fence": "text\n\n    deltaloop run nonsense",
}


def run(text: str, folder: Path) -> None:
    with open_page("docs/page.md", folder) as page:
        for block in blocks("docs/page.md", textwrap.dedent(text)):
            page.run(block)


@pytest.mark.real_time
def test_valid_page_runs(tmp_path: Path) -> None:
    run(GOOD, tmp_path)


@pytest.mark.nightly
@pytest.mark.real_time
@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG.keys())
def test_wrong_snippet_is_detected(text: str, tmp_path: Path) -> None:
    with pytest.raises(SnippetError, match=r"docs/page\.md:\d"):
        run(text, tmp_path)


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_malformed_page_raises_error(text: str) -> None:
    with pytest.raises(PageError, match=r"docs/page\.md:\d"):
        blocks("docs/page.md", text)


@pytest.mark.parametrize(
    ("command", "runs", "words"),
    [
        ("deltaloop run a.py  # until Ctrl-C", True, "starting workers"),
        ("deltaloop run --help", True, None),
        ("deltaloop leader-elect --id 1", True, "successfully acquired lease"),
        ("deltaloop leader-elect --id 1 -- ./a.sh", True, None),
        ("deltaloop generate rbac a.py > roles.yaml", True, None),
        ("make test", False, None),
        ("pip install deltaloop", False, None),
        ("cat a | podman load", False, None),
    ],
)
def test_commands_that_run_are_recognized(command: str, runs: bool, words: str | None) -> None:
    assert (terminal.runs_here(command), terminal.ready_words(command)) == (runs, words)


def test_commands_are_found_in_pipes_and_lists() -> None:
    command = "A=1 make test X=2 && deltaloop run a:b > log 2>&1 & kubectl get pods | head -3  # look"
    assert console.simple_commands(command) == [
        ["make", "test", "X=2"],
        ["deltaloop", "run", "a:b"],
        ["kubectl", "get", "pods"],
        ["head", "-3"],
    ]
