// Computes prefix sums in one pass, by decoupled look-back.
typedef unsigned long long u64;
constexpr u64 AGGREGATE = 1ull << 32, PREFIX = 2ull << 32;

// Returns the sum of the threads before this one, and the sum of all.
__device__ unsigned block_scan(unsigned x, unsigned &total)
{
    __shared__ unsigned warps[4];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, through = x;
#pragma unroll
    for (unsigned d = 1; d < 32; d *= 2) {
        unsigned other = __shfl_up_sync(0xffffffff, through, d);
        if (lane >= d)
            through += other;
    }
    if (lane == 31)
        warps[warp] = through;
    __syncthreads();
    unsigned before = through - x;
    total = 0;
#pragma unroll
    for (unsigned w = 0; w < 4; w++) {
        if (w < warp)
            before += warps[w];
        total += warps[w];
    }
    return before;
}

extern "C" __global__ void __launch_bounds__(128) look_back(const unsigned *__restrict__ x, unsigned n, unsigned *__restrict__ y,
    volatile u64 *states, unsigned *__restrict__ ticket)
{
    __shared__ unsigned shared[2];
    if (threadIdx.x == 0)
        shared[0] = atomicAdd(ticket, 1);
    __syncthreads();
    unsigned tile = shared[0];
    unsigned i = tile * 128 + threadIdx.x;
    unsigned own = i < n ? x[i] : 0;
    unsigned total, before = block_scan(own, total);
    if (threadIdx.x == 0) {
        unsigned sum = 0;
        if (tile > 0)
            states[tile] = AGGREGATE | total;
        unsigned at = tile;
        while (at > 0) {
            u64 word = states[at - 1];
            if (word >= AGGREGATE) {
                sum += (unsigned)word;
                at--;
            }
            if (word >= PREFIX)
                break;
        }
        states[tile] = PREFIX | (sum + total);
        shared[1] = sum;
    }
    __syncthreads();
    if (i < n)
        y[i] = shared[1] + before + own;
}
