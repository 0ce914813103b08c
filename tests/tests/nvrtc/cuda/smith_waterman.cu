// Computes the best score of each row of `a` with the same row of `b`, of at most 256 letters: a
// warp for each pair, along anti-diagonals. Lane l holds row l of a band of 32 rows.
constexpr int EQUAL = 2;

extern "C" __global__ void __launch_bounds__(32) smith_waterman(const unsigned char *__restrict__ a, unsigned m,
    const unsigned char *__restrict__ b, unsigned n, int *__restrict__ best)
{
    __shared__ int above[257];
    unsigned lane = threadIdx.x;
    a += blockIdx.x * m;
    b += blockIdx.x * n;
    for (unsigned i = lane; i < 257; i += 32)
        above[i] = 0;
    __syncwarp();
    int most = 0;
    for (unsigned first = 0; first < m; first += 32) {
        unsigned row = first + lane;
        unsigned char letter = row < m ? a[row] : 0;
        // The scores to the left, and above to the left.
        int left = 0, corner = 0;
        for (unsigned step = 0; step < n + 31; step++) {
            int up = __shfl_up_sync(0xffffffff, left, 1);
            unsigned column = step - lane;
            bool inside = column < n;
            if (lane == 0)
                up = inside ? above[column + 1] : 0;
            if (inside) {
                int gain = letter == b[column] ? EQUAL : -1;
                int score = max(max(corner + gain, up - 1), max(left - 1, 0));
                left = row < m ? score : 0;
                corner = up;
                most = max(most, left);
            }
            __syncwarp();
            if (lane == 31 && inside)
                above[column + 1] = left;
            __syncwarp();
        }
    }
#pragma unroll
    for (unsigned d = 16; d > 0; d /= 2)
        most = max(most, __shfl_xor_sync(0xffffffff, most, d));
    if (lane == 0)
        best[blockIdx.x] = most;
}
