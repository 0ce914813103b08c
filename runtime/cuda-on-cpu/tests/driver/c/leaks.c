// Leaks memory and a stream of the CUDA driver, and frees other memory only in a destructor.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *library;
static uint64_t late;

static void *find(const char *name) {
    void *function = dlsym(library, name);
    if (!function) {
        fprintf(stderr, "%s is missing\n", name);
        exit(1);
    }
    return function;
}

#define CALL(type, name, ...) \
    do { \
        int code = ((int (*) type)find(name))(__VA_ARGS__); \
        if (code) { \
            fprintf(stderr, "%s returns %d\n", name, code); \
            exit(1); \
        } \
    } while (0)

static uint64_t allocate(size_t bytes) {
    uint64_t address;
    CALL((uint64_t *, size_t), "cuMemAlloc_v2", &address, bytes);
    return address;
}

__attribute__((destructor)) static void free_late(void) {
    if (late)
        CALL((uint64_t), "cuMemFree_v2", late);
}

__attribute__((noinline)) static void leak(void) {
    for (int i = 0; i < 3; i++)
        allocate(1000);
    void *stream;
    CALL((void **, unsigned), "cuStreamCreate", &stream, 0);
}

int main(int count, char **arguments) {
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    void *context;
    CALL((unsigned), "cuInit", 0);
    CALL((void **, int), "cuDevicePrimaryCtxRetain", &context, 0);
    CALL((void *), "cuCtxSetCurrent", context);
    late = allocate(77);
    if (count > 1)
        leak();
    pid_t child = fork();
    if (child == 0) {
        late = 0;
        exit(0);
    }
    int status;
    return waitpid(child, &status, 0) != child || status != 0;
}
