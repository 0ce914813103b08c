// out-of-bounds (local memory)
kernel void halo_without_room(global const float *x, global float *y) {
    local float tile[64];
    uint t = get_local_id(0);
    tile[t] = x[t];
    if (t < 2)
        tile[64 + t] = 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    y[t] = tile[t];
}
