// shared-race
kernel void exchange_without_barrier(global const float *x, global float *y) {
    local float tile[64];
    uint t = get_local_id(0);
    tile[t] = x[t];
    y[t] = tile[63 - t];
}
