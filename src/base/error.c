/* Errors of the tool; see error.h. */
#include "base/error.h"

#include <stdio.h>
#include <string.h>

int fm_error_set(struct fm_error *err, int status, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
        err->status = status;
    }
    return status;
}

int fm_error_set_errno(struct fm_error *err, int status, int errnum, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        int len = vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
        if (len >= 0 && (size_t)len < sizeof err->text)
            snprintf(err->text + len, sizeof err->text - (size_t)len, ": %s", strerror(errnum));
        err->status = status;
    }
    return status;
}

int fm_error_context(struct fm_error *err, const char *format, ...)
{
    if (!err)
        return FM_SYSTEM;
    char joined[sizeof err->text];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(joined, sizeof joined, format, args);
    va_end(args);
    if (len >= 0 && (size_t)len < sizeof joined)
        snprintf(joined + len, sizeof joined - (size_t)len, ": %s", err->text);
    memcpy(err->text, joined, sizeof joined);
    return err->status;
}

int fm_status_exit(int status)
{
    switch (status) {
    case FM_OK:
        return 0;
#define X(name, value, exit_status, meaning)                                                       \
    case name:                                                                                     \
        return exit_status;
        FM_STATUS_LIST(X)
#undef X
    }
    return 1;
}
