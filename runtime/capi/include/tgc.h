/*
 * tgc.h - runs artifacts of the tgc tensor compiler from C and C++.
 *
 *     tgc_model *model;
 *     tgc_session *session;
 *     int64_t dims[] = {3, 784};
 *     tgc_shape shapes[] = {{2, dims}};
 *     float x[3 * 784], y[3 * 10];
 *     tgc_input inputs[] = {{x, sizeof x}};
 *     tgc_output outputs[] = {{y, sizeof y}};
 *
 *     if (tgc_model_open("mlp.tgc", &model) ||
 *         tgc_session_open(model, NULL, NULL, &session) ||
 *         tgc_session_bind(session, shapes, 1) ||
 *         tgc_session_run(session, inputs, 1, outputs, 1))
 *         fprintf(stderr, "%s\n", tgc_last_error());
 *
 * A model is an opened artifact. A session is one user of one of its entries (the ways to call it): it binds the entry to
 * the shapes of inputs, which checks them and computes everything that depends on sizes, and then runs it as often as
 * wanted. Binding again, also to other shapes, is allowed at any time; recently used shapes are remembered.
 *
 * Errors. A function that can fail returns a tgc_status: TGC_OK, which is 0, or what is wrong. Functions that return
 * something else give NULL or 0. Either way tgc_last_error() then has the whole diagnostic as text. NULL where something is
 * needed, sizes and counts that do not fit, names that do not exist or are not UTF-8 are errors like any other. Whatever
 * fails leaves its model and session as usable as before (a failed bind leaves the session unbound). Results through
 * pointers are set to NULL or left alone. What C does not let a library check remains the caller's duty: that pointers
 * point to as much as is said, that texts end with a 0 byte, that a handle is not used after it was closed. Where not even
 * a few hundred bytes of memory can be had, the process ends; memory for tensors that cannot be had is TGC_ERROR_MEMORY.
 *
 * Ownership. Who opens a model or session closes it; closing NULL does nothing. A session keeps what it needs of its model:
 * the two may be closed in either order. Descriptions (tgc_entry and what it points to) are the library's, read-only, and
 * live until the model and all of its sessions are closed. Buffers given to a run are the caller's and are used during the
 * call only. What tgc_session_owned_output gives belongs to the session.
 *
 * Threads. A model may be used by any number of threads at the same time. A session may move from thread to thread, but
 * only one may use it at a time; a call that finds it in use fails with TGC_ERROR_USAGE. No handle may be closed while
 * another thread uses it. For parallel requests give each thread a session of the same model: weights are shared. Work
 * inside a run is spread over a pool of threads that all sessions of the process share, unless `threads` asks for a pool of
 * its own. Results are the same to the bit for every number of threads. A child made by fork() has no use of its parent's
 * sessions. The library stays loaded until the process ends, dlclose or not.
 *
 * Trust. An artifact is native code: open only what you would run as a program.
 *
 * Runs expect the default floating-point environment.
 */
#ifndef TGC_H
#define TGC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The version of this interface. It is part of the shared library's name and grows when programs must be compiled anew;
 * functions, codes, and fields at the end of tgc_entry and tgc_port may be added without. While it is 0 every release may
 * change it.
 */
#define TGC_ABI_VERSION 0

/* ---- Status and errors ---- */

/* How a call went. The number is that of the diagnostic: 14 is E-RUN-014. More may be added. */
typedef int32_t tgc_status;

enum {
    TGC_OK = 0,
    /* The file is not an artifact. */
    TGC_ERROR_NOT_ARTIFACT = 1,
    /* The artifact is of another format or kernel interface version. */
    TGC_ERROR_VERSION = 2,
    /* The artifact is damaged: cut short, changed, or inconsistent in itself. */
    TGC_ERROR_DAMAGED = 3,
    /* No code image of the artifact runs on this CPU. */
    TGC_ERROR_NO_IMAGE = 4,
    /* The system refuses to map code. */
    TGC_ERROR_CODE_MAP = 5,
    /* A file could not be read. */
    TGC_ERROR_IO = 6,
    /* The artifact needs a part of the runtime that is not built yet. */
    TGC_ERROR_NOT_BUILT = 7,
    /* There is no entry of this name. */
    TGC_ERROR_ENTRY_NAME = 10,
    /* An input is missing or unknown. */
    TGC_ERROR_INPUT_NAME = 11,
    /* An input has another element type. (No function of this header gives it: buffers carry no types.) */
    TGC_ERROR_INPUT_DTYPE = 12,
    /* An input has another rank. */
    TGC_ERROR_INPUT_RANK = 13,
    /* An input has a size that is not allowed. */
    TGC_ERROR_INPUT_DIM = 14,
    /* A condition of the model does not hold for these sizes. */
    TGC_ERROR_GUARD = 15,
    /* No variant of the model fits these sizes, or the one that does has no program. */
    TGC_ERROR_VARIANT = 16,
    /* A size formula has no value. */
    TGC_ERROR_SIZE = 17,
    /* More memory is needed than allowed or available. */
    TGC_ERROR_MEMORY = 18,
    /* A caller's buffer has a wrong length or alignment, overlaps another, or cannot hold what depends on data. */
    TGC_ERROR_CALLER_BUFFER = 19,
    /* The model failed on the data it was given. */
    TGC_ERROR_DATA = 20,
    /* Worker threads could not be had. */
    TGC_ERROR_THREADS = 21,
    /* A function was called wrongly: NULL, an index or count out of range, a text that is not UTF-8, nothing bound. */
    TGC_ERROR_USAGE = 22,
    /* A bug in the runtime, caught; its place is on stderr. The session it happened in refuses further calls: close it. */
    TGC_ERROR_BUG = 201
};

/*
 * The diagnostic of this thread's last call that failed: each fault on a line with its code, what was found and what is
 * allowed, then how to get past it. "" before the first failure; calls that succeed leave it alone. Never NULL; valid until
 * the thread's next call that fails, or its end.
 */
const char *tgc_last_error(void);

/* ---- Versions and element types ---- */

/* TGC_ABI_VERSION of the library. A program that loads the library itself compares it with the header's. */
uint32_t tgc_abi_version(void);

/* The release of the library: "0.1.0". Static. */
const char *tgc_version(void);

/* The type of one element. Elements are in the machine's byte order. More may be added. */
typedef int32_t tgc_dtype;

enum {
    TGC_F32 = 0,
    TGC_F64 = 1,
    TGC_F16 = 2,
    TGC_BF16 = 3,
    TGC_I8 = 4,
    TGC_I16 = 5,
    TGC_I32 = 6,
    TGC_I64 = 7,
    TGC_U8 = 8,
    TGC_U16 = 9,
    TGC_U32 = 10,
    TGC_U64 = 11,
    /* One byte, 0 or 1. */
    TGC_BOOL = 12
};

/* Bytes of one element, which is also its alignment; 0 if there is no such type. */
size_t tgc_dtype_size(tgc_dtype dtype);

/* ---- What a model offers ---- */

/* A size of an input or output. This structure does not change. */
typedef struct tgc_dim {
    /* The size where it is fixed, otherwise -1. */
    int64_t size;
    /* The least and the greatest size allowed. (0 and INT64_MAX where `text` is a formula, which may allow less.) */
    int64_t lo;
    int64_t hi;
    /* "784", the name of a size that varies ("batch"), or a formula of such names ("2*batch"). Equal names are equal sizes. */
    const char *text;
} tgc_dim;

/* An input or output: a dense tensor, row-major. Only the library makes these. */
typedef struct tgc_port {
    /* The model's own name for it. (A 0 byte in a name shows as U+FFFD.) */
    const char *name;
    tgc_dtype dtype;
    /* 1 for an input that may be left out, because the model has values for it; otherwise 0. */
    int32_t has_default;
    /* How many dims there are; 0 for a scalar. */
    size_t rank;
    const tgc_dim *dims;
} tgc_port;

/* One way to call a model. The order of inputs and outputs is the order of buffers. Only the library makes these. */
typedef struct tgc_entry {
    const char *name;
    size_t input_count;
    const tgc_port *const *inputs;
    size_t output_count;
    const tgc_port *const *outputs;
} tgc_entry;

/* Finds the input of this name: its place in `entry->inputs`. */
tgc_status tgc_entry_input(const tgc_entry *entry, const char *name, size_t *index);

/* Finds the output of this name: its place in `entry->outputs`. */
tgc_status tgc_entry_output(const tgc_entry *entry, const char *name, size_t *index);

/* ---- Models ---- */

/* An opened artifact. */
typedef struct tgc_model tgc_model;

/*
 * Opens an artifact file, checks all of it but the weights, and picks the code for this CPU. The file is mapped and must not
 * be changed while the model or a session of it is open (put a new version in its place by renaming).
 */
tgc_status tgc_model_open(const char *path, tgc_model **model);

/* Opens an artifact that is in memory. The bytes are copied and not needed afterwards. */
tgc_status tgc_model_open_memory(const void *bytes, size_t size, tgc_model **model);

/* Closes a model. Its sessions stay usable. */
void tgc_model_close(tgc_model *model);

/* How many entries the model has; 0 if `model` is NULL. */
size_t tgc_model_entry_count(const tgc_model *model);

/* The entry at `index`, from 0; NULL if there is none. */
const tgc_entry *tgc_model_entry(const tgc_model *model, size_t index);

/* ---- Sessions ---- */

/* One user of an entry: what is bound, memory for temporaries, and the model's states if it has any. */
typedef struct tgc_session tgc_session;

/* Choices for a session. Start from TGC_SESSION_OPTIONS_INIT, so that programs go on to work with later fields. */
typedef struct tgc_session_options {
    /* sizeof(tgc_session_options) */
    size_t struct_size;
    /* Threads of a pool of its own, the caller's included; 0 for the pool of the process, with a thread a CPU. */
    size_t threads;
    /* The most bytes for temporaries, scratch and states together; 0 for no limit. Weights are not counted. */
    uint64_t memory_limit;
} tgc_session_options;

#define TGC_SESSION_OPTIONS_INIT { sizeof(tgc_session_options), 0, 0 }

/*
 * Makes a session for the entry of this name; NULL stands for the model's only entry. `options` may be NULL. A model with
 * states starts from their initial values in every session.
 */
tgc_status tgc_session_open(const tgc_model *model, const char *entry, const tgc_session_options *options,
                            tgc_session **session);

/* Closes a session and frees its memory. */
void tgc_session_close(tgc_session *session);

/* The entry that the session calls; NULL if `session` is NULL. */
const tgc_entry *tgc_session_entry(const tgc_session *session);

/* The shape of an input. */
typedef struct tgc_shape {
    /* How many dims; TGC_LEFT_OUT for an input that takes its default. */
    size_t rank;
    /* The sizes; may be NULL if there are none. */
    const int64_t *dims;
} tgc_shape;

#define TGC_LEFT_OUT SIZE_MAX

/*
 * Binds to these shapes, one for each input of the entry in its order: checks them against the model, chooses its variant,
 * makes the memory. Allocates, unless the shapes are among the last few that were bound.
 */
tgc_status tgc_session_bind(tgc_session *session, const tgc_shape *shapes, size_t count);

/*
 * The sizes of output `index` for the bound shapes, into `dims`, which has room for `rank` of them: the rank of the output.
 * TGC_ERROR_CALLER_BUFFER if they depend on the data; tgc_session_run_owned runs such models.
 */
tgc_status tgc_session_output_shape(const tgc_session *session, size_t index, int64_t *dims, size_t rank);

/* The elements of an input, dense row-major, aligned to their size. */
typedef struct tgc_input {
    /* NULL for an input that was left out, or that has no bytes. */
    const void *data;
    size_t bytes;
} tgc_input;

/* Room for the elements of an output, dense row-major, aligned to their size. */
typedef struct tgc_output {
    /* May be NULL if the output has no bytes. */
    void *data;
    size_t bytes;
} tgc_output;

/*
 * Runs the entry on the bound shapes: one buffer for each input and output in the entry's order, each of exactly the bytes
 * that its shape has. Outputs may overlap neither inputs nor each other. Returns when the outputs are complete; after an
 * error their content is unspecified. Allocates nothing, unless it fails or sizes depend on data.
 */
tgc_status tgc_session_run(tgc_session *session, const tgc_input *inputs, size_t input_count, const tgc_output *outputs,
                           size_t output_count);

/*
 * As tgc_session_run, into outputs that the library allocates: for outputs whose sizes are only known when the model has
 * run, and for convenience.
 */
tgc_status tgc_session_run_owned(tgc_session *session, const tgc_input *inputs, size_t input_count);

/*
 * Output `index` of the last tgc_session_run_owned. `*data` and `*bytes` become its elements, and `dims`, which has room for
 * `rank` sizes (the rank of the output), its shape. The data is the session's: it is valid until the next
 * tgc_session_run_owned of the session, or its end. `dims` may be NULL if `rank` is 0.
 */
tgc_status tgc_session_owned_output(const tgc_session *session, size_t index, const void **data, size_t *bytes,
                                    int64_t *dims, size_t rank);

/* Bytes that the session holds for temporaries, scratch and states; 0 if `session` is NULL or in use. */
uint64_t tgc_session_memory(const tgc_session *session);

#ifdef __cplusplus
}
#endif

#endif
