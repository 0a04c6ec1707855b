/* Many threads, each with a session of one shared model; sessions that move from thread to thread; errors a thread. */
#include <pthread.h>

#include "check.h"

enum { THREADS = 8, ROUNDS = 500 };

struct job {
    const tgc_model *model;
    tgc_session *session;
    int64_t number;
    int wrong;
};

/* Runs on a session made by another thread, and on one of its own. */
static void *work(void *argument) {
    struct job *job = argument;
    int64_t dims[] = {2, 2}, i;
    tgc_shape shape = {2, NULL};
    tgc_session *own = NULL;
    char error[512];
    shape.dims = dims;
    job->wrong += strcmp(tgc_last_error(), "") != 0;
    job->wrong += tgc_session_open(job->model, "forward", NULL, &own) != TGC_OK;
    job->wrong += tgc_session_bind(own, &shape, 1) != TGC_OK;
    job->wrong += tgc_session_bind(job->session, &shape, 1) != TGC_OK;
    dims[0] = 100 + job->number;
    job->wrong += tgc_session_bind(own, &shape, 1) != TGC_ERROR_INPUT_DIM;
    snprintf(error, sizeof error, "%s", tgc_last_error());
    job->wrong += strstr(error, "axis 0 is 10") == NULL;
    dims[0] = 2;
    job->wrong += tgc_session_bind(own, &shape, 1) != TGC_OK;
    for (i = 0; i < ROUNDS; i++) {
        int64_t x[] = {job->number, i, 3, 4}, y[4] = {0, 0, 0, 0};
        tgc_input in = {x, sizeof x};
        tgc_output out = {y, sizeof y};
        job->wrong += tgc_session_run(i % 2 ? own : job->session, &in, 1, &out, 1) != TGC_OK;
        job->wrong += y[0] != 2 * (job->number + 1) || y[1] != 2 * (i + 1) || y[3] != 10;
    }
    job->wrong += strcmp(error, tgc_last_error()) != 0;
    tgc_session_close(own);
    return NULL;
}

int main(int argc, char **argv) {
    tgc_model *model = NULL;
    pthread_t threads[THREADS];
    struct job jobs[THREADS];
    char path[4096];
    int i;
    if (argc != 2)
        return 2;
    snprintf(path, sizeof path, "%s/simple.tgc", argv[1]);
    FAILS(tgc_model_open(argv[0], &model), TGC_ERROR_NOT_ARTIFACT, argv[0]);
    CHECK(tgc_model_open(path, &model) == TGC_OK);
    for (i = 0; i < THREADS; i++) {
        tgc_session_options options = TGC_SESSION_OPTIONS_INIT;
        options.threads = i % 2 ? 2 : 0;
        memset(&jobs[i], 0, sizeof jobs[i]);
        jobs[i].model = model;
        jobs[i].number = i;
        CHECK(tgc_session_open(model, NULL, &options, &jobs[i].session) == TGC_OK);
    }
    for (i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, &jobs[i]) == 0);
    for (i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(jobs[i].wrong == 0);
        tgc_session_close(jobs[i].session);
    }
    tgc_model_close(model);
    return finish();
}
