// Cooperation in a block or a warp: reductions, scans, sorts, histograms.

extern "C" __global__ void reduce_tree(const int* x, int* y, int n) {
    __shared__ int part[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0;
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        __syncthreads();
        if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}

extern "C" __global__ void reduce_warps(const float* x, float* y, int n) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
    for (int d = 16; d > 0; d >>= 1) sum += __shfl_down_sync(0xffffffff, sum, d);
    __shared__ float part[32];
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.0f;
        for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, d);
        if (threadIdx.x == 0) *y = sum;
    }
}

extern "C" __global__ void reduce_last_block(const unsigned* x, unsigned* partial, unsigned* total, unsigned* done, int n) {
    __shared__ unsigned sum;
    __shared__ bool last;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&sum, x[i]);
    __syncthreads();
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        unsigned all = 0;
        for (unsigned b = 0; b < gridDim.x; b++) all += ((volatile unsigned*)partial)[b];
        *total = all;
    }
}

extern "C" __global__ void scan_block(const int* x, int* y, int n) {
    extern __shared__ int buffer[];
    int t = threadIdx.x, from = 0, to = blockDim.x;
    buffer[t] = t < n ? x[t] : 0;
    __syncthreads();
    for (int d = 1; d < blockDim.x; d *= 2) {
        buffer[to + t] = buffer[from + t] + (t >= d ? buffer[from + t - d] : 0);
        int swap = from; from = to; to = swap;
        __syncthreads();
    }
    if (t < n) y[t] = buffer[from + t];
}

extern "C" __global__ void scan_warps(const unsigned* x, unsigned long long* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    unsigned long long v = i < n ? x[i] : 0;
    for (int d = 1; d < 32; d *= 2) {
        unsigned long long w = __shfl_up_sync(0xffffffff, v, d);
        if (lane >= d) v += w;
    }
    if (i < n) y[i] = v;
}

extern "C" __global__ void sort_bitonic(int* x) {
    __shared__ int s[256];
    unsigned t = threadIdx.x;
    s[t] = x[blockIdx.x * 256 + t];
    for (unsigned k = 2; k <= 256; k *= 2)
        for (unsigned j = k / 2; j > 0; j /= 2) {
            __syncthreads();
            unsigned p = t ^ j;
            if (p > t) {
                bool up = (t & k) == 0;
                int a = s[t], b = s[p];
                if ((a > b) == up) { s[t] = b; s[p] = a; }
            }
        }
    __syncthreads();
    x[blockIdx.x * 256 + t] = s[t];
}

extern "C" __global__ void histogram(const unsigned char* x, unsigned* bins, int n) {
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[x[i]], 1u);
    __syncthreads();
    if (own[threadIdx.x]) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

extern "C" __global__ void compact_positive(const int* x, int* y, int* count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool keep = i < n && x[i] > 0;
    unsigned votes = __ballot_sync(0xffffffff, keep);
    int lane = threadIdx.x % 32, base = 0;
    if (lane == 0) base = atomicAdd(count, __popc(votes));
    base = __shfl_sync(0xffffffff, base, 0);
    if (keep) y[base + __popc(votes & ((1u << lane) - 1))] = x[i];
}

extern "C" __global__ void life(const unsigned* x, unsigned* y, int rows) {
    int r = blockIdx.x, c = threadIdx.x, n = 0;
    for (int dr = -1; dr <= 1; dr++)
        for (int dc = -1; dc <= 1; dc++)
            if (dr | dc) n += x[(r + dr + rows) % rows] >> ((c + dc) & 31) & 1;
    bool alive = n == 3 || (n == 2 && (x[r] >> c & 1));
    unsigned row = __ballot_sync(0xffffffff, alive);
    if (__any_sync(0xffffffff, alive) && c == 0) y[r] = row;
    else if (c == 0) y[r] = 0;
}
