"""Setting up: what is in the way is said in one sentence; the site is shown on a free port; `make clean` leaves nothing."""

import ast
import builtins
import errno
import shutil
import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest
import serve
import set_up
from conftest import ROOT

SAID = [
    ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk is full"),
    ("npm error code ENOSPC\nnpm error nospc There appears to be insufficient space on your system to finish.", "disk is full"),
    ("WARNING: Retrying after 'ProxyError('Cannot connect to proxy.', OSError('407'))'", "through the proxy"),
    ("New('<connection>: Failed to establish: [Errno -3] Temporary failure in name resolution')", "mirror"),
    ("npm error code EAI_AGAIN\nnpm error request to https://registry.npmjs.org/mathjax failed", "mirror"),
    ("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed'))", "PIP_CERT"),
    ("ERROR: No matching distribution found for numpy==2.4.6", "try another Python"),
    ("OSError: [Errno 30] Read-only file system: '.venv'", "folder of your own"),
]


@pytest.mark.parametrize(("said", "sentence"), SAID)
def test_what_a_program_printed_becomes_one_sentence(said, sentence, monkeypatch):
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    found = set_up.sentence(said)
    assert sentence in found and "\n" not in found


def test_other_words_are_shown_as_they_are(capfd):
    assert set_up.sentence("SyntaxError: invalid syntax") == ""
    with pytest.raises(SystemExit) as end:
        set_up.run([sys.executable, "-c", "raise RuntimeError('something else')"])
    assert "RuntimeError: something else" in str(end.value) and "its last words stand above" in str(end.value)


def test_the_proxy_is_named_without_its_password(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://me:secret@proxy.example:3128")
    for said in ("ProxyError", "npm error code ECONNREFUSED"):
        assert "through the proxy http://proxy.example:3128" in set_up.sentence(said)
        assert "secret" not in set_up.sentence(said)


@pytest.mark.parametrize(("name", "value", "sentence"), [
    ("platform", "win32", "wsl --install"),
    ("version_info", (3, 10, 13), "Python 3.11 or newer is needed"),
])
def test_systems_that_cannot_do_it(monkeypatch, name, value, sentence):
    monkeypatch.setattr(set_up, "sys", SimpleNamespace(**{"platform": "linux", "version_info": (3, 12, 1), "exit": sys.exit,
                                                          name: value}))
    with pytest.raises(SystemExit, match=sentence):
        set_up.check_system()


def test_a_python_that_cannot_make_environments(monkeypatch):
    real = builtins.__import__

    def without_ensurepip(name, *given, **named):
        if name == "ensurepip":
            raise ImportError(name)
        return real(name, *given, **named)

    monkeypatch.setattr(builtins, "__import__", without_ensurepip)
    with pytest.raises(SystemExit, match=rf"apt install python3\.{sys.version_info.minor}-venv"):
        set_up.check_system()


def test_a_full_disk_and_a_folder_that_is_read_only(monkeypatch):
    monkeypatch.setattr(set_up.os, "statvfs", lambda path: SimpleNamespace(f_bavail=1000, f_frsize=4096))
    with pytest.raises(SystemExit, match=r"2\.5 GB are needed in .*, and 0\.0 GB are free"):
        set_up.check_folder()

    def refuse(dir):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(set_up.tempfile, "TemporaryFile", refuse)
    with pytest.raises(SystemExit, match="copy the project to a folder of your own"):
        set_up.check_folder()


@pytest.mark.parametrize("stamp", ["", "{root}/elsewhere\nDIGEST", "{root}\nof other requirements"])
def test_an_environment_is_ready_only_if_it_was_finished_here(tmp_path, monkeypatch, stamp):
    monkeypatch.setattr(set_up, "STAMP", str(tmp_path / "ready"))
    monkeypatch.setattr(set_up, "PYTHON", sys.executable)
    (tmp_path / "ready").write_text(set_up.wanted())
    assert set_up.is_ready()
    (tmp_path / "ready").write_text(stamp.format(root=ROOT))
    assert not set_up.is_ready()


def test_old_pythons_can_read_the_file():
    """They must get as far as the sentence that says they are too old."""
    tree = ast.parse((ROOT / "tools/set_up.py").read_text(encoding="utf-8"), feature_version=(3, 4))
    newer = (ast.JoinedStr, ast.NamedExpr, ast.AnnAssign, ast.Nonlocal, ast.YieldFrom, ast.AsyncFunctionDef, ast.Starred)
    assert not [node for node in ast.walk(tree) if isinstance(node, newer)]
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.cause]
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and (node.returns or node.args.kwonlyargs)]


def test_a_taken_port_is_passed_over(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with serve.server(port) as site:
            assert port < site.server_address[1] <= port + 100
        assert f"Port {port} is taken." in capsys.readouterr().out
        with pytest.raises(SystemExit, match="all taken"):
            serve.server(port, count=1)


@pytest.mark.skipif(not shutil.which("make"), reason="need make")
def test_clean_leaves_nothing_that_git_ignores_but_lines_of_tables_and_their_locks(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    patterns = [line for line in (ROOT / ".gitignore").read_text().splitlines() if line and not line.startswith("#")]
    assert len(patterns) > 10
    for pattern in patterns:
        path = tmp_path / pattern.rstrip("/").replace("*", "name")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir() if pattern.endswith("/") else path.touch()
    (tmp_path / "chapters/.ipynb_checkpoints").mkdir(parents=True)
    (tmp_path / "chapters/kept.ipynb").touch()
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True, capture_output=True)
    kept = {"name.bad", "name.lock", "name.owner"}      # lines of a damaged table, and who is running a study now
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"Makefile", "kept.ipynb"} | kept
    assert {path.name for path in tmp_path.rglob("*") if path.is_dir()} == {"chapters", "figures", "results"}
