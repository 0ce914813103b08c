// integer-overflow
kernel void fixed_point_product(global const int *x, global int *y) {
    y[0] = x[0] * x[0];
}
