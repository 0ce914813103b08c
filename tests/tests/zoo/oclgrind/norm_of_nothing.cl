// nan-produced
kernel void norm_of_nothing(global const float *x, global float *y) {
    uint i = get_global_id(0);
    y[i] = x[i] / sqrt(x[i] * x[i]);
}
