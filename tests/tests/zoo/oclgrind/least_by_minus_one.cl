// division-overflow
kernel void least_by_minus_one(global const int *a, global const int *b, global int *y) {
    uint t = get_global_id(0);
    y[t] = a[t] / b[t];
}
