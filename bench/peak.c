// What this machine can do, as one line of JSON: multiply-adds in f32 and reading of memory.
// usage: peak THREADS        build: cc -O3 -march=native -pthread peak.c -o peak
// Both are the best of several rounds over all threads together, since a peak is what nothing disturbed.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX__)
#define BYTES 32
#else
#define BYTES 16
#endif
#define LANES (BYTES / 4)
#define STEPS 500000L
#define ROUNDS 25
#define READ (256L << 20)
#define MAX_THREADS 256

typedef float vec __attribute__((vector_size(BYTES)));

struct task {
    pthread_barrier_t *start;
    const vec *from; // null: multiply-adds
    long vectors;
    double seconds;
    vec sink;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

#if defined(__x86_64__)
#define OPAQUE(v) __asm__ volatile("" : "+x"(v))
#elif defined(__aarch64__)
#define OPAQUE(v) __asm__ volatile("" : "+w"(v))
#else
#define OPAQUE(v) (void)0
#endif
#define EACH(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11)
#define CHAINS 12

// Independent chains keep the units busy for longer than one multiply-add takes. OPAQUE hides each value, so that no step
// can be left out or combined. Variables rather than an array, which compilers leave in memory.
static vec multiply_adds(void) {
    vec a, b, sum = {0};
    for (int l = 0; l < LANES; l++) a[l] = 0.999f, b[l] = 0.001f;
#define DECLARE(i) vec c##i = b * (float)i;
#define STEP(i) c##i = c##i * a + b; OPAQUE(c##i);
#define JOIN(i) sum += c##i;
    EACH(DECLARE)
    for (long s = 0; s < STEPS; s++) {
        EACH(STEP)
    }
    EACH(JOIN)
    return sum;
}

static vec read_all(const vec *from, long n) {
    vec acc[8];
    memset(acc, 0, sizeof acc);
    for (long i = 0; i + 8 <= n; i += 8)
        for (int c = 0; c < 8; c++) acc[c] += from[i + c];
    for (int c = 1; c < 8; c++) acc[0] += acc[c];
    return acc[0];
}

static void *work(void *p) {
    struct task *t = p;
    pthread_barrier_wait(t->start);
    double begin = now();
    t->sink = t->from ? read_all(t->from, t->vectors) : multiply_adds();
    t->seconds = now() - begin;
    return NULL;
}

// Seconds of the slowest thread in the best round.
static double measure(int threads, const vec *from) {
    double best = 1e99;
    for (int r = 0; r < ROUNDS; r++) {
        static struct task tasks[MAX_THREADS];
        pthread_t ids[MAX_THREADS];
        pthread_barrier_t start;
        pthread_barrier_init(&start, NULL, threads);
        long each = READ / BYTES / threads;
        for (int i = 0; i < threads; i++) {
            tasks[i] = (struct task){&start, from ? from + i * each : NULL, each, 0, {0}};
            if (pthread_create(&ids[i], NULL, work, &tasks[i]) != 0) exit(1);
        }
        double slowest = 0;
        for (int i = 0; i < threads; i++) {
            pthread_join(ids[i], NULL);
            if (tasks[i].seconds > slowest) slowest = tasks[i].seconds;
        }
        pthread_barrier_destroy(&start);
        if (slowest < best) best = slowest;
    }
    return best;
}

int main(int argc, char **argv) {
    int threads = argc == 2 ? atoi(argv[1]) : 0;
    vec *memory = NULL;
    if (threads < 1 || threads > MAX_THREADS) {
        fprintf(stderr, "usage: peak THREADS (1 to %d)\n", MAX_THREADS);
        return 2;
    }
    if (posix_memalign((void **)&memory, 4096, READ) != 0) return 1;
    memset(memory, 0, READ);
    double flops = 2.0 * LANES * CHAINS * STEPS * threads / measure(threads, NULL);
    double bytes = READ / measure(threads, memory);
    printf("{\"threads\": %d, \"vector_bytes\": %d, \"gflops\": %.1f, \"read_gb_s\": %.2f}\n", threads, BYTES,
           flops / 1e9, bytes / 1e9);
    return 0;
}
