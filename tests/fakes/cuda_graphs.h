/* Graphs of the fake CUDA driver, a test double: captured work, and functions of other fake libraries as kernels. */

enum { CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALIDATED = 901, CAPTURE_RELAXED = 2 };

/* `resolve` gives the memory behind a device address, or null. A result other than 0 ends the context with "illegal address".
 * Called with the lock held: it must not call the driver. */
typedef int (*task_function)(void *data, uint8_t *(*resolve)(address, uint64_t));

/* A function in streams and graphs, dropped with the last of them. */
struct task {
    int references;
    char name[32];
    task_function run;
    void (*drop)(void *);
    void *data;
    uint64_t ns;
};

struct graph {
    work *work;
    uint64_t count;
    int spoilt, forbids; /* forbids: mode of capture in which calls that synchronise spoil it */
    pthread_t thread;
    int global;
    graph *next;
};

static graph *captures;

static task *new_task(const char *name, task_function run, void (*drop)(void *), void *data, uint64_t ns) {
    task *t = calloc(1, sizeof *t);
    if (!t) abort();
    *t = (task){.references = 1, .run = run, .drop = drop, .data = data, .ns = ns};
    snprintf(t->name, sizeof t->name, "%s", name);
    return t;
}

static void release_task(task *t) {
    if (--t->references) return;
    t->drop(t->data);
    free(t);
}

static graph *new_graph(void) {
    graph *g = calloc(1, sizeof *g);
    if (!g) abort();
    graphs_alive++;
    return g;
}

static void add_to_graph(graph *g, work w) {
    g->work = realloc(g->work, (g->count + 1) * sizeof *g->work);
    if (!g->work) abort();
    g->work[g->count++] = w;
}

static graph *copy_graph(const graph *from) {
    graph *g = new_graph();
    for (uint64_t i = 0; i < from->count; i++) {
        if (from->work[i].kind == TASK) from->work[i].task->references++;
        add_to_graph(g, from->work[i]);
    }
    return g;
}

static void free_graph(graph *g) {
    for (uint64_t i = 0; i < g->count; i++)
        if (g->work[i].kind == TASK) release_task(g->work[i].task);
    graphs_alive--;
    free(g->work);
    free(g);
}

static void begin_capture(graph *g, int mode) {
    g->thread = pthread_self();
    g->global = mode == 0;
    g->forbids = mode != CAPTURE_RELAXED;
    g->next = captures;
    captures = g;
}

static void end_capture(graph *g) {
    graph **at = &captures;
    while (*at != g) at = &(*at)->next;
    *at = g->next;
}

/* The capture that forbids a call of this thread such as cuMemAlloc: one of its own, or a global one of any thread. */
static graph *forbidding_capture(void) {
    for (graph *g = captures; g; g = g->next)
        if (g->forbids && (g->global || pthread_equal(g->thread, pthread_self()))) return g;
    return NULL;
}

static result spoil_capture(graph *g) {
    g->spoilt = 1;
    return CAPTURE_UNSUPPORTED;
}
