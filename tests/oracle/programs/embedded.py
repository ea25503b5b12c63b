"""The child of a program in C that embeds Python and calls fork() itself (_embedding.c): what the
thread state says of its kernel thread is the parent's. 70 and 30 %.

Run by Python it builds that program and becomes it; run by that program, in the child, it works.
"""

import os
import sys
import sysconfig

folder = os.path.dirname(os.path.abspath(os.environ.get("ORACLE_EMBEDDED") or __file__))
sys.path.insert(0, folder)
sys.dont_write_bytecode = True

import oracle

going, now = oracle.going, oracle.now


def compile_and_link(target):
    """None, or why it cannot be built. A static library first: it needs no search path at run time."""
    import subprocess

    get = sysconfig.get_config_var
    include = {sysconfig.get_path("include"), sysconfig.get_path("platinclude")}
    name = f"python{get('LDVERSION') or get('VERSION')}"
    archive = os.path.join(get("LIBPL") or "", f"lib{name}.a")
    library = [archive] if os.path.exists(archive) else [
        f"-L{get('LIBDIR')}", f"-l{name}", f"-Wl,-rpath,{get('LIBDIR')}"]
    words = ["cc", "-o", target, os.path.join(folder, "_embedding.c"),
             *(f"-I{path}" for path in include if path), *library, "-Wl,--export-dynamic",
             *(get("LIBS") or "").split(), *(get("SYSLIBS") or "").split()]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, universal_newlines=True)
    except OSError as error:
        return str(error)
    lines = [line for line in done.stdout.splitlines()
             if any(word in line for word in ("cannot", "undefined", "error", "No such"))]
    return (lines or ["the compiler failed"])[0].strip() if done.returncode else None


def become():
    """Replace this process by the program in C, which reads this file again."""
    import tempfile

    scratch = tempfile.mkdtemp(prefix="oracle-")
    target = os.path.join(scratch, "embedding")
    reason = compile_and_link(target)
    if reason:
        os.rmdir(scratch)
        oracle.unable(f"a program that embeds this Python cannot be built: {reason}")
    os.environ["ORACLE_EMBEDDED"] = os.path.abspath(__file__)
    os.execv(target, [target, sys.executable, os.path.abspath(__file__)])


def forget_program():
    """It is not needed on disk any more."""
    path = os.readlink("/proc/self/exe")
    os.remove(path)
    os.rmdir(os.path.dirname(path))


def heavy(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


def light(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


def main(stamps):
    for scale in scales:
        if going()[0]:
            return
        start = now()
        heavy(70 * scale)
        middle = now()
        light(30 * scale)
        stamps.extend((start, middle, now()))


if "ORACLE_EMBEDDED" not in os.environ:
    become()
forget_program()
scales = oracle.scales()
log = oracle.log()
oracle.ready([["<module>", "main", "heavy"], ["<module>", "main", "light"]],
             {"70/30": ["heavy", "light"]})
main(log)
oracle.done((["heavy", "light"], log))
