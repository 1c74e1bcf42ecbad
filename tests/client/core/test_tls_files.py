from __future__ import annotations

from deltaloop.client.core.tls_files import TlsFilesState


def test_without_files_no_check_is_due() -> None:
    state = TlsFilesState(None)
    assert not state.is_due(1e9)
    assert not state.saw(None, now=1e9)
    assert not state.saw(b"1", now=1e9)


def test_tls_files_are_checked_once_a_minute() -> None:
    state = TlsFilesState(b"1")
    assert not state.is_due(1000.0)
    assert not state.is_due(1059.9)
    assert state.is_due(1060.0)
    assert not state.saw(b"1", now=1060.0)
    assert not state.is_due(1119.0)
    assert state.is_due(1120.0)


def test_changed_tls_files_are_applied_once() -> None:
    state = TlsFilesState(b"1")
    assert state.saw(b"2", now=60.0)
    state.took(b"2")
    assert not state.saw(b"2", now=120.0)
    assert state.saw(b"1", now=180.0)


def test_unusable_tls_files_are_checked_again_after_minute() -> None:
    state = TlsFilesState(b"1")
    assert state.saw(b"half", now=60.0)
    assert not state.is_due(119.0)
    assert state.is_due(120.0)
    assert state.saw(b"half", now=120.0)


def test_unreadable_file_is_ignored() -> None:
    state = TlsFilesState(b"1")
    assert not state.saw(None, now=60.0)
    assert not state.is_due(61.0)


def test_suspected_change_is_checked_immediately() -> None:
    state = TlsFilesState(b"1")
    state.is_due(0.0)
    state.suspect()
    assert state.is_due(0.1)
    TlsFilesState(None).suspect()
