// Computes C = A·B by 16 × 16 tiles in shared memory, with zeros beyond the edges.
extern "C" __global__ void __launch_bounds__(256) tiled(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
    unsigned m, unsigned n, unsigned k)
{
    __shared__ float ta[16][16], tb[16][16];
    unsigned row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float acc = 0.0f;
    for (unsigned t = 0; t < k; t += 16) {
        ta[threadIdx.y][threadIdx.x] = row < m && t + threadIdx.x < k ? a[row * k + t + threadIdx.x] : 0.0f;
        tb[threadIdx.y][threadIdx.x] = t + threadIdx.y < k && col < n ? b[(t + threadIdx.y) * n + col] : 0.0f;
        __syncthreads();
#pragma unroll
        for (unsigned i = 0; i < 16; i++)
            acc = fmaf(ta[threadIdx.y][i], tb[i][threadIdx.x], acc);
        __syncthreads();
    }
    if (row < m && col < n)
        c[row * n + col] = acc;
}
