// infinity-produced
kernel void reciprocal_of_zero(global const float *x, global float *y) {
    uint i = get_global_id(0);
    y[i] = 1.0f / x[i];
}
