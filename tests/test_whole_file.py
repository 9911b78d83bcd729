"""Files written whole: permissions, links, and what killed processes leave."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import textwrap
import time

import pytest

from kesler.data import whole_file
from kesler.data.whole_file import SUFFIX, write_whole
from kesler.errors import KeslerError

posix = pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@posix
@pytest.mark.parametrize("mask, expected", [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_permissions_that_the_umask_leaves(tmp_path, mask, expected):
    path, before = tmp_path / "model", os.umask(mask)
    try:
        write_whole(path, b"a")
    finally:
        os.umask(before)
    assert mode(path) == expected


@posix
@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o666, 0o444])
def test_permissions_are_kept(tmp_path, permissions):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    path.chmod(permissions)
    write_whole(path, b"new")
    assert (path.read_bytes(), mode(path)) == (b"new", permissions)


@posix
def test_a_link_is_followed(tmp_path):
    real = tmp_path / "elsewhere"
    real.mkdir()
    link = tmp_path / "model"
    link.symlink_to(real / "model")
    for contents in (b"first", b"second"):
        write_whole(link, contents)
        assert link.is_symlink() and (real / "model").read_bytes() == contents
    assert [each.name for each in real.iterdir()] == ["model"]


def test_what_cannot_be_written_leaves_the_old_file(tmp_path):
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "none" / "model", tmp_path / "folder"):
        with pytest.raises(KeslerError, match="cannot be written"):
            write_whole(path, b"a")
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_a_failure_leaves_no_temporary_file(tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_bytes(b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(whole_file.os, "fsync", full)
    with pytest.raises(KeslerError, match="No space left"):
        write_whole(path, b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["model"] and path.read_bytes() == b"old"


@posix
def test_the_name_is_on_the_disk_too(tmp_path, monkeypatch):
    synchronised = []
    real = os.fsync

    def noted(descriptor):
        synchronised.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
        real(descriptor)

    monkeypatch.setattr(whole_file.os, "fsync", noted)
    write_whole(tmp_path / "model", b"a")
    assert synchronised == [False, True]


@posix
def test_only_files_that_nobody_writes_are_removed(tmp_path):
    """Names with the letters of patterns match themselves alone."""
    path = tmp_path / "a[b]*"
    code = f"""
        import time
        from pathlib import Path
        from kesler.data import whole_file
        with whole_file._temporary(Path({str(path)!r})) as (_, name):
            print(name, flush=True)
            time.sleep(60)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    living, killed = (subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in "ab")
    names = [each.stdout.readline().strip() for each in (living, killed)]
    other = tmp_path / f"ab.12345678{SUFFIX}"
    other.write_bytes(b"of another file")
    killed.kill()
    killed.wait()
    write_whole(path, b"new")
    assert os.path.exists(names[0]) and not os.path.exists(names[1]) and other.exists()
    living.kill()
    living.wait()
    for each in (living, killed):
        each.stdout.close()
    write_whole(path, b"newer")
    assert not os.path.exists(names[0]) and path.read_bytes() == b"newer"


@posix
def test_many_writers_of_one_file_leave_one_whole_file(tmp_path):
    path = tmp_path / "model"
    code = f"""
        from kesler.data.whole_file import write_whole
        for i in range(60):
            write_whole({str(path)!r}, bytes([i]) * 100_000)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    writers = [subprocess.Popen(command) for _ in range(3)]
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            contents = path.read_bytes()
            assert len(contents) == 100_000 and len(set(contents)) == 1
        time.sleep(0.001)
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert [each.name for each in tmp_path.iterdir()] == ["model"]


@posix
def test_a_pipe_is_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    command = [sys.executable, "-c", "import sys; print(open(sys.argv[1]).read())"]
    reader = subprocess.Popen([*command, tmp_path / "pipe"], stdout=subprocess.PIPE, text=True)
    write_whole(tmp_path / "pipe", b"whole")
    assert reader.communicate(timeout=60)[0] == "whole\n"
    assert (tmp_path / "pipe").is_fifo()
