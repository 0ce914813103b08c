// uninitialized-shared
kernel void half_of_a_table(global const float *x, global float *y) {
    local float table[64];
    uint t = get_local_id(0);
    if (t < 32)
        table[t] = x[t];
    barrier(CLK_LOCAL_MEM_FENCE);
    y[t] = table[63 - t];
}
