// Functions of NVIDIA's libdevice, each between the same loads and stores as in `kernels.rs`.
// `copy` and `copy2` have no function.
#define ONE(name, value)                                                                                                \
    extern "C" __global__ void name(const float *__restrict__ in, float *__restrict__ out, unsigned n)                 \
    {                                                                                                                   \
        unsigned i = blockIdx.x * 64 + threadIdx.x;                                                                     \
        if (i < n) {                                                                                                    \
            float x = in[i];                                                                                            \
            out[i] = value;                                                                                             \
        }                                                                                                               \
    }
ONE(copy, x)
ONE(of_exp, expf(x))
ONE(of_exp2, exp2f(x))
ONE(of_exp_m1, expm1f(x))
ONE(of_ln, logf(x))
ONE(of_log2, log2f(x))
ONE(of_log10, log10f(x))
ONE(of_ln_1p, log1pf(x))
ONE(of_sin, sinf(x))
ONE(of_cos, cosf(x))
ONE(of_tan, tanf(x))
ONE(of_sinh, sinhf(x))
ONE(of_cosh, coshf(x))
ONE(of_tanh, tanhf(x))
ONE(of_asinh, asinhf(x))
ONE(of_acosh, acoshf(x))
ONE(of_atanh, atanhf(x))
ONE(of_sigmoid, 1.0f / (1.0f + expf(-x)))
ONE(of_erf, erff(x))
ONE(of_rsqrt, rsqrtf(x))
ONE(of_cbrt, cbrtf(x))
ONE(of_asin, asinf(x))
ONE(of_acos, acosf(x))
ONE(of_atan, atanf(x))

#define TWO(name, value)                                                                                                \
    extern "C" __global__ void name(const float *__restrict__ in, const float *__restrict__ with, float *__restrict__ out, \
                                    unsigned n)                                                                         \
    {                                                                                                                   \
        unsigned i = blockIdx.x * 64 + threadIdx.x;                                                                     \
        if (i < n) {                                                                                                    \
            float x = in[i], y = with[i];                                                                               \
            out[i] = value;                                                                                             \
        }                                                                                                               \
    }
TWO(add, x + y)
TWO(of_pow, powf(x, y))
TWO(of_atan2, atan2f(x, y))
TWO(of_hypot, hypotf(x, y))

extern "C" __global__ void copy2(const float *__restrict__ in, float *__restrict__ s, float *__restrict__ c, unsigned n)
{
    unsigned i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) {
        float x = in[i];
        s[i] = x;
        c[i] = x;
    }
}
extern "C" __global__ void of_sin_cos(const float *__restrict__ in, float *__restrict__ s, float *__restrict__ c, unsigned n)
{
    unsigned i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) {
        float x = in[i];
        sincosf(x, &s[i], &c[i]);
    }
}
