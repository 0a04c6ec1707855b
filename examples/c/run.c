/*
 * Runs an artifact of tgc on raw files and prints its outputs: a whole program on the C interface of the runtime.
 *
 * To build it, in the repository's root, with the shared library or the static one:
 *
 *   runtime/capi/install target/c
 *   cc -std=c99 -O2 -I target/c/include -o target/c/run examples/c/run.c -L target/c/lib -ltgc -Wl,-rpath,$PWD/target/c/lib
 *   cc -std=c99 -O2 -I target/c/include -o target/c/run-static examples/c/run.c target/c/lib/libtgc.a -lm -lpthread -ldl
 *
 * To use it:
 *
 *   target/c/run MODEL.tgc [--dim NAME=SIZE]... INPUT...
 *
 * Each INPUT is a file with the elements of one input, in the model's order and as they lie in memory; `-` leaves out an
 * input that has a default. A size that varies follows from the length of a file, if it is the only one there; others
 * are given, as --dim batch=8. Exit codes: 0 done, 1 something is wrong with the files, 2 wrong usage.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tgc.h>

/* A size that varies, once it is known. */
struct known {
    const char *name;
    size_t length;
    int64_t size;
};

struct call {
    tgc_model *model;
    tgc_session *session;
    const tgc_entry *entry;
    struct known known[64];
    size_t known_count;
    tgc_shape *shapes;
    tgc_input *inputs;
    tgc_output *outputs;
    int64_t **output_dims;
};

static void *take(size_t bytes) {
    void *at = calloc(bytes ? bytes : 1, 1);
    if (at == NULL) {
        fprintf(stderr, "error: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return at;
}

/* Says what a call of the library found wrong, if anything; 1 if all is well. */
static int good(tgc_status status) {
    if (status != TGC_OK)
        fprintf(stderr, "%s\n", tgc_last_error());
    return status == TGC_OK;
}

/* The size of a dim, or -1 if it is not known. */
static int64_t size_of(const struct call *call, const tgc_dim *dim) {
    size_t i;
    for (i = 0; dim->size < 0 && i < call->known_count; i++)
        if (strlen(dim->text) == call->known[i].length && !strncmp(dim->text, call->known[i].name, call->known[i].length))
            return call->known[i].size;
    return dim->size;
}

static int know(struct call *call, const char *name, size_t length, int64_t size) {
    if (call->known_count == sizeof call->known / sizeof *call->known) {
        fprintf(stderr, "error: more sizes than this program can hold\n");
        return 0;
    }
    call->known[call->known_count].name = name;
    call->known[call->known_count].length = length;
    call->known[call->known_count++].size = size;
    return 1;
}

static int read_file(const char *path, void **data, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    size_t room = 1 << 16, got = 0, n = 0;
    char *at;
    if (file == NULL) {
        fprintf(stderr, "error: %s cannot be read\n", path);
        return 0;
    }
    at = take(room);
    while ((n = fread(at + got, 1, room - got, file)) > 0) {
        got += n;
        if (got == room) {
            char *more = take(2 * room);
            memcpy(more, at, got);
            free(at);
            at = more;
            room *= 2;
        }
    }
    if (ferror(file)) {
        fprintf(stderr, "error: %s cannot be read\n", path);
        free(at);
        at = NULL;
    }
    fclose(file);
    *data = at;
    *bytes = got;
    return at != NULL;
}

/* The shape of an input, one size of which may follow from the bytes of its file. */
static int find_shape(struct call *call, const tgc_port *port, size_t bytes, tgc_shape *shape) {
    int64_t *dims = take(port->rank * sizeof *dims);
    uint64_t unit = tgc_dtype_size(port->dtype);
    const tgc_dim *open = NULL;
    size_t i;
    shape->rank = port->rank;
    shape->dims = dims;
    for (i = 0; i < port->rank; i++) {
        dims[i] = size_of(call, &port->dims[i]);
        if (dims[i] >= 0) {
            unit *= (uint64_t)dims[i];
        } else if (open == NULL) {
            open = &port->dims[i];
        } else {
            fprintf(stderr, "error: input `%s`: give --dim %s=SIZE or --dim %s=SIZE\n", port->name, open->text, port->dims[i].text);
            return 0;
        }
    }
    if (open == NULL)
        return 1;
    if (unit == 0 || bytes % unit != 0) {
        fprintf(stderr, "error: input `%s`: %zu bytes are no multiple of %" PRIu64 "; give --dim %s=SIZE\n", port->name, bytes,
                unit, open->text);
        return 0;
    }
    for (i = 0; i < port->rank; i++)
        if (&port->dims[i] == open)
            dims[i] = (int64_t)(bytes / unit);
    return know(call, open->text, strlen(open->text), (int64_t)(bytes / unit));
}

/* Reads the inputs and finds their shapes. */
static int read_inputs(struct call *call, char **files, size_t count) {
    size_t i;
    if (count != call->entry->input_count) {
        fprintf(stderr, "error: %zu inputs given; the model has %zu:", count, call->entry->input_count);
        for (i = 0; i < call->entry->input_count; i++)
            fprintf(stderr, " %s", call->entry->inputs[i]->name);
        fprintf(stderr, "\n");
        return 0;
    }
    for (i = 0; i < count; i++) {
        void *data = NULL;
        if (!strcmp(files[i], "-")) {
            call->shapes[i].rank = TGC_LEFT_OUT;
            continue;
        }
        if (!read_file(files[i], &data, &call->inputs[i].bytes))
            return 0;
        call->inputs[i].data = data;
        if (!find_shape(call, call->entry->inputs[i], call->inputs[i].bytes, &call->shapes[i]))
            return 0;
    }
    return 1;
}

/* Allocates the outputs, whose shapes follow from those of the inputs. */
static int make_outputs(struct call *call) {
    size_t i, axis;
    for (i = 0; i < call->entry->output_count; i++) {
        const tgc_port *port = call->entry->outputs[i];
        int64_t *dims = call->output_dims[i] = take(port->rank * sizeof *dims);
        size_t bytes = tgc_dtype_size(port->dtype);
        if (!good(tgc_session_output_shape(call->session, i, dims, port->rank)))
            return 0;
        for (axis = 0; axis < port->rank; axis++)
            bytes *= (size_t)dims[axis];
        call->outputs[i].bytes = bytes;
        call->outputs[i].data = take(bytes);
    }
    return 1;
}

/* Digits enough to read back the same float. */
static void print_element(tgc_dtype dtype, const void *data, size_t i) {
    switch (dtype) {
    case TGC_F32: printf("%.9g", (double)((const float *)data)[i]); break;
    case TGC_F64: printf("%.17g", ((const double *)data)[i]); break;
    case TGC_F16:
    case TGC_BF16: printf("0x%04" PRIx16, ((const uint16_t *)data)[i]); break;
    case TGC_I8: printf("%" PRId8, ((const int8_t *)data)[i]); break;
    case TGC_I16: printf("%" PRId16, ((const int16_t *)data)[i]); break;
    case TGC_I32: printf("%" PRId32, ((const int32_t *)data)[i]); break;
    case TGC_I64: printf("%" PRId64, ((const int64_t *)data)[i]); break;
    case TGC_U8:
    case TGC_BOOL: printf("%" PRIu8, ((const uint8_t *)data)[i]); break;
    case TGC_U16: printf("%" PRIu16, ((const uint16_t *)data)[i]); break;
    case TGC_U32: printf("%" PRIu32, ((const uint32_t *)data)[i]); break;
    case TGC_U64: printf("%" PRIu64, ((const uint64_t *)data)[i]); break;
    default: printf("?");
    }
}

/* Each output: its name and sizes, then its elements, a line for each row. */
static void print_outputs(const struct call *call) {
    size_t i, e;
    for (i = 0; i < call->entry->output_count; i++) {
        const tgc_port *port = call->entry->outputs[i];
        size_t count = call->outputs[i].bytes / tgc_dtype_size(port->dtype);
        size_t row = port->rank ? (size_t)call->output_dims[i][port->rank - 1] : 1;
        printf("%s [", port->name);
        for (e = 0; e < port->rank; e++)
            printf("%s%" PRId64, e ? ", " : "", call->output_dims[i][e]);
        printf("]\n");
        for (e = 0; e < count; e++) {
            print_element(port->dtype, call->outputs[i].data, e);
            putchar((e + 1) % row ? ' ' : '\n');
        }
    }
}

static int run(struct call *call, const char *path, char **files, size_t count) {
    if (!good(tgc_model_open(path, &call->model)) || !good(tgc_session_open(call->model, NULL, NULL, &call->session)))
        return 0;
    call->entry = tgc_session_entry(call->session);
    call->shapes = take(call->entry->input_count * sizeof *call->shapes);
    call->inputs = take(call->entry->input_count * sizeof *call->inputs);
    call->outputs = take(call->entry->output_count * sizeof *call->outputs);
    call->output_dims = take(call->entry->output_count * sizeof *call->output_dims);
    if (!read_inputs(call, files, count) || !good(tgc_session_bind(call->session, call->shapes, count)) ||
        !make_outputs(call) ||
        !good(tgc_session_run(call->session, call->inputs, count, call->outputs, call->entry->output_count)))
        return 0;
    print_outputs(call);
    return 1;
}

static void clean(struct call *call) {
    size_t i;
    for (i = 0; call->shapes && i < call->entry->input_count; i++) {
        free((void *)call->shapes[i].dims);
        free((void *)call->inputs[i].data);
    }
    for (i = 0; call->output_dims && i < call->entry->output_count; i++) {
        free(call->output_dims[i]);
        free(call->outputs[i].data);
    }
    free(call->shapes);
    free(call->inputs);
    free(call->outputs);
    free(call->output_dims);
    tgc_session_close(call->session);
    tgc_model_close(call->model);
}

int main(int argc, char **argv) {
    struct call call;
    int first = 2, done;
    memset(&call, 0, sizeof call);
    if (argc < 2 || argv[1][0] == '-') {
        fprintf(stderr, "usage: %s MODEL.tgc [--dim NAME=SIZE]... INPUT...\n", argv[0]);
        return 2;
    }
    for (; first + 1 < argc && !strcmp(argv[first], "--dim"); first += 2) {
        const char *given = argv[first + 1];
        size_t length = strcspn(given, "=");
        char *end = NULL;
        long long size = given[length] ? strtoll(given + length + 1, &end, 10) : -1;
        if (length == 0 || end == NULL || end == given + length + 1 || *end != 0 || size < 0) {
            fprintf(stderr, "error: --dim %s is not NAME=SIZE\n", given);
            return 2;
        }
        if (!know(&call, given, length, size))
            return 2;
    }
    done = run(&call, argv[1], argv + first, (size_t)(argc - first));
    clean(&call);
    return done ? 0 : 1;
}
