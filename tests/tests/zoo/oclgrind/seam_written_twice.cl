// written-twice
kernel void seam_written_twice(global const float *x, global float *y) {
    uint i = get_local_id(0);
    y[i] = x[i];
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (i <= 1)
        y[63 + i] = x[63 + i];
}
