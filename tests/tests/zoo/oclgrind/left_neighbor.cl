// usize-overflow
kernel void left_neighbor(global const float *x, global float *y) {
    uint i = get_global_id(0);
    uint before = i - 1;
    y[i] = x[i] - (before < 64 ? x[before] : 0.0f);
}
