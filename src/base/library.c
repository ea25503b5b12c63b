/* Shared libraries that few verbs need; see library.h. */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

int fm_library_load(void *pointers, size_t n, const char *const *names, const char *soname,
                    const char *what, const char *package, struct fm_error *err)
{
    void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library && i < n; i++) {
        void *function = dlsym(library, names[i]);
        if (!function)
            return fm_error_set(err, FM_UNSUPPORTED, "%s (%s) lacks %s", what, soname, names[i]);
        memcpy((char *)pointers + i * sizeof function, &function, sizeof function);
    }
    if (library)
        return 0;
    return fm_error_set(err, FM_UNSUPPORTED, "%s is not here (%s); install it (Debian, Ubuntu: %s)",
                        what, soname, package);
}
