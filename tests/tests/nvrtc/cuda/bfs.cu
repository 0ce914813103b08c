// Visits the neighbors of the first `count` vertices of the frontier. Those that are reached for
// the first time get distance `level` and form the next frontier, in any order.
constexpr unsigned UNREACHED = 0xffffffff;

extern "C" __global__ void __launch_bounds__(128) expand(unsigned level, unsigned count, const unsigned *__restrict__ frontier,
    const unsigned *__restrict__ starts, const unsigned *__restrict__ ends, unsigned *__restrict__ distance,
    unsigned *__restrict__ next, unsigned *__restrict__ found)
{
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    if (i < count) {
        unsigned v = frontier[i], end = starts[v + 1];
        for (unsigned e = starts[v]; e < end; e++) {
            unsigned to = ends[e];
            if (atomicCAS(&distance[to], UNREACHED, level) == UNREACHED)
                next[atomicAdd(found, 1)] = to;
        }
    }
}
