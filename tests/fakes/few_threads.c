/* Preloaded into a server: no more than FAKE_THREADS threads beside the first live at a time, as
 * under RLIMIT_NPROC, which does not hold for root. Test double. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef void *(*start_routine)(void *);
typedef int (*create_function)(pthread_t *, const pthread_attr_t *, start_routine, void *);

struct thread {
    start_routine start;
    void *argument;
};

static atomic_int live;

static void *run(void *argument) {
    struct thread thread = *(struct thread *)argument;
    free(argument);
    void *result = thread.start(thread.argument);
    atomic_fetch_sub(&live, 1);
    return result;
}

int pthread_create(pthread_t *id, const pthread_attr_t *attributes, start_routine start, void *argument) {
    union {
        void *symbol;
        create_function create;
    } next = {dlsym(RTLD_NEXT, "pthread_create")};
    const char *limit = getenv("FAKE_THREADS");
    struct thread *thread = malloc(sizeof *thread);
    int before = atomic_fetch_add(&live, 1);
    if (!thread || (limit && before >= atoi(limit))) {
        atomic_fetch_sub(&live, 1);
        free(thread);
        return EAGAIN;
    }
    *thread = (struct thread){start, argument};
    int refused = next.create(id, attributes, run, thread);
    if (refused) {
        atomic_fetch_sub(&live, 1);
        free(thread);
    }
    return refused;
}
