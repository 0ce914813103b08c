// Computes the acceleration of each body from all bodies, by tiles in shared memory. A body is x,
// y, z, and the mass.
constexpr float SOFTENING = 1e-3f;

extern "C" __global__ void __launch_bounds__(128) nbody(const float4 *__restrict__ bodies, unsigned n, float4 *__restrict__ accelerations)
{
    __shared__ float4 tile[128];
    unsigned i = blockIdx.x * 128 + threadIdx.x, t = threadIdx.x;
    const float4 nothing = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 own = i < n ? bodies[i] : nothing;
    float4 sum = nothing;
    for (unsigned first = 0; first < n; first += 128) {
        tile[t] = first + t < n ? bodies[first + t] : nothing;
        __syncthreads();
#pragma unroll 4
        for (unsigned j = 0; j < 128; j++) {
            float4 body = tile[j];
            float x = body.x - own.x;
            float y = body.y - own.y;
            float z = body.z - own.z;
            float inverse = rsqrtf(fmaf(x, x, fmaf(y, y, z * z)) + SOFTENING);
            float factor = body.w * inverse * inverse * inverse;
            sum.x = fmaf(factor, x, sum.x);
            sum.y = fmaf(factor, y, sum.y);
            sum.z = fmaf(factor, z, sum.z);
        }
        __syncthreads();
    }
    if (i < n)
        accelerations[i] = sum;
}
