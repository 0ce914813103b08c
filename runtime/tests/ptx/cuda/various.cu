// Hashing, tables, text, bits, wide integers, calls, and the math library.

extern "C" __global__ void hash_text(const unsigned char* text, const int* start, unsigned* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned h = 2166136261u;
    for (int k = start[i]; k < start[i + 1]; k++) h = (h ^ text[k]) * 16777619u;
    y[i] = h;
}

extern "C" __global__ void insert(const unsigned* keys, unsigned* table, unsigned* where, int n, unsigned mask) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned key = keys[i], slot = key * 2654435769u >> 7 & mask;
    while (true) {
        unsigned old = atomicCAS(&table[slot], 0xffffffffu, key);
        if (old == 0xffffffffu || old == key) break;
        slot = (slot + 1) & mask;
    }
    where[i] = slot;
}

extern "C" __global__ void random_numbers(unsigned* y, unsigned seed, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned c0 = i, c1 = 0, k = seed;
    for (int r = 0; r < 10; r++) {
        unsigned hi = __umulhi(0xD256D193u, c0), lo = 0xD256D193u * c0;
        c0 = hi ^ k ^ c1;
        c1 = lo;
        k += 0x9E3779B9u;
    }
    y[i] = c0;
}

extern "C" __global__ void edit_distance(const char* a, const char* b, int* y, int la, int lb, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    int row[33];
    for (int j = 0; j <= lb; j++) row[j] = j;
    for (int i = 1; i <= la; i++) {
        int left = row[0];
        row[0] = i;
        for (int j = 1; j <= lb; j++) {
            int cost = left + (a[t * la + i - 1] != b[t * lb + j - 1]);
            left = row[j];
            row[j] = min(cost, min(row[j], row[j - 1]) + 1);
        }
    }
    y[t] = row[lb];
}

extern "C" __global__ void collatz(const unsigned long long* x, int* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long v = x[i];
    int steps = 0;
    while (v != 1) { v = v & 1 ? 3 * v + 1 : v / 2; steps++; }
    y[i] = steps;
}

extern "C" __global__ void tricks(const unsigned* x, unsigned* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned v = x[i], w = x[(i + 1) % n];
    y[8 * i + 0] = __popc(v) | __clz(v) << 8 | __ffs(v) << 16;
    y[8 * i + 1] = __brev(v);
    y[8 * i + 2] = __byte_perm(v, w, 0x3175);
    y[8 * i + 3] = __funnelshift_r(v, w, w & 63);
    y[8 * i + 4] = __vadd4(v, w);
    y[8 * i + 5] = __vabsdiffu4(v, w);
    y[8 * i + 6] = __vsadu4(v, w);
    y[8 * i + 7] = __vmaxs2(v, w);
}

extern "C" __global__ void wide(const long long* a, const long long* b, long long* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[4 * i + 0] = a[i] / b[i];
    y[4 * i + 1] = a[i] % b[i];
    y[4 * i + 2] = __mul64hi(a[i], b[i]);
    y[4 * i + 3] = (long long)((unsigned long long)a[i] / (unsigned)b[i]);
}

struct Box { float low[3], high[3]; int kind; char tag; };

extern "C" __global__ void inside(Box box, const float* x, int* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    bool in = true;
    for (int k = 0; k < 3; k++) in = in && x[3 * i + k] >= box.low[k] && x[3 * i + k] < box.high[k];
    switch (box.kind + i % 7) {
        case 0: y[i] = in; break;
        case 1: y[i] = !in; break;
        case 2: y[i] = in * 10 + box.tag; break;
        case 3: y[i] = in ? i : -i; break;
        case 4: y[i] = i * i; break;
        case 5: y[i] = i ^ in; break;
        default: y[i] = -1;
    }
}

typedef int (*Map)(int);
__device__ __noinline__ int square(int x) { return x * x; }
__device__ __noinline__ int negate(int x) { return -x; }
__device__ __noinline__ int digits(int x) { int n = 0; do { n++; x /= 10; } while (x); return n; }
__device__ Map maps[3] = {square, negate, digits};
__constant__ int offsets[4] = {100, 200, 300, 400};

extern "C" __global__ void dispatch(const int* x, int* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = maps[i % 3](x[i]) + offsets[i % 4];
}

extern "C" __global__ void singles(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    y[8 * i + 0] = sinf(v);
    y[8 * i + 1] = expf(v * 0.01f);
    y[8 * i + 2] = logf(fabsf(v) + 0.5f);
    y[8 * i + 3] = powf(fabsf(v) + 0.1f, 0.7f);
    y[8 * i + 4] = tanhf(v * 0.1f);
    y[8 * i + 5] = erff(v * 0.1f);
    y[8 * i + 6] = atan2f(v, 2.0f);
    y[8 * i + 7] = fmodf(v, 3.0f);
}

extern "C" __global__ void doubles(const double* x, double* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double v = x[i];
    y[6 * i + 0] = sin(v);
    y[6 * i + 1] = exp(v * 0.01);
    y[6 * i + 2] = log(fabs(v) + 0.5);
    y[6 * i + 3] = cbrt(v);
    y[6 * i + 4] = 1.0 / sqrt(fabs(v) + 1.0);
    y[6 * i + 5] = pow(fabs(v) + 0.1, 1.7);
}
