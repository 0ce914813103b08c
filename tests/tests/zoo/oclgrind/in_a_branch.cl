// divergent-barrier
kernel void in_a_branch(global const float *x, global float *y) {
    local float tile[64];
    uint t = get_local_id(0);
    tile[t] = x[t];
    if (x[t] < 40.0f)
        barrier(CLK_LOCAL_MEM_FENCE);
    y[t] = tile[t];
}
