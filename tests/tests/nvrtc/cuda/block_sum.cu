// Computes sums of 256 elements: a butterfly in each warp, then one over the sums of the warps.
extern "C" __global__ void __launch_bounds__(256) block_sum(const float *__restrict__ x, unsigned n, float *__restrict__ sums)
{
    __shared__ float warps[8];
    unsigned i = blockIdx.x * 256 + threadIdx.x;
    float sum = i < n ? x[i] : 0.0f;
#pragma unroll
    for (int m = 16; m > 0; m >>= 1)
        sum += __shfl_xor_sync(0xffffffff, sum, m);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = warps[threadIdx.x % 8];
#pragma unroll
    for (int m = 4; m > 0; m >>= 1)
        sum += __shfl_xor_sync(0xffffffff, sum, m);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}
