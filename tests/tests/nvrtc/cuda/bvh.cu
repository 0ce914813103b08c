// Finds the smallest z at which each ray (x, y) enters a leaf. A thread's stack is a column in
// shared memory.
constexpr unsigned DEPTH = 24;

extern "C" __global__ void __launch_bounds__(64) trace(const float *__restrict__ boxes, const unsigned *__restrict__ child,
    const float2 *__restrict__ rays, float *__restrict__ hits, unsigned n)
{
    __shared__ unsigned stack[DEPTH][64];
    unsigned i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
    if (i >= n)
        return;
    float2 ray = rays[i];
    float nearest = __int_as_float(0x7f800000);
    stack[0][t] = 0;
    unsigned depth = 1;
    while (depth > 0) {
        depth--;
        unsigned v = stack[depth][t];
        const float *box = boxes + 6 * v;
        float z = box[2];
        if ((z < nearest) & (box[0] <= ray.x) & (ray.x <= box[3]) & (box[1] <= ray.y) & (ray.y <= box[4])) {
            unsigned first = child[v];
            if (first == 0) {
                nearest = z;
            } else {
                stack[depth][t] = first;
                stack[depth + 1][t] = first + 1;
                depth += 2;
            }
        }
    }
    hits[i] = nearest;
}
