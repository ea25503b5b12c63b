"""Starts tests/programs/profiled.py as a child, in the way named by its first argument."""
import ctypes
import os
import subprocess
import sys

CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "profiled.py")
COMMAND = [sys.executable, CHILD, "child"]
SHELL = " ".join(f"'{word}'" for word in COMMAND)


def wait(pid):
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def posix_popen():
    libc = ctypes.CDLL(None)
    libc.popen.restype = ctypes.c_void_p
    stream = libc.popen(SHELL.encode(), b"w")
    sys.exit(libc.pclose(ctypes.c_void_p(stream)))


def in_fork(call):
    pid = os.fork()
    if pid == 0:
        call()
        os._exit(99)
    wait(pid)


def execl():
    """A variadic function of C, with an environment of its own."""
    libc = ctypes.CDLL(None)
    words = [word.encode() for word in COMMAND]
    env = (ctypes.c_char_p * 2)(b"ONLY=1", None)
    libc.execle(words[0], *words, None, env)


def fexecve():
    fd = os.open(sys.executable, os.O_RDONLY)
    os.execve(fd, COMMAND, {})


def thousand_variables():
    env = {f"VARIABLE_{n}": "x" * 50 for n in range(3000)}
    sys.exit(subprocess.run(COMMAND, env=env).returncode)


def spawn_pool():
    import multiprocessing
    import profiled
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(profiled.answer), "child")


def forkserver_pool():
    import multiprocessing
    import profiled
    with multiprocessing.get_context("forkserver").Pool(1) as pool:
        print(pool.apply(profiled.answer), "child")


def user_preload_kept():
    env = {**os.environ, "LD_PRELOAD": "libc.so.6"}
    code = "import os, profiled; print(profiled.answer(), os.environ['LD_PRELOAD'])"
    env["PYTHONPATH"] = os.path.dirname(CHILD)
    sys.exit(subprocess.run([sys.executable, "-c", code], env=env).returncode)


WAYS = {
    "subprocess": lambda: sys.exit(subprocess.run(COMMAND).returncode),
    "subprocess_empty_env": lambda: sys.exit(subprocess.run(COMMAND, env={}).returncode),
    "subprocess_shell": lambda: sys.exit(subprocess.run(SHELL, shell=True).returncode),
    "subprocess_close_fds_false":
        lambda: sys.exit(subprocess.run(COMMAND, close_fds=False, env={}).returncode),
    "subprocess_preexec":
        lambda: sys.exit(subprocess.run(COMMAND, env={}, preexec_fn=lambda: None).returncode),
    "large_env": thousand_variables,
    "system": lambda: sys.exit(os.waitstatus_to_exitcode(os.system(SHELL))),
    "popen": lambda: print(os.popen(SHELL).read(), end=""),
    "c_popen": posix_popen,
    "execv": lambda: os.execv(COMMAND[0], COMMAND),
    "execve": lambda: os.execve(COMMAND[0], COMMAND, {}),
    "execvp": lambda: os.execvp(COMMAND[0], COMMAND),
    "execvpe": lambda: os.execvpe(COMMAND[0], COMMAND, {"PATH": "/bin"}),
    "execle": lambda: in_fork(execl),
    "fexecve": lambda: in_fork(fexecve),
    "posix_spawn": lambda: wait(os.posix_spawn(COMMAND[0], COMMAND, {})),
    "posix_spawnp": lambda: wait(os.posix_spawnp(COMMAND[0], COMMAND, {})),
    "spawnv": lambda: sys.exit(os.spawnv(os.P_WAIT, COMMAND[0], COMMAND)),
    "env_i": lambda: sys.exit(subprocess.run(["env", "-i", *COMMAND]).returncode),
    "fork": lambda: in_fork(lambda: (print("profiled child", flush=True), os._exit(0))),
    "spawn_pool": spawn_pool,
    "forkserver_pool": forkserver_pool,
    "user_preload_kept": user_preload_kept,
}

if __name__ == "__main__":
    WAYS[sys.argv[1]]()
