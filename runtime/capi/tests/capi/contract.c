/* Everything the header promises, on the artifacts of a folder: results, and every way a call can be wrong. */
#include <stdlib.h>

#include "check.h"

static const char *folder;

/* The path of an artifact; valid until the next call. */
static const char *at(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static tgc_model *open_model(const char *name) {
    tgc_model *model = NULL;
    CHECK(tgc_model_open(at(name), &model) == TGC_OK);
    CHECK(model != NULL);
    return model;
}

static tgc_session *open_session(const tgc_model *model, size_t threads) {
    tgc_session_options options = TGC_SESSION_OPTIONS_INIT;
    tgc_session *session = NULL;
    options.threads = threads;
    CHECK(tgc_session_open(model, NULL, &options, &session) == TGC_OK);
    CHECK(session != NULL);
    return session;
}

static void versions(void) {
    CHECK(tgc_abi_version() == TGC_ABI_VERSION);
    CHECK(strlen(tgc_version()) >= 5);
    CHECK(strcmp(tgc_last_error(), "") == 0);
    CHECK(tgc_dtype_size(TGC_F32) == 4);
    CHECK(tgc_dtype_size(TGC_F16) == 2);
    CHECK(tgc_dtype_size(TGC_I64) == 8);
    CHECK(tgc_dtype_size(TGC_BOOL) == 1);
    GIVES_NOTHING(tgc_dtype_size(TGC_BOOL + 1), "no element type 13");
    GIVES_NOTHING(tgc_dtype_size(-1), "no element type -1");
}

static void files(void) {
    static const struct {
        const char *name;
        tgc_status status;
        const char *text;
    } refused[] = {
        {"missing.tgc", TGC_ERROR_IO, "missing.tgc"},
        {".", TGC_ERROR_IO, "not a regular file"},
        {"text.tgc", TGC_ERROR_NOT_ARTIFACT, "text.tgc"},
        {"cut.tgc", TGC_ERROR_DAMAGED, "damaged"},
        {"changed.tgc", TGC_ERROR_DAMAGED, "checksum"},
        {"elsewhere.tgc", TGC_ERROR_NO_IMAGE, "levitation"},
    };
    size_t i;
    tgc_model *model;
    for (i = 0; i < sizeof refused / sizeof *refused; i++) {
        model = (tgc_model *)&model;
        FAILS(tgc_model_open(at(refused[i].name), &model), refused[i].status, refused[i].text);
        CHECK(model == NULL);
    }
    model = (tgc_model *)&model;
    FAILS(tgc_model_open(NULL, &model), TGC_ERROR_USAGE, "`path` is NULL");
    CHECK(model == NULL);
    FAILS(tgc_model_open(at("simple.tgc"), NULL), TGC_ERROR_USAGE, "`model` is NULL");
    CHECK(tgc_model_open(at("b\377tes.tgc"), &model) == TGC_OK);
    tgc_model_close(model);
    tgc_model_close(NULL);
    tgc_session_close(NULL);
}

static void memory(void) {
    static unsigned char bytes[1 << 20];
    size_t size;
    tgc_model *model = NULL;
    FILE *file = fopen(at("simple.tgc"), "rb");
    CHECK(file != NULL);
    if (file == NULL)
        return;
    size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    CHECK(tgc_model_open_memory(bytes, size, &model) == TGC_OK);
    memset(bytes, 0, size);
    CHECK(tgc_model_entry_count(model) == 1);
    tgc_model_close(model);
    FAILS(tgc_model_open_memory(bytes, size, &model), TGC_ERROR_NOT_ARTIFACT, "");
    CHECK(model == NULL);
    FAILS(tgc_model_open_memory(bytes, 0, &model), TGC_ERROR_NOT_ARTIFACT, "");
    FAILS(tgc_model_open_memory(NULL, 0, &model), TGC_ERROR_NOT_ARTIFACT, "");
    FAILS(tgc_model_open_memory(NULL, 5, &model), TGC_ERROR_USAGE, "`bytes` is NULL");
    FAILS(tgc_model_open_memory(bytes, SIZE_MAX, &model), TGC_ERROR_USAGE, "larger than the address space");
    FAILS(tgc_model_open_memory(bytes, size, NULL), TGC_ERROR_USAGE, "`model` is NULL");
}

static void descriptions(void) {
    tgc_model *model = open_model("simple.tgc");
    const tgc_entry *entry = tgc_model_entry(model, 0);
    size_t index = 77;
    union {
        char bytes[16];
        tgc_model *aligned;
    } odd = {{0}};

    CHECK(strcmp(entry->name, "forward") == 0);
    CHECK(entry->input_count == 1 && entry->output_count == 1);
    CHECK(strcmp(entry->inputs[0]->name, "x") == 0 && strcmp(entry->outputs[0]->name, "y") == 0);
    CHECK(entry->inputs[0]->dtype == TGC_I64 && !entry->inputs[0]->has_default && entry->inputs[0]->rank == 2);
    CHECK(entry->inputs[0]->dims[0].size == -1 && strcmp(entry->inputs[0]->dims[0].text, "batch") == 0);
    CHECK(entry->inputs[0]->dims[0].lo == 0 && entry->inputs[0]->dims[0].hi == 64);
    CHECK(entry->inputs[0]->dims[1].size == 2 && strcmp(entry->inputs[0]->dims[1].text, "2") == 0);
    CHECK(entry->inputs[0]->dims[1].lo == 2 && entry->inputs[0]->dims[1].hi == 2);

    CHECK(tgc_entry_input(entry, "x", &index) == TGC_OK && index == 0);
    index = 77;
    CHECK(tgc_entry_output(entry, "y", &index) == TGC_OK && index == 0);
    index = 77;
    FAILS(tgc_entry_input(entry, "y", &index), TGC_ERROR_INPUT_NAME, "there are `x`");
    FAILS(tgc_entry_output(entry, "x", &index), TGC_ERROR_USAGE, "there are `y`");
    FAILS(tgc_entry_input(entry, "\xc3(", &index), TGC_ERROR_USAGE, "`name` is not UTF-8");
    CHECK(index == 77);
    FAILS(tgc_entry_input(NULL, "x", &index), TGC_ERROR_USAGE, "`entry` is NULL");
    FAILS(tgc_entry_input(entry, NULL, &index), TGC_ERROR_USAGE, "`name` is NULL");
    FAILS(tgc_entry_input(entry, "x", NULL), TGC_ERROR_USAGE, "`index` is NULL");
    FAILS(tgc_entry_output(NULL, "x", &index), TGC_ERROR_USAGE, "`entry` is NULL");
    FAILS(tgc_entry_output(entry, NULL, &index), TGC_ERROR_USAGE, "`name` is NULL");
    FAILS(tgc_entry_output(entry, "y", NULL), TGC_ERROR_USAGE, "`index` is NULL");
    GIVES_NOTHING(tgc_model_entry(model, 1), "there is no entry 1; the model has 1");
    GIVES_NOTHING(tgc_model_entry(NULL, 0), "`model` is NULL");
    GIVES_NOTHING(tgc_model_entry_count(NULL), "`model` is NULL");
    FAILS(tgc_model_open(at("simple.tgc"), (tgc_model **)(void *)(odd.bytes + 1)), TGC_ERROR_USAGE, "not aligned");
    tgc_model_close(model);

    model = open_model("by_data.tgc");
    entry = tgc_model_entry(model, 0);
    CHECK(entry->output_count == 2 && strcmp(entry->outputs[0]->dims[0].text, "n") == 0);
    tgc_model_close(model);
}

static void sessions(void) {
    tgc_model *model = open_model("simple.tgc"), *two = open_model("two_entries.tgc");
    tgc_session_options options = TGC_SESSION_OPTIONS_INIT;
    tgc_session *session = (tgc_session *)&model;
    const tgc_entry *entry;

    FAILS(tgc_session_open(NULL, NULL, NULL, &session), TGC_ERROR_USAGE, "`model` is NULL");
    CHECK(session == NULL);
    FAILS(tgc_session_open(model, NULL, NULL, NULL), TGC_ERROR_USAGE, "`session` is NULL");
    FAILS(tgc_session_open(model, "backward", NULL, &session), TGC_ERROR_ENTRY_NAME, "`backward`");
    FAILS(tgc_session_open(model, "\377", NULL, &session), TGC_ERROR_USAGE, "`entry` is not UTF-8");
    FAILS(tgc_session_open(two, NULL, NULL, &session), TGC_ERROR_ENTRY_NAME, "forward, other");
    options.struct_size = 8;
    FAILS(tgc_session_open(model, NULL, &options, &session), TGC_ERROR_USAGE, "8 bytes, allowed 24");
    options.struct_size = sizeof options;
    options.threads = 100000;
    FAILS(tgc_session_open(model, NULL, &options, &session), TGC_ERROR_THREADS, "100000 threads");

    CHECK(tgc_session_open(two, "other", NULL, &session) == TGC_OK);
    entry = tgc_session_entry(session);
    CHECK(entry == tgc_model_entry(two, 1));
    tgc_model_close(two);
    CHECK(strcmp(entry->name, "other") == 0);
    CHECK(tgc_session_memory(session) == 0);
    GIVES_NOTHING(tgc_session_entry(NULL), "`session` is NULL");
    GIVES_NOTHING(tgc_session_memory(NULL), "`session` is NULL");
    tgc_session_close(session);
    tgc_model_close(model);
}

static void bindings(void) {
    tgc_model *model = open_model("simple.tgc"), *guarded = open_model("guarded.tgc");
    tgc_session *session = open_session(model, 1);
    tgc_session_options options = TGC_SESSION_OPTIONS_INIT;
    int64_t dims[] = {3, 2}, out[2] = {-7, -7};
    tgc_shape shape = {2, NULL}, many[] = {{2, NULL}, {2, NULL}};

    FAILS(tgc_session_output_shape(session, 0, out, 2), TGC_ERROR_USAGE, "not bound");
    FAILS(tgc_session_bind(session, &shape, 1), TGC_ERROR_USAGE, "`shapes[0].dims` is NULL");
    shape.dims = dims;
    CHECK(tgc_session_bind(session, &shape, 1) == TGC_OK);
    CHECK(tgc_session_output_shape(session, 0, out, 2) == TGC_OK && out[0] == 3 && out[1] == 2);
    CHECK(tgc_session_memory(session) >= 3 * 2 * 8);
    FAILS(tgc_session_output_shape(session, 1, out, 2), TGC_ERROR_USAGE, "there is no output 1; the entry has 1");
    FAILS(tgc_session_output_shape(session, 0, out, 3), TGC_ERROR_USAGE, "has rank 2, room is given for 3 dims");
    FAILS(tgc_session_output_shape(session, 0, NULL, 2), TGC_ERROR_USAGE, "`dims` is NULL");
    FAILS(tgc_session_output_shape(NULL, 0, out, 2), TGC_ERROR_USAGE, "`session` is NULL");

    FAILS(tgc_session_bind(NULL, &shape, 1), TGC_ERROR_USAGE, "`session` is NULL");
    FAILS(tgc_session_bind(session, NULL, 1), TGC_ERROR_USAGE, "`shapes` is NULL");
    FAILS(tgc_session_bind(session, many, 2), TGC_ERROR_USAGE, "2 shapes given, allowed 1: `x`");
    FAILS(tgc_session_bind(session, NULL, 0), TGC_ERROR_USAGE, "0 shapes given, allowed 1: `x`");
    CHECK(tgc_session_output_shape(session, 0, out, 2) == TGC_OK);
    shape.rank = 1;
    FAILS(tgc_session_bind(session, &shape, 1), TGC_ERROR_INPUT_RANK, "give a shape [batch, 2]");
    shape.rank = SIZE_MAX - 1;
    FAILS(tgc_session_bind(session, &shape, 1), TGC_ERROR_INPUT_RANK, "allowed 2");
    shape.rank = TGC_LEFT_OUT;
    FAILS(tgc_session_bind(session, &shape, 1), TGC_ERROR_INPUT_NAME, "`x` is missing");
    shape.rank = 2;
    dims[0] = -1;
    FAILS(tgc_session_bind(session, &shape, 1), TGC_ERROR_INPUT_DIM, "axis 0 is -1");
    dims[0] = 65;
    FAILS(tgc_session_bind(session, &shape, 1), TGC_ERROR_INPUT_DIM, "axis 0 is 65, allowed 0..=64 (dim `batch`)");
    FAILS(tgc_session_output_shape(session, 0, out, 2), TGC_ERROR_USAGE, "not bound");
    dims[0] = 64;
    CHECK(tgc_session_bind(session, &shape, 1) == TGC_OK);
    tgc_session_close(session);

    session = open_session(guarded, 1);
    FAILS(tgc_session_bind(session, &shape, 1), TGC_ERROR_GUARD, "node `cut`");
    dims[0] = 4;
    CHECK(tgc_session_bind(session, &shape, 1) == TGC_OK);
    tgc_session_close(session);

    options.memory_limit = 100;
    CHECK(tgc_session_open(model, NULL, &options, &session) == TGC_OK);
    dims[0] = 64;
    FAILS(tgc_session_bind(session, &shape, 1), TGC_ERROR_MEMORY, "allowed 100");
    tgc_session_close(session);
    tgc_model_close(model);
    tgc_model_close(guarded);
}

static void runs(void) {
    tgc_model *model = open_model("simple.tgc");
    tgc_session *session = open_session(model, 2);
    int64_t dims[] = {2, 2}, x[5] = {1, 2, 3, 4, 5}, y[5] = {0, 0, 0, 0, 99};
    tgc_shape shape = {2, NULL};
    tgc_input in = {x, 32};
    tgc_output out = {y, 32};
    const void *data;
    size_t bytes;

    shape.dims = dims;
    FAILS(tgc_session_run(session, &in, 1, &out, 1), TGC_ERROR_USAGE, "not bound");
    FAILS(tgc_session_run_owned(session, &in, 1), TGC_ERROR_USAGE, "not bound");
    CHECK(tgc_session_bind(session, &shape, 1) == TGC_OK);
    tgc_model_close(model);
    CHECK(tgc_session_run(session, &in, 1, &out, 1) == TGC_OK);
    CHECK(y[0] == 4 && y[1] == 6 && y[2] == 8 && y[3] == 10 && y[4] == 99);

    FAILS(tgc_session_run(NULL, &in, 1, &out, 1), TGC_ERROR_USAGE, "`session` is NULL");
    FAILS(tgc_session_run(session, NULL, 1, &out, 1), TGC_ERROR_USAGE, "`inputs` is NULL");
    FAILS(tgc_session_run(session, &in, 1, NULL, 1), TGC_ERROR_USAGE, "`outputs` is NULL");
    FAILS(tgc_session_run(session, &in, 0, &out, 1), TGC_ERROR_USAGE, "0 inputs given, allowed 1: `x`");
    FAILS(tgc_session_run(session, &in, 1, &out, SIZE_MAX), TGC_ERROR_USAGE, "allowed 1: `y`");
    in.bytes = 24;
    FAILS(tgc_session_run(session, &in, 1, &out, 1), TGC_ERROR_CALLER_BUFFER, "input `x` has 24 bytes, allowed 32");
    in.bytes = 0;
    FAILS(tgc_session_run(session, &in, 1, &out, 1), TGC_ERROR_CALLER_BUFFER, "input `x` has 0 bytes, allowed 32");
    in.bytes = SIZE_MAX;
    FAILS(tgc_session_run(session, &in, 1, &out, 1), TGC_ERROR_USAGE, "larger than the address space");
    in.bytes = 32;
    out.bytes = 40;
    FAILS(tgc_session_run(session, &in, 1, &out, 1), TGC_ERROR_CALLER_BUFFER, "output `y` has 40 bytes");
    out.bytes = 32;
    in.data = NULL;
    FAILS(tgc_session_run(session, &in, 1, &out, 1), TGC_ERROR_USAGE, "`inputs[0].data` is NULL");
    in.data = (const char *)x + 4;
    FAILS(tgc_session_run(session, &in, 1, &out, 1), TGC_ERROR_CALLER_BUFFER, "not aligned");
    in.data = x;
    out.data = NULL;
    FAILS(tgc_session_run(session, &in, 1, &out, 1), TGC_ERROR_USAGE, "`outputs[0].data` is NULL");
    out.data = x;
    FAILS(tgc_session_run(session, &in, 1, &out, 1), TGC_ERROR_CALLER_BUFFER, "outputs[0] (32 bytes) overlaps inputs[0] (32 bytes)");
    out.data = x + 1;
    FAILS(tgc_session_run(session, &in, 1, &out, 1), TGC_ERROR_CALLER_BUFFER, "outputs[0] (32 bytes) overlaps inputs[0] (32 bytes)");
    out.data = y;
    x[3] = -1;
    FAILS(tgc_session_run(session, &in, 1, &out, 1), TGC_ERROR_DATA, "node `n1` (AddOne) at model.rs:3");
    x[3] = 4;
    memset(y, 0, sizeof y);
    CHECK(tgc_session_run(session, &in, 1, &out, 1) == TGC_OK && y[3] == 10);

    FAILS(tgc_session_owned_output(session, 0, &data, &bytes, dims, 2), TGC_ERROR_USAGE, "holds no outputs");
    dims[0] = 0;
    CHECK(tgc_session_bind(session, &shape, 1) == TGC_OK);
    in.data = out.data = NULL;
    in.bytes = out.bytes = 0;
    CHECK(tgc_session_run(session, &in, 1, &out, 1) == TGC_OK);
    CHECK(tgc_session_run_owned(session, &in, 1) == TGC_OK);
    dims[0] = dims[1] = 55;
    CHECK(tgc_session_owned_output(session, 0, &data, &bytes, dims, 2) == TGC_OK && bytes == 0 && dims[0] == 0);
    tgc_session_close(session);
}

static void defaults(void) {
    tgc_model *model = open_model("default.tgc");
    tgc_session *session = open_session(model, 1);
    int64_t a[] = {5, 5, 5}, y[3] = {0, 0, 0}, three = 3, two[1] = {0};
    tgc_shape left_out = {TGC_LEFT_OUT, NULL}, given = {1, NULL};
    tgc_input nothing = {NULL, 0}, in = {a, sizeof a};
    tgc_output out = {y, 16};

    given.dims = &three;
    CHECK(tgc_session_entry(session)->inputs[0]->has_default == 1);
    CHECK(tgc_session_bind(session, &left_out, 1) == TGC_OK);
    CHECK(tgc_session_output_shape(session, 0, two, 1) == TGC_OK && two[0] == 2);
    CHECK(tgc_session_run(session, &nothing, 1, &out, 1) == TGC_OK && y[0] == 11 && y[1] == 22 && y[2] == 0);
    FAILS(tgc_session_run(session, &in, 1, &out, 1), TGC_ERROR_CALLER_BUFFER, "bind again");
    CHECK(tgc_session_bind(session, &given, 1) == TGC_OK);
    FAILS(tgc_session_run(session, &nothing, 1, &out, 1), TGC_ERROR_CALLER_BUFFER, "input `a` has 0 bytes, allowed 24");
    out.bytes = sizeof y;
    CHECK(tgc_session_run(session, &in, 1, &out, 1) == TGC_OK && y[0] == 15 && y[1] == 25 && y[2] == 35);
    tgc_session_close(session);
    tgc_model_close(model);
}

static void sizes_from_data(void) {
    tgc_model *model = open_model("by_data.tgc");
    tgc_session *session = open_session(model, 2);
    int64_t x[1] = {6}, y[7], z[1], one = 1, dims[1] = {0};
    tgc_shape shape = {1, NULL};
    tgc_input in = {x, sizeof x};
    tgc_output out[] = {{y, sizeof y}, {z, sizeof z}}, both[] = {{y, sizeof y}, {y, sizeof z}};
    const void *data = NULL;
    size_t bytes = 0;

    shape.dims = &one;
    CHECK(tgc_session_bind(session, &shape, 1) == TGC_OK);
    FAILS(tgc_session_output_shape(session, 0, dims, 1), TGC_ERROR_CALLER_BUFFER, "`y` depends on data");
    CHECK(tgc_session_output_shape(session, 1, dims, 1) == TGC_OK && dims[0] == 1);
    FAILS(tgc_session_run(session, &in, 1, out, 2), TGC_ERROR_CALLER_BUFFER, "depends on data");
    FAILS(tgc_session_run(session, &in, 1, both, 2), TGC_ERROR_CALLER_BUFFER, "outputs[1] (8 bytes) overlaps outputs[0] (56 bytes)");
    FAILS(tgc_session_run_owned(session, &in, 2), TGC_ERROR_USAGE, "2 inputs given, allowed 1: `x`");
    FAILS(tgc_session_run_owned(session, NULL, 1), TGC_ERROR_USAGE, "`inputs` is NULL");
    FAILS(tgc_session_run_owned(NULL, &in, 1), TGC_ERROR_USAGE, "`session` is NULL");
    for (x[0] = 0; x[0] < 5000; x[0] += 999) {
        int64_t i, wrong = 0;
        CHECK(tgc_session_run_owned(session, &in, 1) == TGC_OK);
        CHECK(tgc_session_owned_output(session, 0, &data, &bytes, dims, 1) == TGC_OK);
        CHECK(dims[0] == x[0] + 1 && bytes == (size_t)dims[0] * 8);
        for (i = 0; i < dims[0]; i++)
            wrong += ((const int64_t *)data)[i] != 2 * (10 + i);
        CHECK(wrong == 0);
        CHECK(tgc_session_owned_output(session, 1, &data, &bytes, dims, 1) == TGC_OK);
        CHECK(bytes == 8 && *(const int64_t *)data == x[0] + 1);
    }
    FAILS(tgc_session_owned_output(session, 2, &data, &bytes, dims, 1), TGC_ERROR_USAGE, "there is no output 2");
    FAILS(tgc_session_owned_output(session, 0, &data, &bytes, dims, 0), TGC_ERROR_USAGE, "has rank 1");
    FAILS(tgc_session_owned_output(session, 0, NULL, &bytes, dims, 1), TGC_ERROR_USAGE, "`data` is NULL");
    FAILS(tgc_session_owned_output(session, 0, &data, NULL, dims, 1), TGC_ERROR_USAGE, "`bytes` is NULL");
    FAILS(tgc_session_owned_output(session, 0, &data, &bytes, NULL, 1), TGC_ERROR_USAGE, "`dims` is NULL");
    FAILS(tgc_session_owned_output(NULL, 0, &data, &bytes, dims, 1), TGC_ERROR_USAGE, "`session` is NULL");
    x[0] = 1000000;
    FAILS(tgc_session_run_owned(session, &in, 1), TGC_ERROR_DATA, "allowed 0..=100000");
    FAILS(tgc_session_owned_output(session, 0, &data, &bytes, dims, 1), TGC_ERROR_USAGE, "holds no outputs");
    tgc_session_close(session);
    tgc_model_close(model);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: contract FOLDER\n");
        return 2;
    }
    folder = argv[1];
    versions();
    files();
    memory();
    descriptions();
    sessions();
    bindings();
    runs();
    defaults();
    sizes_from_data();
    return finish();
}
