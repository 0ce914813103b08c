// uninitialized-local
kernel void value_of_one_branch(global const float *x, global float *y) {
    uint t = get_global_id(0);
    float v;
    if (x[t] > 0.0f)
        v = x[t];
    y[t] = v;
}
