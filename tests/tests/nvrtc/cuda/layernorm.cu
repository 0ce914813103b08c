// Computes with a warp per row: mean, variance, and (x − mean) / √(variance + ε) · weight + bias.
extern "C" __global__ void __launch_bounds__(256) layernorm(const float *__restrict__ x, const float *__restrict__ weight,
    const float *__restrict__ bias, float *__restrict__ y, unsigned rows, unsigned cols, float epsilon)
{
    unsigned row = blockIdx.x * 8 + threadIdx.y;
    if (row >= rows)
        return;
    x += row * cols;
    y += row * cols;
    float sum = 0.0f;
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < cols; i += 32)
        sum += x[i];
#pragma unroll
    for (int m = 16; m > 0; m >>= 1)
        sum += __shfl_xor_sync(0xffffffff, sum, m);
    float mean = __fdividef(sum, (float)cols), squares = 0.0f;
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < cols; i += 32) {
        float d = x[i] - mean;
        squares = fmaf(d, d, squares);
    }
#pragma unroll
    for (int m = 16; m > 0; m >>= 1)
        squares += __shfl_xor_sync(0xffffffff, squares, m);
    float scale = rsqrtf(__fdividef(squares, (float)cols) + epsilon);
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < cols; i += 32)
        y[i] = fmaf((x[i] - mean) * scale, weight[i], bias[i]);
}
