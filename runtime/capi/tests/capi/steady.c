/* The steady state: a bound session runs without allocating. Linked with the allocator's functions wrapped. */
#include <stdatomic.h>
#include <stdlib.h>

#include "check.h"

static atomic_long allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
int __real_posix_memalign(void **to, size_t align, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
int __wrap_posix_memalign(void **to, size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

void *__wrap_malloc(size_t size) {
    allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    allocations++;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size) {
    allocations++;
    return __real_realloc(old, size);
}

int __wrap_posix_memalign(void **to, size_t align, size_t size) {
    allocations++;
    return __real_posix_memalign(to, align, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size) {
    allocations++;
    return __real_aligned_alloc(align, size);
}

int main(int argc, char **argv) {
    static int64_t x[64 * 2], y[64 * 2];
    size_t threads;
    char path[4096];
    tgc_model *model = NULL;
    if (argc != 2)
        return 2;
    snprintf(path, sizeof path, "%s/simple.tgc", argv[1]);
    CHECK(tgc_model_open(path, &model) == TGC_OK);
    for (threads = 1; threads <= 2; threads++) {
        tgc_session_options options = TGC_SESSION_OPTIONS_INIT;
        tgc_session *session = NULL;
        int64_t dims[] = {64, 2};
        tgc_shape shape = {2, NULL};
        tgc_input in = {x, sizeof x};
        tgc_output out = {y, sizeof y};
        long before, wrong = 0;
        int i;
        shape.dims = dims;
        options.threads = threads;
        CHECK(tgc_session_open(model, NULL, &options, &session) == TGC_OK);
        CHECK(tgc_session_bind(session, &shape, 1) == TGC_OK);
        CHECK(tgc_session_run(session, &in, 1, &out, 1) == TGC_OK);
        before = allocations;
        CHECK(before > 0);
        for (i = 0; i < 1000; i++)
            wrong += tgc_session_run(session, &in, 1, &out, 1) != TGC_OK;
        wrong += tgc_session_memory(session) == 0;
        CHECK(wrong == 0);
        CHECK(allocations == before);
        FAILS(tgc_session_run(session, &in, 1, &out, 0), TGC_ERROR_USAGE, "0 outputs given");
        tgc_session_close(session);
    }
    tgc_model_close(model);
    return finish();
}
