// unfinished-copy
kernel void copy_never_waited_for(global const float *x, global float *y) {
    local float tile[64];
    uint t = get_local_id(0);
    event_t coming = async_work_group_copy(tile, x, 64, 0);
    if (x[0] > 64)
        wait_group_events(1, &coming);
    y[t] = x[63 - t];
}
