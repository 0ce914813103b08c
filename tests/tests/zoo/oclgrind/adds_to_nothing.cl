// uninitialized-buffer
kernel void adds_to_nothing(global const float *x, global float *y) {
    uint t = get_global_id(0);
    y[t] += x[t];
}
