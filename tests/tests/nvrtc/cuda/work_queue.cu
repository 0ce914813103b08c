// Computes the iterations of each pixel of the Mandelbrot set. Each warp takes the next tile by one
// atomic addition.
constexpr unsigned LIMIT = 200;

// Returns the number of iterations of z ← z² + c that stay below |z| = 2.
__device__ unsigned iterations(float re, float im)
{
    float x = 0.0f, y = 0.0f;
    unsigned n = 0;
    while (n < LIMIT && fmaf(x, x, y * y) < 4.0f) {
        float next = fmaf(x, x, -(y * y)) + re;
        y = fmaf(2.0f * x, y, im);
        x = next;
        n++;
    }
    return n;
}

extern "C" __global__ void __launch_bounds__(128) mandelbrot(unsigned *__restrict__ image, unsigned rows, unsigned cols, unsigned *next)
{
    unsigned lane = threadIdx.x % 32;
    unsigned tiles = (rows * cols + 31) / 32;
    while (true) {
        unsigned tile = lane == 0 ? atomicAdd(next, 1) : 0;
        tile = __shfl_sync(0xffffffff, tile, 0);
        if (tile >= tiles)
            break;
        unsigned pixel = 32 * tile + lane;
        if (pixel < rows * cols) {
            unsigned row = pixel / cols, col = pixel % cols;
            float re = 4.0f * col / cols - 2.0f;
            float im = 4.0f * row / rows - 2.0f;
            image[pixel] = iterations(re, im);
        }
    }
}
