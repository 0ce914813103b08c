// Inserts keys into a table with open addressing, and counts each key. Slots without a key hold 0.
__device__ unsigned hash(unsigned key, unsigned slots)
{
    return key * 0x9e3779b9 >> 7 & (slots - 1);
}

extern "C" __global__ void __launch_bounds__(128) insert(const unsigned *__restrict__ keys, unsigned n, unsigned *__restrict__ table,
    unsigned slots, unsigned *__restrict__ counts)
{
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    if (i < n) {
        unsigned key = keys[i];
        unsigned slot = hash(key, slots);
        while (true) {
            unsigned found = atomicCAS(&table[slot], 0, key);
            if (found == 0 || found == key)
                break;
            slot = (slot + 1) & (slots - 1);
        }
        atomicAdd(&counts[slot], 1);
    }
}

// Looks up each key: found[i] ← its count, or 0.
extern "C" __global__ void __launch_bounds__(128) look_up(const unsigned *__restrict__ keys, unsigned n,
    const unsigned *__restrict__ table, unsigned slots, const unsigned *__restrict__ counts, unsigned *__restrict__ found)
{
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    if (i < n) {
        unsigned key = keys[i];
        unsigned slot = hash(key, slots);
        unsigned present = table[slot];
        while (present != key && present != 0) {
            slot = (slot + 1) & (slots - 1);
            present = table[slot];
        }
        found[i] = present == 0 ? 0 : counts[slot];
    }
}
