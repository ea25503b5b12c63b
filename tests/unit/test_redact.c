/* What is left of command lines without their arguments, by hand from the rules in redact.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "commands/redact.h"

static const char *const cases[][2] = {
    /* programs */
    { "", "" },
    { "tool", "tool" },
    { "tool --password SECRET", "tool …" },
    { "/opt/bin/tool a b c", "/opt/bin/tool …" },
    { "pythonista SECRET", "pythonista …" },
    { "env SECRET=1 python3 app.py", "env …" },
    /* Pythons */
    { "python3", "python3" },
    { "python3 app.py", "python3 app.py" },
    { "python3 app.py --password=SECRET", "python3 app.py …" },
    { "/usr/bin/python3.13t -B -u app.py SECRET", "/usr/bin/python3.13t -B -u app.py …" },
    { "python3 -m pkg.mod SECRET", "python3 -m pkg.mod …" },
    { "python3 -mpkg.mod SECRET", "python3 -mpkg.mod …" },
    { "python3 -Im pkg", "python3 -Im pkg" },
    { "python3 -c print('SECRET')", "python3 -c …" },
    { "python3 -cSECRET", "python3 -c" },
    { "python3 -uc SECRET SECRET", "python3 -uc …" },
    { "python3 -X SECRET -WSECRET app.py SECRET", "python3 -X … -W … app.py …" },
    { "python3 - SECRET", "python3 - …" },
    { "python3 --check-hash-based-pycs=SECRET app.py", "python3 --check-hash-based-pycs app.py" },
    /* shells */
    { "sh -c 'echo SECRET'", "sh -c …" },
    { "bash -x build.sh SECRET", "bash -x build.sh …" },
    /* quoted for a shell */
    { "python3 'my app.py' 'SECRET SECRET'", "python3 'my app.py' …" },
    { "'/opt/my tools/python3' app.py SECRET", "'/opt/my tools/python3' app.py …" },
    { "python3 'it'\\''s.py' SECRET", "python3 'it'\\''s.py' …" },
    { "'a tool' 'SECRET'", "'a tool' …" },
    /* what was done before */
    { "python3 app.py …", "python3 app.py …" },
    { "tool …", "tool …" },
};

static void test_commands(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *left = fm_redact_command(cases[i][0]);
        assert_string_equal(left, cases[i][1]);
        assert_null(strstr(left, "SECRET"));
        free(left);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_commands) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
