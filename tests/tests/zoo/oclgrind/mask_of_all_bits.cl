// shift-overflow
kernel void mask_of_all_bits(global const uint *bits, global uint *y) {
    uint t = get_global_id(0);
    y[t] = (1u << bits[t]) - 1;
}
