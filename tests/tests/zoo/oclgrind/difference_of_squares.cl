// cancellation
kernel void difference_of_squares(global const float *x, global float *y) {
    uint i = get_global_id(0);
    float a = x[i] + 10000.0f, b = x[i] + 9999.999f;
    y[i] = a * a - b * b;
}
