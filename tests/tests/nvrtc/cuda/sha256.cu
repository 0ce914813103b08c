// Computes the digest of each message of one block, with the schedule in registers.
__device__ constexpr unsigned INITIAL[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

__device__ constexpr unsigned ROUND[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
    0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
    0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
    0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2,
};

__device__ unsigned rotate_right(unsigned x, unsigned n)
{
    return __funnelshift_r(x, x, n);
}

extern "C" __global__ void __launch_bounds__(128) sha256(const uint4 *__restrict__ x, unsigned n, uint4 *__restrict__ y)
{
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n)
        return;
    unsigned w[16];
#pragma unroll
    for (unsigned j = 0; j < 4; j++) {
        uint4 words = x[4 * i + j];
        w[4 * j] = __byte_perm(words.x, 0, 0x0123);
        w[4 * j + 1] = __byte_perm(words.y, 0, 0x0123);
        w[4 * j + 2] = __byte_perm(words.z, 0, 0x0123);
        w[4 * j + 3] = __byte_perm(words.w, 0, 0x0123);
    }
    unsigned a = INITIAL[0], b = INITIAL[1], c = INITIAL[2], d = INITIAL[3];
    unsigned e = INITIAL[4], f = INITIAL[5], g = INITIAL[6], h = INITIAL[7];
#pragma unroll
    for (unsigned t = 0; t < 64; t++) {
        if (t >= 16) {
            unsigned p = w[(t + 1) % 16], q = w[(t + 14) % 16];
            unsigned s0 = rotate_right(p, 7) ^ rotate_right(p, 18) ^ p >> 3;
            unsigned s1 = rotate_right(q, 17) ^ rotate_right(q, 19) ^ q >> 10;
            w[t % 16] += s0 + w[(t + 9) % 16] + s1;
        }
        unsigned s1 = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);
        unsigned choice = (e & f) ^ (~e & g);
        unsigned t1 = h + s1 + choice + ROUND[t] + w[t % 16];
        unsigned s0 = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
        unsigned majority = (a & b) ^ (a & c) ^ (b & c);
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + s0 + majority;
    }
    y[2 * i] = make_uint4(a + INITIAL[0], b + INITIAL[1], c + INITIAL[2], d + INITIAL[3]);
    y[2 * i + 1] = make_uint4(e + INITIAL[4], f + INITIAL[5], g + INITIAL[6], h + INITIAL[7]);
}
