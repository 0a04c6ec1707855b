/* Checks of the test programs: each tells its line and goes on; `finish` says how many there were. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <string.h>
#include <tgc.h>

static int checks, faults;

static void check(int holds, const char *what, int line) {
    checks++;
    if (!holds) {
        faults++;
        fprintf(stderr, "line %d: %s does not hold; the last error is: %s\n", line, what, tgc_last_error());
    }
}

#define CHECK(what) check((what) != 0, #what, __LINE__)

/* The call fails with this status, and its diagnostic has the code and contains the text. */
static void check_fails(tgc_status found, tgc_status want, const char *text, const char *what, int line) {
    char code[32];
    snprintf(code, sizeof code, "error[E-RUN-%03d]: ", (int)want);
    checks++;
    if (found != want || strncmp(tgc_last_error(), code, strlen(code)) != 0 || strstr(tgc_last_error(), text) == NULL) {
        faults++;
        fprintf(stderr, "line %d: %s gave %d, not %d and `%s`, but: %s\n", line, what, (int)found, (int)want, text,
                tgc_last_error());
    }
}

#define FAILS(call, want, text) check_fails((call), (want), (text), #call, __LINE__)

/* A call that gives a value fails: the value is 0 or NULL, the diagnostic one of wrong use. */
#define GIVES_NOTHING(call, text) check_fails((call) ? TGC_OK : TGC_ERROR_USAGE, TGC_ERROR_USAGE, (text), #call, __LINE__)

static int finish(void) {
    printf("%d checks, %d faults\n", checks, faults);
    return faults != 0;
}

#endif
