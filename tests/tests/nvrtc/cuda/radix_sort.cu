// Sorts each 1024 keys by their lowest `bits` bits, in place and stably: a split for each bit.
extern "C" __global__ void __launch_bounds__(1024) radix_sort(unsigned bits, unsigned *__restrict__ x)
{
    __shared__ unsigned keys[1024], warps[32];
    unsigned t = threadIdx.x, lane = t % 32, at = blockIdx.x * 1024 + t;
    unsigned key = x[at];
    for (unsigned bit = 0; bit < bits; bit++) {
        bool low = (key >> bit & 1) == 0;
        unsigned mask = __ballot_sync(0xffffffff, low);
        if (lane == 0)
            warps[t / 32] = __popc(mask);
        __syncthreads();
        // Each warp scans the counts of all warps.
        unsigned own = warps[lane], through = own;
#pragma unroll
        for (unsigned d = 1; d < 32; d *= 2) {
            unsigned other = __shfl_up_sync(0xffffffff, through, d);
            if (lane >= d)
                through += other;
        }
        unsigned before = __shfl_sync(0xffffffff, through - own, t / 32) + __popc(mask & ((1u << lane) - 1));
        unsigned lows = __shfl_sync(0xffffffff, through, 31);
        keys[low ? before : lows + t - before] = key;
        __syncthreads();
        key = keys[t];
        __syncthreads();
    }
    x[at] = key;
}
