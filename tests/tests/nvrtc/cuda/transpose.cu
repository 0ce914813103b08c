// Transposes by 32 × 32 tiles with a padding of one element.
extern "C" __global__ void __launch_bounds__(256) transpose(const float *__restrict__ x, float *__restrict__ y, unsigned rows, unsigned cols)
{
    __shared__ float tile[32][33];
    unsigned r = blockIdx.y * 32 + threadIdx.y, c = blockIdx.x * 32 + threadIdx.x;
#pragma unroll
    for (unsigned i = 0; i < 4; i++)
        if (r + 8 * i < rows && c < cols)
            tile[threadIdx.y + 8 * i][threadIdx.x] = x[(r + 8 * i) * cols + c];
    __syncthreads();
    r = blockIdx.x * 32 + threadIdx.y, c = blockIdx.y * 32 + threadIdx.x;
#pragma unroll
    for (unsigned i = 0; i < 4; i++)
        if (r + 8 * i < cols && c < rows)
            y[(r + 8 * i) * rows + c] = tile[threadIdx.x][threadIdx.y + 8 * i];
}
