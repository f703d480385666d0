/* The control of DFOGraph's Table 6: PageRank without batches of vertices. Edges are streamed in order of their sources, nothing is dispatched,
 * rows are mapped from files, and threads add up into them by atomics. For bench/cluster.py:
 *
 *   cc -O3 -o control bench/control.c -lpthread
 *   control make EDGES.u32 VERTICES FOLDER
 *   control run FOLDER ITERATIONS THREADS SECONDS RESULT.csv     prints seconds of the iterations, and bytes that they read from disk
 *
 * It gives up after so many seconds, without a result, and says how many iterations were done.
 *
 * The graph in FOLDER is one chunk: targets (4 bytes an edge), read past the page cache by blocks, and out-degrees, ranks and sums, mapped.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Edges of a block, and of the piece of a file that is written or read at once. */
enum { BLOCK = 1 << 18, THREADS_MAX = 256 };
static const double DAMPING = 0.85;

static void fail(const char *what) {
    fprintf(stderr, "control: %s: %s\n", what, errno ? strerror(errno) : "not as it should be");
    exit(1);
}
static void *memory(size_t bytes) {
    void *got = aligned_alloc(4096, (bytes + 4096) / 4096 * 4096);
    if (!got) fail("memory");
    return got;
}
static char *in(const char *folder, const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}
static int opened(const char *path, int flags) {
    int file = open(path, flags, 0644);
    if (file < 0) fail(path);
    return file;
}
static size_t length(int file) {
    struct stat facts;
    if (fstat(file, &facts)) fail("stat");
    return (size_t)facts.st_size;
}
static size_t read_at(int file, void *to, size_t bytes, size_t at) {
    ssize_t got = pread(file, to, bytes, (off_t)at);
    if (got < 0) fail("read");
    return (size_t)got;
}
static void write_all(int file, const void *from, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t put = write(file, (const char *)from + done, bytes - done);
        if (put <= 0) fail("write");
        done += (size_t)put;
    }
}
/* A file of so many bytes, zeros if it is new, mapped for reads and writes anywhere. */
static void *mapped(const char *path, size_t bytes) {
    int file = opened(path, O_RDWR | O_CREAT);
    if (ftruncate(file, (off_t)bytes)) fail(path);
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) fail(path);
    close(file);
    return at;
}

/* Sorts edges by source: counts, then puts each target in its place. All in memory: this is not measured. */
static void make(const char *edges, size_t vertices, const char *folder) {
    int file = opened(edges, O_RDONLY);
    size_t pairs = length(file) / 8;
    uint32_t *block = memory(BLOCK * 8), *degrees = calloc(vertices, 4), *targets = memory(pairs * 4);
    uint64_t *place = calloc(vertices + 1, 8);
    if (!degrees || !place) fail("memory");
    for (int round = 0; round < 2; round++) {
        for (size_t at = 0; at < pairs * 8;) {
            size_t got = read_at(file, block, BLOCK * 8, at);
            if (got == 0 || got % 8) fail(edges);
            for (size_t i = 0; i < got / 4; i += 2) {
                if (block[i] >= vertices || block[i + 1] >= vertices) fail(edges);
                if (round == 0) degrees[block[i]]++;
                else targets[place[block[i]]++] = block[i + 1];
            }
            at += got;
        }
        if (round == 0)
            for (size_t v = 0; v < vertices; v++) place[v + 1] = place[v] + degrees[v];
    }
    int out = opened(in(folder, "degrees"), O_WRONLY | O_CREAT | O_TRUNC);
    write_all(out, degrees, vertices * 4);
    if (fsync(out)) fail("sync");
    out = opened(in(folder, "targets"), O_WRONLY | O_CREAT | O_TRUNC);
    write_all(out, targets, pairs * 4);
    if (fsync(out)) fail("sync");
}

static struct {
    size_t vertices, edges, blocks;
    const uint32_t *degrees;
    double *ranks;
    _Atomic uint64_t *sums;
    /* The source of the first edge of each block, and how many of its edges came before. */
    uint32_t *sources, *skipped;
    int targets;
    double base;
    _Atomic size_t next;
    double kept[THREADS_MAX];
    /* When to give up, and whether that was so. */
    double end;
    _Atomic int late;
} graph;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
static void add(_Atomic uint64_t *to, double what) {
    uint64_t old = atomic_load_explicit(to, memory_order_relaxed), new;
    do {
        double sum;
        memcpy(&sum, &old, 8);
        sum += what;
        memcpy(&new, &sum, 8);
    } while (!atomic_compare_exchange_weak_explicit(to, &old, new, memory_order_relaxed, memory_order_relaxed));
}

/* Every edge: what its source has for it is added to its target. */
static void *along_edges(void *unused) {
    uint32_t *targets = memory(BLOCK * 4);
    for (size_t block; (block = atomic_fetch_add(&graph.next, 1)) < graph.blocks;) {
        size_t edges = graph.edges - block * BLOCK < BLOCK ? graph.edges - block * BLOCK : BLOCK;
        if (read_at(graph.targets, targets, BLOCK * 4, block * BLOCK * 4) != edges * 4) fail("targets");
        size_t source = graph.sources[block], before = graph.skipped[block];
        for (size_t i = 0; i < edges; source++, before = 0) {
            size_t here = graph.degrees[source] - before;
            if (here == 0) continue;
            double message = graph.ranks[source] / graph.degrees[source];
            for (here = here < edges - i ? here : edges - i; here; here--) {
                add(&graph.sums[targets[i++]], message);
                if (i % 1024 == 0 && seconds() > graph.end) {
                    graph.late = 1;
                    free(targets);
                    return unused;
                }
            }
        }
    }
    free(targets);
    return unused;
}
/* Every vertex: its rank from its sum; kept is the mass of those without edges. */
static void *along_vertices(void *kept) {
    enum { SPAN = 1 << 16 };
    double sink = 0;
    for (size_t span; (span = atomic_fetch_add(&graph.next, 1)) * SPAN < graph.vertices;) {
        size_t end = (span + 1) * SPAN < graph.vertices ? (span + 1) * SPAN : graph.vertices;
        for (size_t v = span * SPAN; v < end; v++) {
            uint64_t bits = atomic_load_explicit(&graph.sums[v], memory_order_relaxed);
            double sum;
            memcpy(&sum, &bits, 8);
            graph.ranks[v] = graph.base + DAMPING * sum;
            atomic_store_explicit(&graph.sums[v], 0, memory_order_relaxed);
            if (graph.degrees[v] == 0) sink += graph.ranks[v];
        }
    }
    *(double *)kept = sink;
    return NULL;
}
static double by_all(int threads, void *(*work)(void *)) {
    pthread_t started[THREADS_MAX];
    atomic_store(&graph.next, 0);
    double sum = 0;
    for (int i = 0; i < threads; i++) {
        graph.kept[i] = 0;
        if (pthread_create(&started[i], NULL, work, &graph.kept[i])) fail("thread");
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(started[i], NULL);
        sum += graph.kept[i];
    }
    return sum;
}

/* Bytes that this process had the disk read. */
static unsigned long long bytes_read(void) {
    char line[128];
    unsigned long long bytes = 0;
    FILE *facts = fopen("/proc/self/io", "r");
    while (facts && fgets(line, sizeof line, facts)) sscanf(line, "read_bytes: %llu", &bytes);
    if (facts) fclose(facts);
    return bytes;
}

static void run(const char *folder, int iterations, int threads, double patience, const char *result) {
    graph.targets = opened(in(folder, "targets"), O_RDONLY | O_DIRECT);
    graph.edges = length(graph.targets) / 4;
    graph.blocks = (graph.edges + BLOCK - 1) / BLOCK;
    int degrees = opened(in(folder, "degrees"), O_RDONLY);
    graph.vertices = length(degrees) / 4;
    graph.degrees = mapped(in(folder, "degrees"), graph.vertices * 4);
    unlink(in(folder, "ranks"));
    graph.ranks = mapped(in(folder, "ranks"), graph.vertices * 8);
    unlink(in(folder, "sums"));
    graph.sums = mapped(in(folder, "sums"), graph.vertices * 8);
    graph.sources = memory(graph.blocks * 4);
    graph.skipped = memory(graph.blocks * 4);
    size_t block = 0, before = 0, sinks = 0;
    for (size_t v = 0; v < graph.vertices; v++) {
        for (; block * BLOCK < before + graph.degrees[v] && block * BLOCK >= before; block++) {
            graph.sources[block] = (uint32_t)v;
            graph.skipped[block] = (uint32_t)(block * BLOCK - before);
        }
        before += graph.degrees[v];
        sinks += graph.degrees[v] == 0;
        graph.ranks[v] = 1.0 / (double)graph.vertices;
    }
    if (before != graph.edges || block != graph.blocks) fail(folder);
    double kept = (double)sinks / (double)graph.vertices;
    /* What was made until here is not for the iterations to write. */
    if (msync(graph.ranks, graph.vertices * 8, MS_SYNC)) fail("ranks");
    double started = seconds();
    graph.end = started + patience;
    unsigned long long read = bytes_read();
    int done = 0;
    for (; done < iterations; done++) {
        /* Targets are anywhere; all else goes in order. */
        madvise((void *)graph.sums, graph.vertices * 8, MADV_RANDOM);
        by_all(threads, along_edges);
        if (graph.late) break;
        madvise((void *)graph.sums, graph.vertices * 8, MADV_NORMAL);
        graph.base = (1 - DAMPING + DAMPING * kept) / (double)graph.vertices;
        kept = by_all(threads, along_vertices);
    }
    printf("{\"iterations\": %d, \"seconds\": %.3f, \"bytes_read\": %llu}\n", done, seconds() - started, bytes_read() - read);
    if (done < iterations) return;
    FILE *out = fopen(result, "w");
    if (!out) fail(result);
    fputs("vertex,rank\n", out);
    for (size_t v = 0; v < graph.vertices; v++) fprintf(out, "%zu,%.17g\n", v, graph.ranks[v]);
    if (fclose(out)) fail(result);
}

int main(int words, char **word) {
    if (words == 5 && !strcmp(word[1], "make")) make(word[2], strtoull(word[3], NULL, 10), word[4]);
    else if (words == 7 && !strcmp(word[1], "run") && atoi(word[4]) > 0 && atoi(word[4]) <= THREADS_MAX)
        run(word[2], atoi(word[3]), atoi(word[4]), atof(word[5]), word[6]);
    else {
        fputs("usage: control make EDGES.u32 VERTICES FOLDER | control run FOLDER ITERATIONS THREADS SECONDS RESULT.csv\n", stderr);
        return 2;
    }
}
