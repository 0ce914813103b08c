extern "C" __global__ void __launch_bounds__(256) saxpy(float a, const float *__restrict__ x, float *__restrict__ y, unsigned n)
{
    unsigned i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = fmaf(a, x[i], y[i]);
}
