// Computes C = A·B with 128 × 128 × 8 elements per block and 8 × 8 per thread, as 2 × 2 quads of
// 4 × 4. Shared memory is double-buffered, and global loads are a tile ahead. Extents are multiples
// of the tile.
extern "C" __global__ void __launch_bounds__(256, 2) blocked(const float *__restrict__ a, const float *__restrict__ b,
    float *__restrict__ c, unsigned m, unsigned n, unsigned k)
{
    __shared__ float sa[2][8][132];
    __shared__ float sb[2][8][128];
    unsigned tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    unsigned row0 = blockIdx.y * 128, col0 = blockIdx.x * 128;
    unsigned tr = warp / 2 * 32 + lane / 8 * 4, tc = warp % 2 * 64 + lane % 8 * 4;
    unsigned ar = tid / 2, av = tid % 2 * 4, br = tid / 32, bv = tid % 32 * 4;
    const float *ag = a + (row0 + ar) * k + av;
    const float *bg = b + br * n + col0 + bv;
    float acc[8][8] = {};
    float4 na = *(const float4 *)ag, nb = *(const float4 *)bg;
    sa[0][av][ar] = na.x;
    sa[0][av + 1][ar] = na.y;
    sa[0][av + 2][ar] = na.z;
    sa[0][av + 3][ar] = na.w;
    *(float4 *)&sb[0][br][bv] = nb;
    __syncthreads();
    unsigned buf = 0, tiles = k / 8;
    for (unsigned t = 0; t < tiles; t++) {
        bool more = t + 1 < tiles;
        if (more) {
            ag += 8;
            bg += 8 * n;
            na = *(const float4 *)ag;
            nb = *(const float4 *)bg;
        }
#pragma unroll
        for (unsigned i = 0; i < 8; i++) {
            float4 x[2], y[2];
            x[0] = *(float4 *)&sa[buf][i][tr];
            x[1] = *(float4 *)&sa[buf][i][tr + 16];
            y[0] = *(float4 *)&sb[buf][i][tc];
            y[1] = *(float4 *)&sb[buf][i][tc + 32];
            const float *xs = (const float *)x, *ys = (const float *)y;
#pragma unroll
            for (unsigned p = 0; p < 8; p++)
#pragma unroll
                for (unsigned q = 0; q < 8; q++)
                    acc[p][q] = fmaf(xs[p], ys[q], acc[p][q]);
        }
        if (more) {
            buf ^= 1;
            sa[buf][av][ar] = na.x;
            sa[buf][av + 1][ar] = na.y;
            sa[buf][av + 2][ar] = na.z;
            sa[buf][av + 3][ar] = na.w;
            *(float4 *)&sb[buf][br][bv] = nb;
            __syncthreads();
        }
    }
#pragma unroll
    for (unsigned p = 0; p < 8; p++)
#pragma unroll
        for (unsigned q = 0; q < 2; q++) {
            unsigned row = row0 + tr + p / 4 * 16 + p % 4, col = col0 + tc + q * 32;
            *(float4 *)&c[row * n + col] = make_float4(acc[p][4 * q], acc[p][4 * q + 1], acc[p][4 * q + 2], acc[p][4 * q + 3]);
        }
}
