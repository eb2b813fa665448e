"""Set up the environment in .venv from requirements.txt, once, and say in one sentence what is in the way.

`make` calls this before everything else; without make, run `python3 tools/set_up.py`. It does nothing where the
environment is complete. The file has only what every Python since 2.7 understands, so that an old one gets its sentence too.
"""

import contextlib
import hashlib
import os
import platform
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "bin", "python")
STAMP = os.path.join(VENV, ".ready")     # where the environment was set up, and from what
OLDEST = (3, 11)
GIGABYTES = 2.5     # the environment, the site, the site's scripts, and what is being unpacked

PROXY = ("The package index cannot be reached through the proxy {proxy}: correct the variable HTTPS_PROXY, or unset it, and "
         "run make again.")
UNREACHABLE = ("The package index cannot be reached: connect this machine to the network, or name a mirror in PIP_INDEX_URL "
               "(and, for npm, in NPM_CONFIG_REGISTRY), and run make again.")

# What pip and npm print when something outside this project is in the way, and what to do about it.
OBSTACLES = [
    (r"ProxyError|[Tt]unnel|407 Proxy", PROXY),
    (r"No space left|ENOSPC|os error 28",
     "The disk is full: about {space} GB are needed in this folder and in the one for temporary files."),
    (r"CERTIFICATE_VERIFY_FAILED|SELF_SIGNED_CERT",
     "The certificate of the package index is not trusted here: if your network has a certificate of its own, name its "
     "file in PIP_CERT and NODE_EXTRA_CA_CERTS, and run make again."),
    (r"NewConnectionError|[Nn]ame resolution|Name or service not known|[Tt]imed? ?out|Network is unreachable"
     r"|Connection refused|Connection aborted|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH",
     UNREACHABLE),
    (r"No matching distribution found",
     "The package index has nothing that suits Python {python} on {machine}: try another Python, for example with "
     "make book PYTHON=python3.12."),
    (r"Permission denied|EACCES|Read-only file system|EROFS",
     "Nothing can be written to {root} or to the folder for temporary files: copy the project to a folder of your own."),
]


def main():
    if not is_ready():
        check_system()
        check_folder()
        with held():
            if not is_ready():      # another make may have done it meanwhile
                make_environment()
                install()


def is_ready():
    """Whether the environment was set up here, to the end, from the requirements as they are."""
    return os.path.exists(PYTHON) and read(STAMP) == wanted()


def wanted():
    """What the stamp of a complete environment says: its folder, which its scripts name, and a hash of the requirements."""
    digest = hashlib.sha256()
    for name in ("requirements.txt", "pyproject.toml"):
        with open(os.path.join(ROOT, name), "rb") as stream:
            digest.update(stream.read())
    return ROOT + "\n" + digest.hexdigest()


def check_system():
    """End with a sentence if this system or this Python cannot do it."""
    if sys.platform in ("win32", "cygwin", "msys"):
        sys.exit("This does not run on Windows itself: install Ubuntu with `wsl --install`, open it, and run make there.")
    if sys.version_info < OLDEST:
        sys.exit("Python %d.%d or newer is needed, and this is %s: name another one, for example with "
                 "make book PYTHON=python3.12." % (OLDEST + (platform.python_version(),)))
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        sys.exit("This Python cannot make environments: install its module venv, on Debian and Ubuntu with "
                 "`apt install python%d.%d-venv`, and run make again." % sys.version_info[:2])


@contextlib.contextmanager
def held():
    """Inside, no other process sets up the environment."""
    import fcntl  # absent on Windows

    folder = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def check_folder():
    """End with a sentence if there is no room in the folder, or nothing can be written to it."""
    try:
        tempfile.TemporaryFile(dir=ROOT).close()
    except OSError as problem:
        sys.exit(sentence(str(problem)) or "Nothing can be written to %s (%s)." % (ROOT, problem))
    disk = os.statvfs(ROOT)
    free = disk.f_bavail * disk.f_frsize / 1e9
    if free < GIGABYTES:
        sys.exit("The disk is too full: %.1f GB are needed in %s, and %.1f GB are free." % (GIGABYTES, ROOT, free))


def make_environment():
    """Make .venv, unless there is one that was finished in this folder and only lacks packages."""
    if read(STAMP).split("\n")[0] == ROOT and os.path.exists(PYTHON):
        return
    if os.path.exists(VENV):
        print("The environment in .venv was not finished, or was moved here: it is made anew.")
    step("making an environment in .venv", [sys.executable, "-m", "venv", "--clear", VENV])


def install():
    """Install the packages with uv, which fetches many at a time, or else with pip, which knows more settings."""
    if os.path.exists(STAMP):
        os.remove(STAMP)
    installed = wanted()        # now: the lock may change while it is being installed
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "--retries", "2", "install", "--quiet"]
    print("installing packages ...")
    sys.stdout.flush()
    started = time.time()
    lock = ["--requirement", os.path.join(ROOT, "requirements.txt")]
    uv = [os.path.join(VENV, "bin", "uv"), "pip", "install", "--quiet", "--python", PYTHON]
    if call(pip + ["uv"])[0] or call(uv + lock, uv_settings())[0]:
        run(pip + ["--no-deps"] + lock)
    run(pip + ["--no-deps", "--editable", ROOT])
    print("... took %.0f s" % (time.time() - started))
    with open(STAMP, "w") as stream:
        stream.write(installed)


def uv_settings():
    """The environment, with pip's settings under the names by which uv knows them."""
    settings = dict(os.environ)
    for pip, uv in (("PIP_INDEX_URL", "UV_DEFAULT_INDEX"), ("PIP_EXTRA_INDEX_URL", "UV_INDEX"), ("PIP_CERT", "SSL_CERT_FILE")):
        if os.environ.get(pip):
            settings.setdefault(uv, os.environ[pip])
    return settings


def step(what, command):
    """Run a command, and say what it does and how long it took."""
    print(what + " ...")
    sys.stdout.flush()
    started = time.time()
    run(command)
    print("... took %.0f s" % (time.time() - started))


def run(command):
    """Run a command in the root; if it fails, end with a sentence about what is in the way, or with its last words."""
    failed, said = call(command)
    if failed:
        last = "\n".join(said.strip().split("\n")[-15:])
        sys.exit(sentence(said) or "%s\n\nThe command %r failed; its last words stand above." % (last, " ".join(command)))


def call(command, settings=None):
    """The status of a command that ran in the root, and what it printed."""
    process = subprocess.Popen(command, cwd=ROOT, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = process.communicate()[0].decode("utf-8", "replace")
    return process.returncode, said


def sentence(said):
    """What is in the way, judging by what a command printed; "" if that is not known."""
    for pattern, advice in OBSTACLES:
        if re.search(pattern, said):
            proxy = os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy") or ""
            if advice == UNREACHABLE and proxy:
                advice = PROXY
            return advice.format(proxy=re.sub("//[^@/]*@", "//", proxy), space=GIGABYTES, root=ROOT,
                                 python=platform.python_version(), machine=platform.platform())
    return ""


def read(path):
    """The text of a file; "" if there is none."""
    if not os.path.isfile(path):
        return ""
    with open(path) as stream:
        return stream.read()


if __name__ == "__main__":
    main()
