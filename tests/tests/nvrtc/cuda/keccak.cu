// Permutes each state of 25 words: Keccak-f[1600].
typedef unsigned long long u64;

// The constants of ι.
__constant__ u64 ROUND[24] = {
    0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000, 0x000000000000808b, 0x0000000080000001,
    0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088, 0x0000000080008009, 0x000000008000000a,
    0x000000008000808b, 0x800000000000008b, 0x8000000000008089, 0x8000000000008003, 0x8000000000008002, 0x8000000000000080,
    0x000000000000800a, 0x800000008000000a, 0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
};

// The rotations of ρ, in the order in which π visits the words.
__device__ constexpr unsigned ROTATE[24] = {
    1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 2, 14, 27, 41, 56, 8, 25, 43, 62, 18, 39, 61, 20, 44,
};

// The word to which π moves the previous one.
__device__ constexpr unsigned MOVE[24] = {
    10, 7, 11, 17, 18, 3, 5, 16, 8, 21, 24, 4, 15, 23, 19, 13, 12, 2, 20, 14, 22, 9, 6, 1,
};

__device__ u64 rotate_left(u64 x, unsigned n)
{
    return x << n | x >> (64 - n);
}

extern "C" __global__ void __launch_bounds__(128) keccak(u64 *__restrict__ x, unsigned n)
{
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n)
        return;
    x += 25 * i;
    u64 a[25];
#pragma unroll
    for (unsigned j = 0; j < 25; j++)
        a[j] = x[j];
#pragma unroll 1
    for (unsigned round = 0; round < 24; round++) {
        u64 c[5];
#pragma unroll
        for (unsigned k = 0; k < 5; k++)
            c[k] = a[k] ^ a[k + 5] ^ a[k + 10] ^ a[k + 15] ^ a[k + 20];
#pragma unroll
        for (unsigned j = 0; j < 25; j++)
            a[j] ^= c[(j + 4) % 5] ^ rotate_left(c[(j + 1) % 5], 1);
        u64 last = a[1];
#pragma unroll
        for (unsigned t = 0; t < 24; t++) {
            u64 next = a[MOVE[t]];
            a[MOVE[t]] = rotate_left(last, ROTATE[t]);
            last = next;
        }
#pragma unroll
        for (unsigned y = 0; y < 5; y++) {
            u64 row[5];
#pragma unroll
            for (unsigned k = 0; k < 5; k++)
                row[k] = a[5 * y + k];
#pragma unroll
            for (unsigned k = 0; k < 5; k++)
                a[5 * y + k] = row[k] ^ (~row[(k + 1) % 5] & row[(k + 2) % 5]);
        }
        a[0] ^= ROUND[round];
    }
#pragma unroll
    for (unsigned j = 0; j < 25; j++)
        x[j] = a[j];
}
