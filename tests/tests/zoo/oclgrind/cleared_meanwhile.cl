// unfinished-copy
kernel void cleared_meanwhile(global const float *x, global float *y) {
    local float tile[64];
    uint t = get_local_id(0);
    event_t coming = async_work_group_copy(tile, x, 64, 0);
    tile[63 - t] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    wait_group_events(1, &coming);
    barrier(CLK_LOCAL_MEM_FENCE);
    y[t] = tile[t];
}
