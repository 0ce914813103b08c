/* A C program that uses the twelve most common functions and knows only the library's name. */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef int (*Init)(unsigned);
typedef int (*CtxCreate)(void **, unsigned, int);
typedef int (*ModuleLoadData)(void **, const void *);
typedef int (*ModuleGetFunction)(void **, void *, const char *);
typedef int (*MemAlloc)(uint64_t *, size_t);
typedef int (*MemcpyHtoD)(uint64_t, const void *, size_t);
typedef int (*LaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                            void **, void **);
typedef int (*MemcpyDtoH)(void *, uint64_t, size_t);
typedef int (*StreamSynchronize)(void *);
typedef int (*MemFree)(uint64_t);
typedef int (*ModuleUnload)(void *);
typedef int (*MemGetInfo)(size_t *, size_t *);

static void *library;

static void *find(const char *name) {
    void *function = dlsym(library, name);
    if (!function) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return function;
}

#define CALL(type, name, ...)                                                                                          \
    do {                                                                                                               \
        int code = ((type)find(name))(__VA_ARGS__);                                                                    \
        if (code != 0) {                                                                                               \
            fprintf(stderr, "%s gives %d\n", name, code);                                                              \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

enum { N = 1000 };

int main(int argc, char **argv) {
    static char text[1 << 16];
    static float x[N], y[N];
    void *context, *module, *function;
    uint64_t dx, dy;
    size_t before, after, total;
    float a = 2.0f;
    uint32_t n = N;

    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!file) return 1;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);

    /* Opened and closed once, like programs that only check for the library. */
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library) dlclose(library);
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = (float)(3 * i);
    }
    CALL(Init, "cuInit", 0);
    CALL(CtxCreate, "cuCtxCreate_v2", &context, 0, 0);
    CALL(MemGetInfo, "cuMemGetInfo_v2", &before, &total);
    CALL(ModuleLoadData, "cuModuleLoadData", &module, text);
    CALL(ModuleGetFunction, "cuModuleGetFunction", &function, module, "saxpy");
    CALL(MemAlloc, "cuMemAlloc_v2", &dx, sizeof x);
    CALL(MemAlloc, "cuMemAlloc_v2", &dy, sizeof y);
    CALL(MemcpyHtoD, "cuMemcpyHtoD_v2", dx, x, sizeof x);
    CALL(MemcpyHtoD, "cuMemcpyHtoD_v2", dy, y, sizeof y);
    void *parameters[] = {&a, &dx, &dy, &n};
    CALL(LaunchKernel, "cuLaunchKernel", function, (N + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL);

    /* The second launch has its parameters in one buffer: a float, two addresses, a number. */
    struct {
        float a;
        uint64_t x, y;
        uint32_t n;
    } packed = {a, dx, dy, n};
    size_t size = sizeof packed;
    void *extra[] = {(void *)1, &packed, (void *)2, &size, (void *)0};
    CALL(LaunchKernel, "cuLaunchKernel", function, (N + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, NULL, extra);
    CALL(StreamSynchronize, "cuStreamSynchronize", NULL);
    CALL(MemcpyDtoH, "cuMemcpyDtoH_v2", y, dy, sizeof y);
    for (int i = 0; i < N; i++) {
        if (y[i] != (float)(7 * i)) {
            fprintf(stderr, "y[%d] is %g\n", i, y[i]);
            return 1;
        }
    }
    CALL(MemFree, "cuMemFree_v2", dx);
    CALL(MemFree, "cuMemFree_v2", dy);
    CALL(ModuleUnload, "cuModuleUnload", module);
    CALL(MemGetInfo, "cuMemGetInfo_v2", &after, &total);
    if (before != after) {
        fprintf(stderr, "%zu bytes were free, and %zu are\n", before, after);
        return 1;
    }
    puts("12 functions");
    return 0;
}
