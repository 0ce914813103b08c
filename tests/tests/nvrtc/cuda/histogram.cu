// Counts bytes in 256 bins in shared memory, four bytes per load, with one atomic addition per bin
// at the end.
extern "C" __global__ void __launch_bounds__(256) histogram(const uchar4 *__restrict__ x, unsigned n, unsigned *__restrict__ bins)
{
    __shared__ unsigned h[256];
    h[threadIdx.x] = 0;
    __syncthreads();
    for (unsigned i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        uchar4 v = x[i];
        atomicAdd(&h[v.x], 1);
        atomicAdd(&h[v.y], 1);
        atomicAdd(&h[v.z], 1);
        atomicAdd(&h[v.w], 1);
    }
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], h[threadIdx.x]);
}
