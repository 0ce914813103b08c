// Computes with a warp per row: the maximum, the sum of exponentials, the quotients.
extern "C" __global__ void __launch_bounds__(256) softmax(const float *__restrict__ x, float *__restrict__ y, unsigned rows, unsigned cols)
{
    unsigned row = blockIdx.x * 8 + threadIdx.y;
    if (row >= rows)
        return;
    x += row * cols;
    y += row * cols;
    float top = __int_as_float(0xff800000);
    for (unsigned i = threadIdx.x; i < cols; i += 32)
        top = fmaxf(top, x[i]);
#pragma unroll
    for (int m = 16; m > 0; m >>= 1)
        top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, m));
    float sum = 0.0f;
    for (unsigned i = threadIdx.x; i < cols; i += 32)
        sum += __expf(x[i] - top);
#pragma unroll
    for (int m = 16; m > 0; m >>= 1)
        sum += __shfl_xor_sync(0xffffffff, sum, m);
    float scale = __fdividef(1.0f, sum);
    for (unsigned i = threadIdx.x; i < cols; i += 32)
        y[i] = __expf(x[i] - top) * scale;
}
