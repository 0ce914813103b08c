// Computes prefix sums of each 32 elements.
extern "C" __global__ void __launch_bounds__(256) warp_scan(const unsigned *__restrict__ x, unsigned *__restrict__ y, unsigned n)
{
    unsigned i = blockIdx.x * 256 + threadIdx.x;
    unsigned sum = i < n ? x[i] : 0;
    unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (unsigned d = 1; d < 32; d <<= 1) {
        unsigned other = __shfl_up_sync(0xffffffff, sum, d);
        if (lane >= d)
            sum += other;
    }
    if (i < n)
        y[i] = sum;
}
