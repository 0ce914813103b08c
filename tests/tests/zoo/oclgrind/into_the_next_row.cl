// out-of-bounds (inside the buffer)
kernel void into_the_next_row(uint rows, uint columns, global const float *x, global float *y) {
    uint row = get_global_id(0);
    y[row] = x[row * columns + columns];
}
