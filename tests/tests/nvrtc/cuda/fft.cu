// Transforms each 256 complex numbers in place: radix 2, in shared memory.
__device__ float2 operator+(float2 a, float2 b)
{
    return make_float2(a.x + b.x, a.y + b.y);
}

__device__ float2 operator-(float2 a, float2 b)
{
    return make_float2(a.x - b.x, a.y - b.y);
}

__device__ float2 operator*(float2 a, float2 b)
{
    return make_float2(fmaf(a.x, b.x, -(a.y * b.y)), fmaf(a.x, b.y, a.y * b.x));
}

template <bool INVERSE>
__device__ void transform(const float2 *__restrict__ roots, float2 *__restrict__ x)
{
    __shared__ float2 s[256];
    unsigned t = threadIdx.x, first = 256 * blockIdx.x;
#pragma unroll
    for (unsigned k = 0; k < 2; k++) {
        unsigned i = t + 128 * k;
        s[__brev(i) >> 24] = x[first + i];
    }
#pragma unroll
    for (unsigned level = 0; level < 8; level++) {
        __syncthreads();
        unsigned half = 1 << level;
        unsigned place = t & (half - 1);
        unsigned low = 2 * (t - place) + place;
        float2 root = roots[place << (7 - level)];
        if (INVERSE)
            root.y = -root.y;
        float2 a = s[low], b = s[low + half] * root;
        s[low] = a + b;
        s[low + half] = a - b;
    }
#pragma unroll
    for (unsigned k = 0; k < 2; k++)
        x[first + t + 128 * k] = s[t + 128 * k];
}

extern "C" __global__ void __launch_bounds__(128) fft(const float2 *__restrict__ roots, float2 *__restrict__ x)
{
    transform<false>(roots, x);
}
