// shared-race
kernel void plain_histogram(global const float *x, global float *y) {
    local uint own[4];
    uint t = get_local_id(0);
    if (t < 4)
        own[t] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    own[(uint)x[t] % 4] += 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t < 4)
        y[t] = own[t];
}
