// Relaxes a plate until the largest change of a step is at most `tolerance`, with a barrier of the
// grid after each step.
#include <cooperative_groups.h>

__device__ float block_max(float x)
{
    __shared__ float warps[4];
#pragma unroll
    for (unsigned m = 16; m > 0; m /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, m));
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = x;
    __syncthreads();
    return fmaxf(fmaxf(warps[0], warps[1]), fmaxf(warps[2], warps[3]));
}

extern "C" __global__ void __launch_bounds__(128) heat(unsigned rows, unsigned columns, float tolerance, float *even, float *odd,
    float *changes, unsigned n, unsigned *steps)
{
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    unsigned thread = blockIdx.x * 128 + threadIdx.x;
    unsigned inner = columns - 2;
    float *from = even, *to = odd;
    for (unsigned step = 0; step < n; step++) {
        float largest = 0.0f;
        for (unsigned k = thread; k < (rows - 2) * inner; k += gridDim.x * 128) {
            unsigned i = (k / inner + 1) * columns + k % inner + 1;
            float mean = 0.25f * (from[i - columns] + from[i - 1] + from[i + 1] + from[i + columns]);
            largest = fmaxf(largest, fabsf(mean - from[i]));
            to[i] = mean;
        }
        largest = block_max(largest);
        if (threadIdx.x == 0)
            atomicMax((int *)&changes[step], __float_as_int(largest));
        grid.sync();
        if (thread == 0)
            steps[0] = step + 1;
        if (changes[step] <= tolerance)
            break;
        float *last = from;
        from = to;
        to = last;
    }
}
