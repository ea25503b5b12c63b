/* A server that embeds Python and forks its worker in C, as uwsgi does: without PyOS_AfterFork, so that
 * the interpreter in the child believes itself in the parent's thread. Runs SCRIPT in the child, as
 * the program INTERPRETER would: embedding INTERPRETER SCRIPT */
#include <Python.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    if (argc != 3 ||
        PyStatus_Exception(PyConfig_SetBytesString(&config, &config.program_name, argv[1])) ||
        PyStatus_Exception(Py_InitializeFromConfig(&config)))
        return 2;
    pid_t child = fork();
    if (child > 0)
        return waitpid(child, NULL, 0) != child;
    FILE *script = child == 0 ? fopen(argv[2], "r") : NULL;
    return script ? PyRun_SimpleFile(script, argv[2]) : 2;
}
