// warp-race
kernel void turned_within_the_warp(global const float *x, global float *y) {
    local float tile[32];
    uint t = get_local_id(0);
    tile[t] = x[t];
    y[t] = tile[t ^ 31];
}
