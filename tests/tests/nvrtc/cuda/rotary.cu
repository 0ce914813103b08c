// Rotates the pairs (x[i], x[i + half]) of each row by the angle of the row's position and the
// pair's frequency.
extern "C" __global__ void __launch_bounds__(64) rotary(float *__restrict__ x, const float *__restrict__ frequencies, unsigned rows,
    unsigned cols, unsigned first)
{
    unsigned half = cols / 2;
    float position = (float)(first + blockIdx.x);
    x += blockIdx.x * cols;
    for (unsigned i = threadIdx.x; i < half; i += 64) {
        float angle = position * frequencies[i];
        float s = __sinf(angle), c = __cosf(angle);
        float a = x[i], b = x[i + half];
        x[i] = fmaf(a, c, -(b * s));
        x[i + half] = fmaf(b, c, a * s);
    }
}
