"""The units of systemd, the file of the container and the proxies of the documentation, checked."""

import json
import os
import re
import shlex
import shutil
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path
from textwrap import dedent

import pytest

from commands import kesler
from kesler.cli.arguments import parser
from mailserver import certificates, wait_for
from serving import HOST, Server, free_port

ROOT = Path(__file__).parents[1]
UNITS = ["kesler-mail.service", "kesler-serve.service"]
ANALYZE = shutil.which("systemd-analyze")
HADOLINT = shutil.which("hadolint")
PLACES = f"{os.environ['PATH']}:/usr/sbin"
NGINX, CADDY = (shutil.which(name, path=PLACES) for name in ("nginx", "caddy"))


def unit(tmp_path, name):
    """A unit of which the program is there."""
    text = (ROOT / "deploy" / name).read_text()
    path = tmp_path / name
    path.write_text(text.replace("/opt/kesler/bin/kesler", sys.executable))
    return path


def require_few_rights(path):
    """A unit, with the settings of the folder beside it, is understood and has few rights."""
    done = subprocess.run([ANALYZE, "verify", path], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    least = [ANALYZE, "security", "--offline=true", "--threshold=20", path]
    done = subprocess.run(least, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-300:]


@pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("name", UNITS)
def test_units_are_understood_and_have_few_rights(tmp_path, name):
    require_few_rights(unit(tmp_path, name))


@pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze")
def test_the_unit_of_a_maildir_is_understood_and_has_few_rights(tmp_path):
    path = unit(tmp_path, "kesler-mail.service")
    text = (ROOT / "docs/guides/mail.md").read_text()
    changed = text.partition("\n    [Service]\n")[2].partition("\n\n")[0]
    assert "BindPaths" in changed
    folder = tmp_path / f"{path.name}.d"
    folder.mkdir()
    (folder / "override.conf").write_text(f"[Service]\n{dedent(changed)}\n")
    require_few_rights(path)


@pytest.mark.parametrize("name", UNITS)
def test_units_run_commands_that_there_are(name):
    text = (ROOT / "deploy" / name).read_text()
    commands = re.findall(r"/opt/kesler/bin/kesler ([^'>\n]+)", text)
    assert commands
    for each in commands:
        parser().parse_args(shlex.split(each))


@pytest.mark.parametrize("name", UNITS)
def test_a_call_that_is_not_allowed_fails_and_kills_nothing(name):
    """The owner of a file is set only where that is allowed."""
    text = (ROOT / "deploy" / name).read_text()
    assert "SystemCallFilter=~@privileged" in text and "SystemCallErrorNumber=EPERM\n" in text


def instructions():
    """The instructions of the last image, with their arguments."""
    text = (ROOT / "deploy" / "Containerfile").read_text()
    joined = re.sub(r"^#.*\n", "", text, flags=re.M).replace("\\\n", " ")
    return [line.partition(" ")[::2] for line in joined.splitlines() if line]


def test_the_container_runs_commands_that_there_are_without_rights():
    found = dict(instructions())
    assert int(found["USER"]) > 0 and json.loads(found["ENTRYPOINT"]) == ["kesler"]
    parser().parse_args(json.loads(found["CMD"]))
    _, *health = json.loads(found["HEALTHCHECK"].partition("CMD ")[2])
    options = parser().parse_args(health)
    assert (options.mail_action, options.max_age) == ("status", 600)


@pytest.mark.parametrize(
    "name", ["deploy/Containerfile", "docs/guides/mail.md", "docs/service/reverse-proxy.md"]
)
def test_podman_builds_the_format_that_has_a_check_of_health(name):
    """The usual one of podman leaves it out."""
    builds = re.findall(r"podman build .*", (ROOT / name).read_text())
    assert builds and all("--format docker" in each for each in builds)


def test_the_container_copies_what_a_build_needs(tmp_path):
    copied = [args.split() for name, args in instructions() if name == "COPY"]
    names = [each for args in copied if not args[0].startswith("--") for each in args[:-1]]
    assert all((ROOT / each).exists() for each in names)
    needed = re.findall(
        r'^(?:readme|path) = "([^"]+)"', (ROOT / "pyproject.toml").read_text(), re.M
    )
    assert needed and all(any(each.startswith(name) for name in names) for each in needed)


@pytest.mark.skipif(HADOLINT is None, reason="needs hadolint")
def test_the_container_is_as_hadolint_wants_it():
    done = subprocess.run([HADOLINT, ROOT / "deploy" / "Containerfile"], capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"")


def proxy(name):
    """The settings of a proxy, as the documentation has them."""
    text = (ROOT / "docs/service/reverse-proxy.md").read_text()
    return text.partition(f"\n{name}:\n\n")[2].partition("\n\n")[0]


def nginx(tmp_path, port, server):
    """Write the settings of nginx with places of their own; return the command that reads them."""
    certificates(tmp_path)
    own = proxy("nginx").replace("127.0.0.1:8000", f"{HOST}:{server.port}")
    own = own.replace("/etc/ssl/desk.pem", f"{tmp_path}/server.pem")
    own = own.replace("/etc/ssl/private/desk.key", f"{tmp_path}/server.key")
    own = own.replace("listen 443 ssl", f"listen {HOST}:{port} ssl")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{each}_temp_path {tmp_path}/{each}; " for each in kinds)
    path = tmp_path / "nginx.conf"
    path.write_text(
        f"daemon off; pid {tmp_path}/pid; events {{}}\n"
        f"http {{ access_log off; {temporary}\n{own}\n}}\n"
    )
    return [NGINX, "-c", path, "-e", tmp_path / "log"]


@pytest.mark.skipif(NGINX is None, reason="needs nginx")
@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_a_server_answers_behind_nginx(tmp_path):
    pytest.importorskip("starlette", reason="needs the extra serve")
    with Server(tmp_path / "desk.db") as server:
        command = nginx(tmp_path, port := free_port(), server)
        done = subprocess.run([*command, "-t"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "warn" not in done.stderr
        context = ssl.create_default_context(cafile=tmp_path / "ca.pem")
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            try:
                wait_for(port)
                url = f"https://localhost:{port}/health"
                with urllib.request.urlopen(url, timeout=60, context=context) as answer:
                    assert (answer.status, answer.headers["Server"][:5]) == (200, "nginx")
            finally:
                process.terminate()


@pytest.mark.skipif(CADDY is None, reason="needs caddy")
def test_caddy_understands_its_settings(tmp_path):
    path = tmp_path / "Caddyfile"
    path.write_text(proxy("Caddy") + "\n")
    command = [CADDY, "validate", "--adapter", "caddyfile", "--config", path]
    own = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | own)
    assert done.returncode == 0 and "Valid configuration" in done.stdout + done.stderr, done.stderr


def test_a_look_that_is_long_ago_is_no_health(tmp_path, capsys):
    from kesler.durable import Journal
    from kesler.mail.known import Known, Status
    from kesler.mail.sorter import model_of
    from kesler.mail.state import Folder
    from kesler.mail.watching import HEALTH

    settings = tmp_path / "mail.toml"
    settings.write_text('maildir = "mail"\n')
    with Journal(tmp_path / "mail.db") as journal:
        model = model_of(journal, "mail")
        given = ("mail", "status", settings, "--max-age")
        done = kesler(capsys, *given, "60")
        assert done.code == 2 and "nothing has been read of the mailbox" in done.err
        Known(model).observe({"INBOX": Folder(1)}, {"INBOX": Status(1)}, predict=False)
        done = kesler(capsys, *given, "60")
        assert done.code == 2 and "there has been no look at the mailbox" in done.err
        model.keep(HEALTH, {"time": 1e9})
        done = kesler(capsys, *given, "60")
        assert done.code == 2 and "s ago at the mailbox: see the log" in done.err
        assert kesler(capsys, *given, "100000000000").code == 0
        assert kesler(capsys, "mail", "status", settings).code == 0
